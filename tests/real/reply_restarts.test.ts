/**
 * Replies of a real llama.cpp server that go on after Parlor was killed or stopped. A proxy between both reads each stream as
 * llama.cpp has kept it, before Parlor has it deleted: that is the text which the message and every client must have.
 *
 * @slow Parlor starts eleven times, and a real model writes as many replies.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { framesOf, understand, until } from "../helpers/app/chat_client.ts";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { isLong } from "../helpers/files/sample.ts";
import { type LlamaServer, startLlama } from "./helpers/llama_server.ts";
import { freePort } from "./helpers/free_port.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_LLM_DIR", "llm.sh");
const KILLS = isLong() ? 100 : 10;
const TOKENS = isLong() ? 200 : 40;
/** How long Parlor is away, at most. */
const MAX_AWAY_MS = isLong() ? 20_000 : 1_500;
/** Time limit for a busy machine. */
const SLOW_MS = 3_600_000;

interface StoredMessage {
  id: string;
  content: string;
  status: string;
  continued_after_restart?: true;
}

/** A proxy that keeps the text of each stream that is deleted, which has to end for that. */
function openProxy(target: string) {
  const kept = new Map<string, string>();
  // llama.cpp closes connections that rest, just when they're used again.
  const client = Deno.createHttpClient({ poolMaxIdlePerHost: 0 });
  // The clients leave suddenly.
  const onError = () => new Response(null, { status: 502 });
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {}, onError }, async (request) => {
    const { pathname, search, searchParams } = new URL(request.url);
    if (request.method === "DELETE" && proxy.isKeeping) {
      const whole = await fetch(`${target}${pathname}${search}&from=0`, { client });
      // Parlor tries other paths, too, where a stream can't be deleted.
      if (!whole.ok) return new Response(null, { status: whole.status });
      const frames = await Array.fromAsync(framesOf(new Response(await whole.text())));
      kept.set(searchParams.get("conv_id")!, understand(frames.filter(({ data }) => data !== "[DONE]")).text);
    }
    const { method, headers, body, signal } = request;
    return await fetch(`${target}${pathname}${search}`, { method, headers, body, signal, client });
  });
  const proxy = {
    kept,
    /** Without it, a stream that is deleted in its middle ends there. */
    isKeeping: true,
    url: `http://127.0.0.1:${server.addr.port}`,
    async close() {
      await server.shutdown();
      client.close();
    },
  };
  return proxy;
}

describe.skipIf(INSTALLED === undefined)("with a real llama.cpp server", { timeout: SLOW_MS }, () => {
  let llama: LlamaServer;
  let proxy: ReturnType<typeof openProxy>;
  let parlor: ChildServer;
  let dataDir: string;
  const port = String(freePort());

  const start = () => startChildServer({ dataDir, port });
  const readMessage = async (n: number) =>
    (await parlor.json<{ messages: StoredMessage[] }>("GET", `/api/conversations/c${n}`)).messages.at(-1)!;

  beforeAll(async () => {
    llama = await startLlama(INSTALLED!);
    proxy = openProxy(llama.url);
    dataDir = await Deno.makeTempDir({ prefix: "parlor-real-" });
    parlor = await start();
    const connection = { id: "llama", name: "llama.cpp", kind: "openai", base_url: proxy.url };
    await parlor.json("PUT", "/api/connections", connection);
    await parlor.json("POST", "/api/connections/llama/activate");
    await parlor.json("PATCH", "/api/settings", { auto_title: false, auto_summary: false });
  }, SLOW_MS);

  afterAll(async () => {
    await parlor?.kill();
    await proxy?.close();
    await llama?.[Symbol.asyncDispose]();
    if (dataDir !== undefined) await Deno.remove(dataDir, { recursive: true });
  }, SLOW_MS);

  function ask(n: number, tokens = TOKENS): Promise<Response> {
    return parlor.request("POST", "/api/chat", {
      conversation_id: `c${n}`,
      user_message_id: `u${n}`,
      assistant_message_id: `a${n}`,
      context: "server",
      messages: [{ role: "user", content: `Tell me a long story about lighthouse number ${n}` }],
      max_tokens: tokens,
      ignore_eos: true,
      stop: ["<never written>"],
      temperature: 0,
      seed: n,
    });
  }

  /** Follows a reply to its end like a page: connects again with its position. `onText` gets the length of the text so far. */
  async function follow(n: number, onText?: (length: number) => void): Promise<string> {
    let text = "";
    let lastEventId: string | undefined;
    for (let first: Promise<Response> | undefined = onText && ask(n);; first = undefined) {
      try {
        const headers: Record<string, string> = lastEventId === undefined ? {} : { "Last-Event-ID": lastEventId };
        const again = () => parlor.request("GET", `/api/chat/replies/a${n}`, undefined, { headers });
        for await (const frame of framesOf(await (first ?? again()))) {
          lastEventId = frame.id ?? lastEventId;
          text += understand([frame]).text;
          onText?.(text.length);
          if (frame.data === "[DONE]") return text;
          if (frame.event === "error") throw new Error(`The reply ended with ${frame.data}`);
        }
      } catch (error) {
        if (!(error instanceof TypeError)) throw error; // `fetch` can't connect, or the connection broke.
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  test(`replies go on after ${KILLS} sudden ends and stops at any moment, without a token lost or repeated`, async () => {
    for (let n = 1; n <= KILLS; n++) {
      const killAt = Math.floor(Math.random() * TOKENS);
      const ending = Promise.withResolvers<void>();
      const asking = follow(n, (length) => length >= killAt && ending.resolve());
      await Promise.race([ending.promise, asking.then(() => Promise.reject(new Error(`Reply ${n} was too short`)))]);
      const watching = follow(n);
      await parlor.kill(n % 5 === 0 ? "SIGTERM" : "SIGKILL");
      await new Promise((resolve) => setTimeout(resolve, Math.random() * MAX_AWAY_MS));
      parlor = await start();
      const message = () => readMessage(n);
      await until(async () => (await message()).status === "complete", `reply ${n} is complete`, SLOW_MS);
      await until(() => proxy.kept.size === n, "the kept stream is deleted", SLOW_MS);
      const text = [...proxy.kept.values()].at(-1)!;
      expect({ n, ...await message() }).toMatchObject({ n, content: text, status: "complete" });
      expect((await message()).continued_after_restart).toBeUndefined();
      expect({ n, clients: await Promise.all([asking, watching]) }).toEqual({ n, clients: [text, text] });
    }
    expect(await llama.busySlots()).toBe(0);
  });

  test("Stop after a restart ends the model's work", async () => {
    const n = KILLS + 1;
    proxy.isKeeping = false;
    // More than the model writes until Parlor is back.
    const response = await ask(n, 1500);
    await response.body?.cancel();
    await parlor.kill();
    parlor = await start();
    await parlor.json("POST", `/api/chat/replies/a${n}/stop`);
    expect((await readMessage(n)).status).toBe("stopped");
    await until(async () => await llama.busySlots() === 0, "the model is idle", SLOW_MS);
  });
});
