/** The Vercel AI SDK's provider for OpenAI-compatible servers as a second witness. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { expect, test } from "vitest";
import { openOpenAiApp, saveMira } from "../../helpers/app/openai_app.ts";

test("the Vercel AI SDK generates, streams, calls tools and reports errors", async () => {
  await using at = await openOpenAiApp({ pieces: ["Good ", "day"], reasoning: ["hm"] });
  await saveMira(at);
  const provider = createOpenAICompatible({
    name: "parlor",
    baseURL: `${at.app.url}/api/v1`,
    apiKey: at.token,
    includeUsage: true,
  });
  const prompt = [{ role: "user" as const, content: [{ type: "text" as const, text: "Hello" }] }];
  const whole = await provider.chatModel("character:mira").doGenerate({ prompt });
  expect(whole.content).toContainEqual(expect.objectContaining({ type: "text", text: "Good day" }));

  const { stream } = await provider.chatModel("character:mira").doStream({ prompt });
  const parts = await Array.fromAsync(stream);
  expect(parts.flatMap((part) => part.type === "text-delta" ? [part.delta] : []).join("")).toBe("Good day");
  expect(parts.flatMap((part) => part.type === "reasoning-delta" ? [part.delta] : []).join("")).toBe("hm");
  const finish = parts.find((part) => part.type === "finish");
  expect(finish).toMatchObject({ finishReason: { unified: "stop" } });
  expect(JSON.stringify(finish)).toContain('"inputTokens"');

  at.llm.pieces = [];
  at.llm.tools = [[{ index: 0, id: "c1", type: "function", function: { name: "look", arguments: "{}" } }]];
  at.llm.switches.reason = "tool_calls";
  const called = await provider.chatModel("default").doStream({
    prompt,
    tools: [{ type: "function", name: "look", inputSchema: { type: "object", properties: {} } }],
  });
  expect(await Array.fromAsync(called.stream)).toContainEqual(
    expect.objectContaining({ type: "tool-call", toolCallId: "c1", toolName: "look" }),
  );
  await expect(provider.chatModel("nobody").doGenerate({ prompt })).rejects.toMatchObject({ statusCode: 404 });
});
