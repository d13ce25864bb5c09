import { expect, test } from "vitest";
import { createSealer } from "../../../services/crypto/sealer.ts";
import type { Provider } from "../../../services/llm/provider.ts";
import { TokenCounter, TokenRatios } from "../../../services/prompts/token_counter.ts";
import { estimateTokens, IMAGE_TOKENS, MESSAGE_TOKENS } from "../../../services/llm/token_count.ts";
import { tempFolder, testDatabase } from "../../helpers/files/storage_folder.ts";
import { never, target } from "../llm/model_calls.ts";

const say = (content: string) => ({ role: "user", content });
const asked = { target: target("http://127.0.0.1:9/v1"), model: "m" };

async function openRatios(path: string) {
  const db = await testDatabase(path);
  const logged: string[] = [];
  const ratios = new TokenRatios({
    db,
    sealer: createSealer(new Uint8Array(32)).forPurpose("settings"),
    log: (_, message) => void logged.push(message),
  });
  return { db, ratios, logged };
}

/** A tokenizer that counts characters and records its input. */
function countingProvider() {
  const given: string[][] = [];
  const provider: Pick<Provider, "countTokens"> = {
    countTokens(_target, _model, texts) {
      given.push(texts);
      return Promise.resolve(texts.map((text) => text.length));
    },
  };
  return { given, provider };
}

test.each([
  ["", 0],
  ["four score and seven years ago our fathers", 10.5],
  ["夕方の光が港に落ちる", 8.5],
  ["Grüße", 1.25],
])("estimates %j as %d tokens", (text, tokens) => {
  expect(estimateTokens(text)).toBeCloseTo(tokens);
});

test("learns a ratio from usage slowly, keeps it over a restart, and ignores implausible usage", async () => {
  await using folder = await tempFolder();
  const path = folder.file("app.db");
  const text = say("x".repeat(4000)); // 1,000 tokens by the estimate
  {
    const { db, ratios } = await openRatios(path);
    await using _db = db;
    expect(ratios.get("m")).toBe(1);
    ratios.learn("m", [text], { prompt_tokens: 1500 + MESSAGE_TOKENS });
    expect(ratios.get("m")).toBeCloseTo(1.5);
    ratios.learn("m", [text], { prompt_tokens: 1000 + MESSAGE_TOKENS });
    expect(ratios.get("m")).toBeCloseTo(1.35);
    for (const prompt_tokens of [0, 1, -5, 1e9, NaN]) ratios.learn("m", [text], { prompt_tokens });
    ratios.learn("m", [text], undefined);
    ratios.learn("m", [say("short")], { prompt_tokens: 400 });
    const image = { role: "user", content: [{ type: "image_url", image_url: { url: "data:," } }] };
    ratios.learn("m", [text, image], { prompt_tokens: 3000 });
    expect(ratios.get("m")).toBeCloseTo(1.35);
    expect(ratios.get("other")).toBe(1);
    await ratios.close();
  }
  const { db, ratios } = await openRatios(path);
  await using _db = db;
  expect(ratios.get("m")).toBeCloseTo(1.35);
});

test("learns unreadable ratios again", async () => {
  await using folder = await tempFolder();
  const { db, ratios, logged } = await openRatios(folder.file("app.db"));
  await using _db = db;
  await db.write([{ sql: "INSERT INTO setting VALUES ('token_ratios', 1, zeroblob(50))", params: [] }]);
  expect(ratios.get("m")).toBe(1);
  ratios.learn("m", [say("x".repeat(4000))], { prompt_tokens: 2000 });
  await ratios.close();
  expect(ratios.get("m")).toBeCloseTo(1.996);
  expect(logged).toHaveLength(1);
});

test("asks the server once per text; a count with images isn't exact", async () => {
  await using folder = await tempFolder();
  const { db, ratios } = await openRatios(folder.file("app.db"));
  await using _db = db;
  const { given, provider } = countingProvider();
  const counter = new TokenCounter(provider, ratios);
  const messages = [say("one"), say("two two"), say("one")];
  const expected = [3, 7, 3].map((tokens) => tokens + MESSAGE_TOKENS);
  expect(await counter.count(messages, asked, never())).toEqual({ tokens: expected, isExact: true });
  expect(await counter.count(messages, asked, never())).toEqual({ tokens: expected, isExact: true });
  expect(given).toEqual([["one", "two two"]]);
  await counter.count(messages, { ...asked, model: "other" }, never());
  expect(given).toHaveLength(2);
  const image = { role: "user", content: [{ type: "text", text: "one" }, { type: "image_url", image_url: {} }] };
  expect(await counter.count([image], asked, never())).toEqual({
    tokens: [3 + MESSAGE_TOKENS + IMAGE_TOKENS],
    isExact: false,
  });
});

test("estimates what exceeds one request, and counts it next time", async () => {
  await using folder = await tempFolder();
  const { db, ratios } = await openRatios(folder.file("app.db"));
  await using _db = db;
  const { given, provider } = countingProvider();
  const counter = new TokenCounter(provider, ratios);
  const many = Array.from({ length: 700 }, (_, n) => say(`text ${n}`));
  expect((await counter.count(many, asked, never())).isExact).toBe(false);
  expect((await counter.count(many, asked, never())).isExact).toBe(true);
  expect(given.map((texts) => texts.length)).toEqual([600, 100]);
  const long = await counter.count([say("x".repeat(300_000))], asked, never());
  expect(long).toEqual({ tokens: [75_000 + MESSAGE_TOKENS], isExact: false });
});

test("falls back to the estimate if the server is slow or can't count", async () => {
  await using folder = await tempFolder();
  const { db, ratios } = await openRatios(folder.file("app.db"));
  await using _db = db;
  const silent: Pick<Provider, "countTokens"> = {
    countTokens: (_target, _model, _texts, signal) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  };
  const estimated = { tokens: [1 + MESSAGE_TOKENS], isExact: false };
  expect(await new TokenCounter(silent, ratios).count([say("one")], asked, never())).toEqual(estimated);
  const unable = { countTokens: () => Promise.resolve(undefined) };
  expect(await new TokenCounter(unable, ratios).count([say("one")], asked, never())).toEqual(estimated);
  const leaving = new AbortController();
  const counting = new TokenCounter(silent, ratios).count([say("one")], asked, leaving.signal);
  leaving.abort(new Error("gone"));
  await expect(counting).rejects.toThrow("gone");
});
