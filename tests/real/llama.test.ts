/** Chat with a real llama.cpp server. Parlor runs as a process. The text is up to the model; its format is checked. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { isFree, type LlamaServer, startLlama, USUAL_PORT } from "./helpers/llama_server.ts";
import { realPart } from "./helpers/real_part.ts";
import { readReply, type SeenReply } from "./helpers/reply_stream.ts";

const INSTALLED = realPart("REAL_LLM_DIR", "llm.sh");
const MODEL = "gemma3-270m";
/** Context of each slot, set by llm.sh. */
const CONTEXT_SIZE = 2048;
/** Room for a machine that is busy with something else: 1,500 tokens are a minute or two there, half of one elsewhere. */
const SLOW_MS = 600_000;

interface StoredMessage {
  id: string;
  role: string;
  content: string;
  status: string;
  error?: { code: string; message: string };
  usage?: { completion_tokens: number };
}

interface Verdict {
  reachable: boolean;
  authorized: boolean;
  models: string[];
  context_size?: number;
  error?: string;
  advice?: string;
}

let number = 0;

/** A request whose reply has exactly so many tokens: the model may neither end it nor find the stop text. */
function chatBody(tokens: number, text = "Tell me a long story about a lighthouse") {
  const id = ++number;
  return {
    conversation_id: `c${id}`,
    user_message_id: `u${id}`,
    assistant_message_id: `a${id}`,
    messages: [{ role: "user", content: text }],
    max_tokens: tokens,
    ignore_eos: true,
    stop: ["<never written>"],
    seed: id,
  };
}

async function findMessage(parlor: ChildServer, body: ReturnType<typeof chatBody>): Promise<StoredMessage> {
  const { messages } = await parlor.json<{ messages: StoredMessage[] }>(
    "GET",
    `/api/conversations/${body.conversation_id}`,
  );
  const found = messages.find(({ id }) => id === body.assistant_message_id);
  if (found === undefined) throw new Error(`No message ${body.assistant_message_id}`);
  return found;
}

function follow(parlor: ChildServer, body: ReturnType<typeof chatBody>, lastEventId?: string): Promise<Response> {
  const headers = lastEventId === undefined ? undefined : { "Last-Event-ID": lastEventId };
  return parlor.request("GET", `/api/chat/replies/${body.assistant_message_id}`, undefined, { headers });
}

async function useLlama(parlor: ChildServer, id: string, url: string, key?: string): Promise<void> {
  const fields = { id, name: "llama.cpp", kind: "openai", base_url: url };
  await parlor.json("PUT", "/api/connections", key === undefined ? fields : { ...fields, api_key: key });
  await parlor.json("POST", `/api/connections/${id}/activate`);
}

function hasSteps(count: number): (seen: SeenReply) => boolean {
  return (seen) => seen.steps.length >= count;
}

