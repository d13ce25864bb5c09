/** Checks that a chat with notes reuses as much of a real llama.cpp server's cache as a chat without notes. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { KEEPER, question } from "../helpers/files/lighthouse_chat.ts";
import { type LlamaServer, startLlama } from "./helpers/llama_server.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_LLM_DIR", "llm.sh");
const TURNS = 12;
const NOTES = 12;
const ANSWER_TOKENS = 16;
const SLOW_MS = 1_200_000;

describe.skipIf(INSTALLED === undefined)("with a real llama.cpp server", { timeout: SLOW_MS }, () => {
  let llama: LlamaServer;
  let parlor: ChildServer;
  let dataDir: string;

  beforeAll(async () => {
    llama = await startLlama(INSTALLED!, { flags: ["--parallel", "1", "--ctx-size", "4096"] });
    dataDir = await Deno.makeTempDir({ prefix: "parlor-real-" });
    parlor = await startChildServer({ dataDir });
    await parlor.json("PUT", "/api/connections", {
      id: "llama",
      name: "llama.cpp",
      kind: "openai",
      base_url: llama.url,
    });
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

  /** Runs a conversation and returns the share of prompt tokens that the server found in its cache. */
  async function measure(id: string): Promise<{ share: number; notes: number }> {
    await parlor.json("PUT", `/api/conversations/${id}`, { participants: [{ character_id: "ada" }], messages: [] });
    let [cached, all, notes] = [0, 0, 0];
    for (let n = 0; n < TURNS; n++) {
      await parlor.json("POST", "/api/chat", {
        conversation_id: id,
        context: "server",
        assistant_message_id: `${id}-a${n}`,
        messages: [{ role: "user", content: question(n) }],
        max_tokens: ANSWER_TOKENS,
        seed: n,
        stream: false,
        // So that no answer is empty: the model may neither end it nor find the stop text.
        ...{ ignore_eos: true, stop: ["<never written>"] },
      });
      const { messages } = await parlor.json<{ messages: Answer[] }>("GET", `/api/conversations/${id}`);
      const { timings, memories = [] } = messages.find((message) => message.id === `${id}-a${n}`)!;
      notes = memories.length;
      if (n === 0) continue; // Its cache is from the previous chat.
      cached += timings!.cache_n;
      all += timings!.cache_n + timings!.prompt_n;
    }
    return { share: cached / all, notes };
  }

  test("finds as much of each prompt in its cache with notes as without, within two percent", async () => {
    const without = await measure("plain");
    for (let n = 0; n < NOTES; n++) {
      await parlor.json("PUT", `/api/memories/n${n}`, { text: `Sam's boat number ${n} lies in the harbor of Hamnøy.` });
    }
    const notes = await measure("noted");
    const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
    console.log(`From the cache: without notes ${percent(without.share)}, with ${NOTES} notes ${percent(notes.share)}`);
    expect([without.notes, notes.notes]).toEqual([0, NOTES]);
    expect(without.share).toBeGreaterThan(0.5);
    expect(notes.share).toBeGreaterThan(without.share - 0.02);
  });
});

interface Answer {
  id: string;
  timings?: { cache_n: number; prompt_n: number };
  memories?: string[];
}
