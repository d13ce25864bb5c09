import { expect, test } from "vitest";
import { gather, useModel } from "../../helpers/app/chat_client.ts";
import { openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { KEEPER, NaiveChat, NOTE, question, type Said, TURNS } from "../../helpers/files/lighthouse_chat.ts";
import { openTestApp } from "../../helpers/app/test_app.ts";

/** Returns which share of each prompt is a prefix that the previous one had, too. */
function unchangedShare(prompts: Said[][]): number {
  const texts = prompts.map((messages) => messages.map(({ role, content }) => `${role}: ${content}\n`).join(""));
  let [same, all] = [0, 0];
  texts.forEach((text, n) => {
    const before = texts[n - 1] ?? "";
    let at = 0;
    while (at < text.length && text[at] === before[at]) at++;
    same += at;
    all += text.length;
  });
  return same / all;
}

test("keeps most of each prompt's prefix over forty messages, far more than naive assembly", async () => {
  await using app = await openTestApp();
  await using llm = await openFakeLlm({ personality: "llama.cpp", pieces: ["The wind ", "has turned. ".repeat(8)] });
  await useModel(app, llm);
  const made = async (asked: Promise<Response>) => {
    const response = await asked;
    expect(response.ok).toBe(true);
    return await response.json();
  };
  await app.put("/api/characters/ada", { card: { spec: "chara_card_v3", spec_version: "3.0", data: KEEPER } });
  const { id, messages: [greeting] } = await made(app.post("/api/conversations", { character_ids: ["ada"] }));
  await app.patch(`/api/conversations/${id}`, { note: NOTE });
  const limits = { max_tokens: 24 };
  const assembled: Said[][] = [];
  for (let n = 0; n < TURNS; n++) {
    const messages = [{ role: "user", content: question(n) }];
    await gather(await app.post("/api/chat", { conversation_id: id, context: "server", messages, ...limits }));
    assembled.push(llm.chats.at(-1)!.json!.messages as Said[]);
  }
  const naive: Said[][] = [];
  const chat = new NaiveChat(greeting.content);
  const fits = async (messages: Said[]) =>
    (await made(app.post("/api/chat/preview", { messages, ...limits }))).fits as boolean;
  for (let n = 0; n < TURNS; n++) {
    chat.say("user", question(n));
    naive.push(await chat.prompt(assembled[0]![0]!.content, fits));
    chat.say("assistant", llm.pieces.join(""));
  }
  expect(naive.at(-1)!.length, "the chat is longer than the context").toBeLessThan(2 * TURNS);
  expect(assembled.at(-1)!.at(-2)!.content).toBe(question(TURNS - 1));
  const [own, other] = [unchangedShare(assembled), unchangedShare(naive)];
  console.log(`Unchanged begin over ${TURNS} turns: assembled ${percent(own)}, naive ${percent(other)}`);
  expect(own).toBeGreaterThan(0.7);
  expect(own).toBeGreaterThan(1.5 * other);
});

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
