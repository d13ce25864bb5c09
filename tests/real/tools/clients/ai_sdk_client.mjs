// Talks to a server with the Vercel AI SDK's default provider for OpenAI, and prints as JSON what it got.
import { createOpenAI } from "@ai-sdk/openai";
import * as ai from "ai";
import { z } from "zod";

const [baseURL, apiKey] = process.argv.slice(2);
const openai = createOpenAI({ baseURL, apiKey });
const { generateText, streamText, tool } = ai;
const stopWhen = ai.stepCountIs(3);
const tools = {
  weather: tool({
    description: "Weather of a city",
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => `Rain in ${city}`,
  }),
};
const question = { role: "user", content: "Weather in Oslo?" };
const seen = {};
for (const store of [undefined, false]) {
  const common = {
    model: openai("default"),
    tools,
    stopWhen,
    maxRetries: 0,
    ...(store === false && { providerOptions: { openai: { store } } }),
  };
  const first = await generateText({ ...common, messages: [question] });
  const again = [question, ...(first.responseMessages ?? first.response.messages), { role: "user", content: "Again" }];
  const second = streamText({ ...common, messages: again, onError: ({ error }) => console.error(error) });
  let streamed = "";
  for await (const text of second.textStream) streamed += text;
  const usage = await second.totalUsage;
  seen[String(store)] = {
    first: first.text,
    reasoning: first.steps[0].reasoningText,
    results: first.steps.flatMap(({ toolResults }) => toolResults.map(({ output }) => output)),
    streamed,
    tokens: usage.totalTokens,
  };
}
console.log(JSON.stringify(seen));
