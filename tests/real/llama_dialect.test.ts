/** The dialect of a real llama.cpp server: translated parameters must take effect. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { type LlamaServer, startLlama } from "./helpers/llama_server.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_LLM_DIR", "llm.sh");
/** Time limit for a busy machine. */
const SLOW_MS = 600_000;
/**
 * The small model's own template can't switch thinking. This one has the switch that templates of thinking models have: without
 * thinking it opens and closes the block itself.
 */
const THINKING_TEMPLATE = `{{ bos_token }}{% for message in messages %}<start_of_turn>{{ message.role }}
{{ message.content }}<end_of_turn>
{% endfor %}<start_of_turn>model
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}`;

interface Message {
  content: string;
  status: string;
  usage: { prompt_tokens: number; completion_tokens: number };
  timings: { cache_n: number; prompt_n: number };
  output_limit?: number;
  finish_reason?: string;
}

describe.skipIf(INSTALLED === undefined)("with a real llama.cpp server", { timeout: SLOW_MS }, () => {
  let llama: LlamaServer;
  let thinking: LlamaServer;
  let parlor: ChildServer;
  let folder: string;
  let number = 0;

  /** Requests exactly this many tokens at temperature 0. */
  async function reply(fields: Record<string, unknown> = {}): Promise<Message> {
    const n = ++number;
    const body = {
      conversation_id: `c${n}`,
      assistant_message_id: `a${n}`,
      messages: [{ role: "user", content: "Say the word lighthouse again and again" }],
      temperature: 0,
      max_tokens: 48,
      ignore_eos: true,
      ...fields,
    };
    await (await parlor.request("POST", "/api/chat", body)).text();
    return await parlor.json<Message>("GET", `/api/conversations/${body.conversation_id}/messages/a${n}`);
  }

  beforeAll(async () => {
    folder = await Deno.makeTempDir({ prefix: "parlor-real-" });
    const template = `${folder}/template.jinja`;
    await Deno.writeTextFile(template, THINKING_TEMPLATE);
    llama = await startLlama(INSTALLED!);
    thinking = await startLlama(INSTALLED!, { flags: ["--jinja", "--chat-template-file", template] });
    parlor = await startChildServer({ dataDir: `${folder}/data` });
    for (const [id, { url }] of Object.entries({ thinking, llama })) {
      await parlor.json("PUT", "/api/connections", { id, name: id, kind: "openai", base_url: url });
      await parlor.json("POST", `/api/connections/${id}/activate`);
    }
  }, SLOW_MS);

  afterAll(async () => {
    await parlor?.kill();
    await llama?.[Symbol.asyncDispose]();
    await thinking?.[Symbol.asyncDispose]();
    if (folder !== undefined) await Deno.remove(folder, { recursive: true });
  }, SLOW_MS);

  test("a repetition penalty of 1.5 changes the text, and the limit that was sent stays with the message", async () => {
    const plain = await reply({ repetition_penalty: 1 });
    const same = await reply({ repetition_penalty: 1 });
    const penalized = await reply({ repetition_penalty: 1.5 });
    expect(same.content).toBe(plain.content);
    expect(penalized.content).not.toBe(plain.content);
    const cut = await reply({ max_tokens: 5 });
    expect(cut).toMatchObject({ output_limit: 5, finish_reason: "length", usage: { completion_tokens: 5 } });
  });

  test("a cut and a complete reply are continued three times without repeating anything", async () => {
    for (
      const [kind, fields] of Object.entries({
        cut: { max_tokens: 12 },
        complete: { ignore_eos: false, max_tokens: 200 },
      })
    ) {
      let before = await reply(fields);
      expect(before.content, kind).not.toBe("");
      const target = { conversation_id: `c${number}`, assistant_message_id: `a${number}` };
      if (kind === "complete") expect(before.finish_reason).toBe("stop");
      for (let times = 0; times < 3; times++) {
        const again = {
          ...target,
          action: "continue",
          context: "server",
          temperature: 0,
          max_tokens: 12,
          ignore_eos: true,
        };
        await (await parlor.request("POST", "/api/chat", again)).text();
        const path = `/api/conversations/${target.conversation_id}/messages/${target.assistant_message_id}`;
        const after = await parlor.json<Message>("GET", path);
        expect(after.content.startsWith(before.content), kind).toBe(true);
        const added = after.content.slice(before.content.length);
        // The small model may have nothing to add, except to a reply that was cut.
        if (kind === "cut" && times === 0) expect(added.trim()).not.toBe("");
        expect(added.includes(before.content), kind).toBe(false);
        before = after;
      }
    }
  });

  test("it is detected, with what its template can switch", async () => {
    await reply({ connection_id: "thinking", max_tokens: 1 });
    const connections = await parlor.json<{ id: string; [more: string]: unknown }[]>("GET", "/api/connections");
    const one = (id: string) => connections.find((connection) => connection.id === id);
    expect(one("llama")).toMatchObject({ server: { detected: "llama.cpp" }, dialect: { name: "llama.cpp" } });
    const factsOf = (id: string) => Object.values((one(id)!.dialect as { models: object }).models);
    expect([factsOf("llama"), factsOf("thinking")]).toEqual([[{ thinking: false }], [{ thinking: true }]]);
  });

  test("switching thinking off reaches the template", async () => {
    const fields = { connection_id: "thinking", max_tokens: 4 };
    const on = await reply({ ...fields, reasoning_effort: "high" });
    const off = await reply({ ...fields, reasoning_effort: "none" });
    expect(off.usage.prompt_tokens).toBeGreaterThan(on.usage.prompt_tokens);
  });

  test("a prompt longer than the context is reported as such", async () => {
    const messages = [{ role: "user", content: "lighthouse ".repeat(4_000) }];
    const response = await parlor.request("POST", "/api/chat", { messages, stream: false });
    expect(response.status).toBe(502);
    const { error } = await response.json();
    expect(error.upstream).toMatchObject({
      kind: "overflow",
      status: 400,
      connection_id: "llama",
      connection_name: "llama",
    });
  });

  test("the beginning that two prompts share is read once", async () => {
    const start = `Remember this: ${"the keeper climbs the stairs and lights the lamp. ".repeat(20)}`;
    const ask = (question: string) =>
      reply({ messages: [{ role: "system", content: start }, { role: "user", content: question }], max_tokens: 4 });
    await ask("Who climbs?");
    const { timings } = await ask("What does the keeper light?");
    expect(timings.cache_n).toBeGreaterThan(150);
    expect(timings.prompt_n).toBeLessThan(60);
  });
});
