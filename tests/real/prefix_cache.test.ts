/**
 * How much of each prompt a real llama.cpp server finds in its cache, over many turns with a character: as Parlor assembles
 * it, and beside that as a naive assembly would, which takes the same pieces and lets one message fall out a turn.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { isLong } from "../helpers/files/sample.ts";
import { KEEPER, NaiveChat, NOTE, question, type Said, TURNS as ALL_TURNS } from "../helpers/files/lighthouse_chat.ts";
import { type LlamaServer, startLlama } from "./helpers/llama_server.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_LLM_DIR", "llm.sh");
/** A usual run ends soon after the naive chat has outgrown the context; `LONG_TESTS=1` takes the forty of decision 0015. */
const TURNS = isLong() ? ALL_TURNS : 26;
const CONTEXT_SIZE = 2048;
const ANSWER_TOKENS = 24;
/** Time limit for a busy machine. */
const SLOW_MS = 1_200_000;

interface Counted {
  /** Prompt tokens found in the cache. */
  cached: number;
  prompt: number;
}

interface StoredMessage extends Said {
  id: string;
  status: string;
  timings?: { cache_n: number; prompt_n: number };
}

describe.skipIf(INSTALLED === undefined)("with a real llama.cpp server", { timeout: SLOW_MS }, () => {
  let llama: LlamaServer;
  let parlor: ChildServer;
  let dataDir: string;

  beforeAll(async () => {
    // One slot: what one conversation leaves in the cache is what the next turn finds.
    llama = await startLlama(INSTALLED!, { flags: ["--parallel", "1", "--ctx-size", String(CONTEXT_SIZE)] });
    dataDir = await Deno.makeTempDir({ prefix: "parlor-real-" });
    parlor = await startChildServer({ dataDir });
    const connection = { id: "llama", name: "llama.cpp", kind: "openai", base_url: llama.url };
    await parlor.json("PUT", "/api/connections", connection);
    await parlor.json("POST", "/api/connections/llama/activate");
    await parlor.json("PATCH", "/api/settings", { auto_title: false, auto_summary: false, display_name: "Sam" });
    await parlor.json("PUT", "/api/characters/ada", {
      card: { spec: "chara_card_v3", spec_version: "3.0", data: KEEPER },
    });
  }, SLOW_MS);

  afterAll(async () => {
    await parlor?.kill();
    await llama?.[Symbol.asyncDispose]();
    if (dataDir !== undefined) await Deno.remove(dataDir, { recursive: true });
  }, SLOW_MS);

  /** Sends a message and returns the stored reply. */
  async function answerTo(body: Record<string, unknown>, n: number): Promise<StoredMessage> {
    const id = String(body.conversation_id);
    await parlor.json("POST", "/api/chat", {
      assistant_message_id: `${id}-a${n}`,
      max_tokens: ANSWER_TOKENS,
      seed: n,
      stream: false,
      // So that no answer is empty: the model may neither end it nor find the stop text.
      ...{ ignore_eos: true, stop: ["<never written>"] },
      ...body,
    });
    const { messages } = await parlor.json<{ messages: StoredMessage[] }>("GET", `/api/conversations/${id}`);
    const answer = messages.find((message) => message.id === `${id}-a${n}`)!;
    expect(answer).toMatchObject({ status: "complete", timings: { prompt_n: expect.any(Number) } });
    return answer;
  }

  const countOf = ({ timings }: StoredMessage): Counted => {
    const cached = timings!.cache_n;
    return { cached, prompt: cached + timings!.prompt_n };
  };
  const shareOf = (counts: Counted[]) => {
    const sum = (field: keyof Counted) => counts.reduce((all, count) => all + count[field], 0);
    return sum("cached") / sum("prompt");
  };

  test("most of each prompt is in the server's cache, more than with naive assembly", async () => {
    const { id, messages: [greeting] } = await parlor.json<{ id: string; messages: StoredMessage[] }>(
      "POST",
      "/api/conversations",
      { character_ids: ["ada"] },
    );
    await parlor.json("PATCH", `/api/conversations/${id}`, { note: NOTE });
    const preview = (body: Record<string, unknown>) =>
      parlor.json<{ messages: Said[]; fits: boolean; trimmed: boolean }>("POST", "/api/chat/preview", {
        ...body,
        max_tokens: ANSWER_TOKENS,
      });
    const assembled: Counted[] = [];
    const begins = new Set<string>();
    let system = "";
    let isTrimmed = false;
    for (let n = 0; n < TURNS; n++) {
      const body = { conversation_id: id, context: "server", messages: [{ role: "user", content: question(n) }] };
      const seen = await preview(body);
      isTrimmed ||= seen.trimmed;
      system ||= seen.messages[0]!.content;
      begins.add(JSON.stringify(seen.messages.slice(0, 2)));
      assembled.push(countOf(await answerTo(body, n)));
    }
    expect(isTrimmed, "the conversation is longer than the context").toBe(true);

    const naive: Counted[] = [];
    const chat = new NaiveChat(greeting!.content);
    for (let n = 0; n < TURNS; n++) {
      chat.say("user", question(n));
      const messages = await chat.prompt(system, async (messages) => (await preview({ messages })).fits);
      const answer = await answerTo({ conversation_id: "naive", messages }, n);
      naive.push(countOf(answer));
      chat.say("assistant", answer.content);
    }

    const [own, other] = [shareOf(assembled), shareOf(naive)];
    const prompts = (counts: Counted[]) => counts.reduce((all, { prompt }) => all + prompt, 0);
    console.log(
      `Cached share of the prompt over ${TURNS} turns, context ${CONTEXT_SIZE}: ` +
        `assembled ${(own * 100).toFixed(1)} % of ${prompts(assembled)} tokens, ` +
        `naive ${(other * 100).toFixed(1)} % of ${prompts(naive)} tokens; ` +
        `the begin of the prompt moved ${begins.size - 1} times`,
    );
    expect(begins.size).toBeLessThan(TURNS / 4);
    expect(own).toBeGreaterThan(0.5);
    expect(own).toBeGreaterThan(other);
  });
});
