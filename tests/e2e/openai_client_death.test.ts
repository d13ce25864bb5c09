/** Kills of the server while OpenAI's client uses it. */
import OpenAI from "openai";
import { expect, test } from "vitest";
import { connectModel, startChildServer } from "../helpers/app/child_server.ts";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";

test("kill -9 in mid-stream keeps the text that a storing client has seen", { timeout: 240_000 }, async () => {
  await using llm = await openFakeLlm({ switches: { manual: "on" } });
  const dataDir = await Deno.makeTempDir();
  try {
    const first = await startChildServer({ dataDir });
    await connectModel(first, llm.url);
    const client = new OpenAI({ baseURL: `${first.url}/api/v1`, apiKey: "none", maxRetries: 0 });
    const opening = client.chat.completions.create({
      model: "default",
      messages: [{ role: "user", content: "Hi" }],
      stream: true,
      store: true,
      metadata: { conversation_id: "c1" },
    }).withResponse();
    const call = await llm.nextCall();
    await call.emit("one ");
    const { data: stream, response } = await opening;
    expect(response.headers.get("x-parlor-conversation-id")).toBe("c1");
    let seen = "";
    const reading = (async () => {
      for await (const { choices } of stream) {
        seen += choices[0]!.delta.content ?? "";
        if (seen === "one ") await call.emit("two");
        if (seen === "one two") await first.kill("SIGKILL");
      }
    })();
    await expect(reading).rejects.toThrow();
    expect(seen).toBe("one two");

    await using second = await startChildServer({ dataDir });
    const { messages } = await second.json<{ messages: unknown[] }>("GET", "/api/conversations/c1");
    expect(messages).toMatchObject([
      { role: "user", content: "Hi", status: "complete" },
      { role: "assistant", content: "one two", status: "interrupted" },
    ]);
  } finally {
    await Deno.remove(dataDir, { recursive: true });
  }
});
