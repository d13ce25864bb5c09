/** What a real llama.cpp server says about its context: the progress of a prompt, and a prompt that is too long. */
import { createParser } from "eventsource-parser";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ServerContract } from "../../services/llm/contract/contract.ts";
import { getDialect } from "../../services/llm/dialects/dialects.ts";
import { createUpstreamClient } from "../../services/llm/upstream_client.ts";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { freePort } from "./helpers/free_port.ts";
import { type LlamaServer, startLlama } from "./helpers/llama_server.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_LLM_DIR", "llm.sh");
/** Time limit for a busy machine. */
const SLOW_MS = 600_000;
const MODEL = "gemma3-270m";

interface Progress {
  total: number;
  cache: number;
  processed: number;
}

interface Message {
  status: string;
  content: string;
  left_out?: { field: string; reason: string }[];
  context_use?: { size: number; first_message_id?: string };
}

/** About ten tokens a sentence. */
const sentences = (count: number) => "The keeper of the lighthouse counts the ships. ".repeat(count).trim();

describe.skipIf(INSTALLED === undefined)("the context of a real llama.cpp server", { timeout: SLOW_MS }, () => {
  const port = freePort();
  let llama: LlamaServer | undefined;
  let parlor: ChildServer;
  let folder: string;

  async function restart(contextSize: number): Promise<void> {
    await llama?.[Symbol.asyncDispose]();
    llama = undefined;
    const flags = ["--ctx-size", String(contextSize), "--parallel", "1", "--batch-size", "256", "--alias", MODEL];
    llama = await startLlama(INSTALLED!, { port, flags });
  }

  /** Asks in a conversation. Calls back for each event of the stream. */
  async function ask(id: string, n: number, onEvent: (event: string | undefined, data: string) => void = () => {}) {
    const response = await parlor.request("POST", "/api/chat", {
      conversation_id: id,
      user_message_id: `${id}-u${n}`,
      assistant_message_id: `${id}-a${n}`,
      context: "server",
      messages: [{ role: "user", content: `Question ${n}?` }],
      max_tokens: 24,
      ignore_eos: true,
      stop: ["<never written>"],
    });
    const parser = createParser({ onEvent: ({ event, data }) => onEvent(event, data) });
    for await (const text of response.body!.pipeThrough(new TextDecoderStream())) parser.feed(text);
    return await parlor.json<Message>("GET", `/api/conversations/${id}/messages/${id}-a${n}`);
  }

  const save = (id: string, messages: string[]) =>
    parlor.json("PUT", `/api/conversations/${id}`, {
      title: id,
      messages: messages.map((content, n) => ({ id: `${id}-${n}`, role: n % 2 ? "assistant" : "user", content })),
    });

  beforeAll(async () => {
    folder = await Deno.makeTempDir({ prefix: "parlor-real-" });
    await restart(4096);
    parlor = await startChildServer({ dataDir: `${folder}/data` });
    const fields = { id: "llama", name: "llama.cpp", kind: "openai", base_url: llama!.url, model: MODEL };
    await parlor.json("PUT", "/api/connections", fields);
    await parlor.json("POST", "/api/connections/llama/activate");
    await parlor.json("PATCH", "/api/settings", { auto_title: false, auto_summary: false });
  }, SLOW_MS);

  afterAll(async () => {
    await parlor?.kill();
    await llama?.[Symbol.asyncDispose]();
    if (folder !== undefined) await Deno.remove(folder, { recursive: true });
  }, SLOW_MS);

  test("a long prompt is seen to be read, and its cached part the next time", async () => {
    await save("c1", [sentences(60), "Yes.", sentences(60), "Indeed."]);
    const seen: Progress[] = [];
    const collect = (event: string | undefined, data: string) => {
      if (event === "prompt_progress") seen.push(JSON.parse(data));
    };
    expect(await ask("c1", 1, collect)).toMatchObject({ status: "complete", context_use: { size: 4096 } });
    const { total } = seen[0]!;
    expect(total).toBeGreaterThan(1000);
    expect(seen.map(({ processed }) => processed)).toEqual(
      seen.map(({ processed }) => processed).toSorted((a, b) => a - b),
    );
    expect(new Set(seen.map(({ processed }) => processed)).size).toBeGreaterThan(3);
    expect(seen.at(-1)!.processed).toBeGreaterThan(total * 0.9);
    seen.length = 0;
    await ask("c1", 2, collect);
    expect(seen.at(-1)!.cache).toBeGreaterThan(total * 0.9);
  });

  test("a second chat is silent until the only slot is free", async () => {
    await save("c2", [sentences(40), "Yes."]);
    await save("c3", ["Hi", "Hello."]);
    let text = "";
    const before: Promise<string>[] = [];
    // What was written before the progress has been read once another answer has come.
    const readSoFar = async () => {
      await (await parlor.request("GET", "/healthz")).body?.cancel();
      return text;
    };
    let second: Promise<Message> | undefined;
    const first = ask("c2", 1, (event, data) => {
      if (event === "prompt_progress") {
        second ??= ask("c3", 1, (kind) => {
          if (kind === "prompt_progress") before.push(readSoFar());
        });
      } else if (event === undefined && data.startsWith("{")) text += JSON.parse(data).choices[0]?.delta.content ?? "";
    });
    await first;
    await second;
    // The end of the first reply may arrive a moment after the slot was free.
    expect((await before[0])?.length).toBeGreaterThan(text.length / 2);
  });

  test("after a restart with a smaller context in the middle of a chat, it goes on by itself", async () => {
    await restart(1024);
    const reply = await ask("c1", 3);
    expect(reply).toMatchObject({ status: "complete", context_use: { size: 1024 } });
    expect(reply.context_use!.first_message_id).toBeDefined();
    expect(reply.left_out).toMatchObject([{ field: "messages", reason: expect.stringContaining("1024 tokens") }]);
    // Known from now on: the next prompt fits at once.
    const next = await ask("c1", 4);
    expect(next.status).toBe("complete");
    expect(next.left_out).toBeUndefined();
  });

  test("what the server does is asked in a few tokens, unless its slot would have to drop a prompt", async () => {
    await restart(2048);
    const client = createUpstreamClient({ log: () => {} });
    const timeouts = { connectMs: SLOW_MS, firstByteMs: SLOW_MS, idleMs: SLOW_MS };
    const target = {
      ...{ kind: "openai" as const, baseUrl: llama!.url, timeouts, dialect: getDialect("llama.cpp") },
    };
    const options = { by: "parlor", limitMs: SLOW_MS, now: Date.now } as const;
    const list = ({ findings }: ServerContract) =>
      Object.fromEntries(Object.entries(findings).map(([item, { found, reason }]) => [item, found ?? reason]));
    const signal = new AbortController().signal;
    try {
      const first = await client.probe(target, MODEL, options, signal);
      expect(first.version).toMatch(/^b\d+/);
      expect(list(first)).toEqual({
        ...{ context_size: 2048, slots: 1, continues: true, repeats_prefill: false, progress: true, cancels: true },
        ...{ system_message: true, tools: true, images: false, stop: true, usage: true, resumable: true },
      });
      expect(await llama!.busySlots()).toBe(0);
      const again = await client.probe(target, MODEL, options, signal);
      expect(list(again)).toMatchObject({ context_size: 2048, continues: "holds_chat", cancels: "holds_chat" });
      expect(again.fingerprint).toBe(first.fingerprint);
    } finally {
      client.close();
    }
  });

  test("after a restart with another context, what is known of the server is asked anew", async () => {
    await restart(1024);
    const fields = { id: "llama", name: "llama.cpp", kind: "openai", base_url: llama!.url, model: MODEL };
    await parlor.json("PUT", "/api/connections", fields);
    const findSize = async () => {
      const list = await parlor.json<
        { id: string; contracts?: { findings: { item: string; found?: unknown }[] }[] }[]
      >("GET", "/api/connections");
      const [contract] = list.find(({ id }) => id === "llama")!.contracts ?? [];
      return contract?.findings.find(({ item }) => item === "context_size")?.found;
    };
    await expect.poll(findSize, { timeout: SLOW_MS / 2 }).toBe(1024);
  });
});
