import { expect, test } from "vitest";
import { parseFacts, type ProposalQuestion } from "../../../services/memories/proposal_call.ts";

const question: ProposalQuestion = {
  user: "Ada",
  hasPersona: false,
  notes: [{ id: "n1", text: "Ada lives in Bern." }],
  messages: [
    { id: "m1", name: "Ada", text: "I moved to Oslo last week." },
    { id: "m2", name: "Fox", text: "How do you like it?" },
    { id: "m3", name: "Ada", text: "I miss my violin." },
  ],
};
const fact = { text: "Ada lives in Oslo.", scope: "everything", replaces: "n1", messageId: "m1" };
const answer = `{"proposals":[{"text":"Ada lives in Oslo.","scope":"everything","replaces":"n1"}]}`;

test.each([
  answer,
  `Here you are:\n\`\`\`json\n${answer}\n\`\`\`\nAnything else?`,
  `<think>{"proposals": [1]} maybe</think>${answer}`,
  `[{"text":"Ada lives in Oslo.","replaces":"n1","message":1}]`,
])("reads the fact in %j", (text) => {
  expect(parseFacts(text, question)).toEqual([fact]);
});

test("ignores unknown notes, facts without text and unknown scopes, and finds the message by its words", () => {
  const list = [{ text: "Ada plays the violin.", scope: "all", replaces: "other" }, { text: " " }, 7, "Ada likes it"];
  expect(parseFacts(JSON.stringify({ proposals: list }), question)).toEqual([
    { text: "Ada plays the violin.", scope: "everything", messageId: "m3" },
    { text: "Ada likes it", scope: "everything", messageId: "m3" },
  ]);
});

test("accepts an empty list as an answer, but not text without JSON", () => {
  expect(parseFacts(`{"proposals": []}`, question)).toEqual([]);
  expect(parseFacts("I found nothing.", question)).toBeUndefined();
  expect(parseFacts(`{"other": 1}`, question)).toBeUndefined();
});