describe.skipIf(INSTALLED === undefined)("with a real llama.cpp server", { timeout: SLOW_MS }, () => {
  let llama: LlamaServer;
  let parlor: ChildServer;
  let dataDir: string;
  let isAtUsualPort: boolean;

  beforeAll(async () => {
    isAtUsualPort = isFree(USUAL_PORT);
    llama = await startLlama(INSTALLED!, isAtUsualPort ? { port: USUAL_PORT } : {});
    dataDir = await Deno.makeTempDir({ prefix: "parlor-real-" });
    parlor = await startChildServer({ dataDir });
    await useLlama(parlor, "llama", llama.url);
    // They would keep the model busy a second after a reply.
    await parlor.json("PATCH", "/api/settings", { auto_title: false, auto_summary: false });
  }, SLOW_MS);

  afterAll(async () => {
    await parlor?.kill();
    await llama?.[Symbol.asyncDispose]();
    if (dataDir !== undefined) await Deno.remove(dataDir, { recursive: true });
  }, SLOW_MS);

  test("the search for servers finds it and names its software and model", async ({ skip }) => {
    if (!isAtUsualPort) {
      console.warn(`SKIPPED: port ${USUAL_PORT}, where the search looks for llama.cpp, is taken by something else`);
      skip();
    }
    const search = async () => {
      const found = await parlor.json<{ base_url: string; kind: string; software: string; models: string[] }[]>(
        "POST",
        "/api/connections/discover",
        {},
      );
      return found.filter(({ base_url }) => base_url.includes(`:${USUAL_PORT}`));
    };
    // A search doesn't wait for long, and a server on a busy machine may answer later.
    await expect.poll(search, { timeout: SLOW_MS / 2 }).toEqual([
      expect.objectContaining({ kind: "openai", software: "llama.cpp", models: [MODEL] }),
    ]);
  });

  test("a test of the connection returns reachability, models and the context of one slot", async () => {
    const verdict = await parlor.json<Verdict>("POST", "/api/connections/test", {
      kind: "openai",
      base_url: llama.url,
    });
    expect(verdict).toMatchObject({ reachable: true, authorized: true, models: [MODEL], context_size: CONTEXT_SIZE });
    expect(verdict.error).toBeUndefined();
  });

  test("health and models speak of the real model", async () => {
    expect(await parlor.json("GET", "/api/health")).toMatchObject({
      status: "ok",
      connection: { id: "llama", kind: "openai", reachable: true },
    });
    const { data } = await parlor.json<{ data: { id: string }[] }>("GET", "/api/models");
    expect(data.map(({ id }) => id)).toEqual([MODEL]);
  });

  test("a streamed reply arrives in many steps, ends with [DONE], is stored as shown and has its usage", async () => {
    const body = chatBody(60);
    const seen = await readReply(await parlor.request("POST", "/api/chat", body));
    expect(seen).toMatchObject({ isDone: true, finishReason: "length" });
    expect(seen.steps.length).toBeGreaterThan(30);
    expect(seen.usage).toMatchObject({ completion_tokens: 60 });
    expect(seen.usage!.prompt_tokens).toBeGreaterThan(0);
    expect(await findMessage(parlor, body)).toMatchObject({
      role: "assistant",
      status: "complete",
      content: seen.text,
      model: MODEL,
      usage: { completion_tokens: 60 },
    });
  });

  test("sending the same turn again attaches to its reply and asks the model only once", async () => {
    // Without a seed, no two replies of the model are the same.
    const body = { ...chatBody(150), seed: undefined };
    const first = await parlor.request("POST", "/api/chat", body);
    const second = await parlor.request("POST", "/api/chat", body);
    const [one, two] = [readReply(first), readReply(second)];
    expect((await two).text).toBe((await one).text);
    const again = await readReply(await parlor.request("POST", "/api/chat", body));
    expect(again.text).toBe((await one).text);
  });

  test("Stop ends the work of the model and keeps what was written", async () => {
    const body = chatBody(1000);
    const answer = await parlor.request("POST", "/api/chat", body);
    let stopped: Promise<StoredMessage> | undefined;
    const seen = await readReply(answer, ({ steps }) => {
      if (steps.length >= 10) {
        stopped ??= parlor.json("POST", `/api/chat/replies/${body.assistant_message_id}/stop`);
      }
      return false;
    });
    expect(await stopped).toMatchObject({ status: "stopped", content: seen.text });
    expect(seen.isDone).toBe(true);
    expect(seen.steps.length).toBeLessThan(1000);
    expect(await findMessage(parlor, body)).toMatchObject({ status: "stopped", content: seen.text });
    await expect.poll(() => llama.busySlots()).toBe(0);
  });

  test("a reply outlives its client, who gets the exact rest later", { tags: ["U06"] }, async () => {
    const body = chatBody(80);
    const before = await readReply(await parlor.request("POST", "/api/chat", body), hasSteps(10));
    expect(before.isDone).toBe(false);
    const rest = await readReply(await follow(parlor, body, before.steps.at(-1)!.id));
    const message = await findMessage(parlor, body);
    expect(message).toMatchObject({ status: "complete", usage: { completion_tokens: 80 } });
    expect(before.text + rest.text).toBe(message.content);
  });

  test("every event number of a reply resumes exactly there, also after a restart", async () => {
    const body = chatBody(40);
    const whole = await readReply(await parlor.request("POST", "/api/chat", body));
    const expectRests = async () => {
      let had = "";
      for (const { id, delta } of whole.steps) {
        had += delta;
        const rest = await readReply(await follow(parlor, body, id));
        expect(had + rest.text).toBe(whole.text);
        expect(rest.isDone).toBe(true);
      }
      expect((await readReply(await follow(parlor, body))).text).toBe(whole.text);
    };
    await expectRests();
    await parlor.kill("SIGTERM");
    parlor = await startChildServer({ dataDir });
    await expectRests();
  });

  test("a prompt that is too long is refused with a reason one can act on, and the turn is kept", async () => {
    const body = chatBody(20, "lighthouse ".repeat(CONTEXT_SIZE + 500));
    const answer = await parlor.request("POST", "/api/chat", body);
    expect(answer.status).toBe(502);
    const { error } = await answer.json();
    expect(error).toMatchObject({ code: "upstream_error" });
    expect(error.message).toMatch(/context/);
    expect(error.message).toContain(String(CONTEXT_SIZE));
    expect(await findMessage(parlor, body)).toMatchObject({
      status: "failed",
      content: "",
      error: { message: error.message },
    });
  });

  test("without a conversation and a stream the answer is one OpenAI-shaped object", async () => {
    const { messages, max_tokens, ignore_eos, stop } = chatBody(24);
    const completion = await parlor.json("POST", "/api/chat", {
      messages,
      max_tokens,
      ignore_eos,
      stop,
      stream: false,
    });
    expect(completion).toMatchObject({
      object: "chat.completion",
      model: MODEL,
      choices: [{ index: 0, message: { role: "assistant", content: expect.any(String) }, finish_reason: "length" }],
      usage: { completion_tokens: 24 },
    });
  });

  test("without a conversation the model stops working when the client leaves", { tags: ["U06"] }, async () => {
    const { messages, ignore_eos, stop } = chatBody(0);
    const body = { messages, max_tokens: 1500, ignore_eos, stop, stream: true };
    const seen = await readReply(await parlor.request("POST", "/api/chat", body), hasSteps(5));
    expect(seen.isDone).toBe(false);
    await expect.poll(() => llama.busySlots()).toBe(0);
  });

  test("1,500 tokens arrive without loss, and the wire carries each of them once", async () => {
    const body = chatBody(1500);
    const seen = await readReply(await parlor.request("POST", "/api/chat", body));
    expect(seen.usage).toMatchObject({ completion_tokens: 1500 });
    expect(await findMessage(parlor, body)).toMatchObject({ status: "complete", content: seen.text });
    const half = Math.floor(seen.steps.length / 2);
    const bytes = (steps: SeenReply["steps"]) => steps.reduce((sum, step) => sum + step.wireBytes, 0);
    expect(seen.steps.length).toBeGreaterThan(1000);
    expect(bytes(seen.steps.slice(half))).toBeLessThan(1.2 * bytes(seen.steps.slice(0, half)));
  });

  test("a second client sees the running reply, and its Stop ends it for both", async () => {
    const body = chatBody(1000);
    const first = readReply(await parlor.request("POST", "/api/chat", body));
    await readReply(await follow(parlor, body), hasSteps(5));
    const listed = expect.objectContaining({
      assistant_message_id: body.assistant_message_id,
      conversation_id: body.conversation_id,
    });
    expect(await parlor.json("GET", "/api/chat/replies")).toContainEqual(listed);
    const stopped = await parlor.json<StoredMessage>("POST", `/api/chat/replies/${body.assistant_message_id}/stop`);
    expect((await first).text).toBe(stopped.content);
    expect(await parlor.json("GET", "/api/chat/replies")).not.toContainEqual(listed);
  });

  test("a killed model server fails the reply and leaves its text", { tags: ["U05"] }, async () => {
    await using other = await startLlama(INSTALLED!);
    await useLlama(parlor, "other", other.url);
    const body = chatBody(1000);
    let killed: Promise<void> | undefined;
    const seen = await readReply(await parlor.request("POST", "/api/chat", body), ({ steps }) => {
      if (steps.length >= 20) killed ??= other.kill();
      return false;
    });
    await killed;
    expect(seen).toMatchObject({ isDone: false, error: { code: "upstream_error" } });
    expect(await findMessage(parlor, body)).toMatchObject({
      status: "failed",
      content: seen.text,
      error: { code: "upstream_error", message: seen.error!.message },
    });
    const verdict = await parlor.json<Verdict>("POST", "/api/connections/test", {
      kind: "openai",
      base_url: other.url,
    });
    expect(verdict).toMatchObject({ reachable: false, error: expect.any(String), advice: expect.any(String) });
    await parlor.json("POST", "/api/connections/llama/activate");
  });

  test("a server with a key: missing and wrong ones have different results, and no response contains the key", async () => {
    const key = "sk-only-for-this-test-0123456789";
    await using locked = await startLlama(INSTALLED!, { flags: ["--api-key", key] });
    const verdictWith = (fields: Record<string, unknown>) =>
      parlor.json<Verdict>("POST", "/api/connections/test", { kind: "openai", base_url: locked.url, ...fields });

    const missing = await verdictWith({});
    expect(missing).toMatchObject({ reachable: true, authorized: false });
    expect(`${missing.error} ${missing.advice}`).toMatch(/key/i);
    const wrong = await verdictWith({ api_key: "sk-wrong-9876543210" });
    expect(wrong).toMatchObject({ reachable: true, authorized: false });
    expect(JSON.stringify(wrong)).not.toContain("sk-wrong-9876543210");
    expect(wrong.advice).not.toBe(missing.advice);
    const right = await verdictWith({ api_key: key });
    expect(right).toMatchObject({ reachable: true, authorized: true, models: [MODEL], context_size: CONTEXT_SIZE });

    await useLlama(parlor, "locked", locked.url, key);
    const body = chatBody(12);
    expect((await readReply(await parlor.request("POST", "/api/chat", body))).usage).toMatchObject({
      completion_tokens: 12,
    });
    const shown = await (await parlor.request("GET", "/api/connections")).text();
    expect(JSON.parse(shown)).toContainEqual(expect.objectContaining({ id: "locked", has_key: true }));
    expect(shown + JSON.stringify(right) + parlor.logs.join("\n")).not.toContain(key);
    await parlor.json("POST", "/api/connections/llama/activate");
  });
});
