// Talks to a server with OpenAI's agents and OpenAI's client for Node, and prints as JSON what they got.
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

const [baseURL, apiKey] = process.argv.slice(2);
setTracingDisabled(true);
const runner = new Runner({ modelProvider: new OpenAIProvider({ baseURL, apiKey, useResponses: true }) });
const weather = tool({
  name: "weather",
  description: "Weather of a city",
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => `Rain in ${city}`,
});
const agent = new Agent({ name: "Helper", instructions: "Be brief.", model: "default", tools: [weather] });
const seen = {};

const first = await runner.run(agent, "Weather in Oslo?");
seen.first = first.finalOutput;
const next = await runner.run(agent, [...first.history, { role: "user", content: "Again" }]);
seen.history = next.finalOutput;
const streamed = await runner.run(agent, "Weather in Oslo?", {
  previousResponseId: first.lastResponseId,
  stream: true,
});
for await (const _ of streamed);
await streamed.completed;
seen.streamed = streamed.finalOutput;

const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const response = await client.responses.create({ model: "default", input: "Hello" });
const later = client.responses.stream({ model: "default", input: "Again", previous_response_id: response.id });
seen.openai = [response.output_text, (await later.finalResponse()).output_text];
seen.model = (await client.models.retrieve("connection:double/fake-model")).id;
console.log(JSON.stringify(seen));
