import { expect, test } from "vitest";
import { nameChat, toPlainText } from "../../../../static/src/views/shell/chat_name.ts";

const names: Record<string, string> = { mira: "Mira", tom: "Tom" };
const people = {
  getListItem: (id: string) =>
    names[id] === undefined ? null : {
      id,
      name: names[id],
      external: false,
      has_avatar: false,
      updated_at: "",
      tags: [],
      creator: "",
      favorite: false,
      folder: null,
    },
};
const chat = { title: "The storm", character_ids: ["mira"], snippet: "*She smiles.*", message_count: 1 };

test("names a chat for its characters and what it became about", () => {
  expect(nameChat(people, chat).full).toBe("Mira: The storm");
  expect(nameChat(people, { ...chat, character_ids: ["mira", "tom"] }).full).toBe("Mira, Tom: The storm");
  expect(nameChat(people, { ...chat, character_ids: ["deleted"] }).full).toBe("The storm");
});

test.each([
  ["Mira - 2026-05-03@12h03m", "Mira: 2026-05-03@12h03m"],
  ["Mira: The storm", "Mira: The storm"],
  ["Mira at sea", "Mira: Mira at sea"],
  ["Mira", "Mira: Mira"],
  ["Mira - ", "Mira: Mira - "],
  ["Mirabel - The storm", "Mira: Mirabel - The storm"],
])("the title %j doesn't repeat the character's name", (title, full) => {
  expect(nameChat(people, { ...chat, title }).full).toBe(full);
});

test("never names a chat after the greeting's text", () => {
  expect(nameChat(people, { ...chat, title: "" }).full).toBe("Mira: New chat");
  expect(nameChat(people, { ...chat, title: "She smiles", has_greeting_title: true }).full).toBe("Mira: New chat");
  const last = { title: "Good evening", has_greeting_title: true, snippet: "I never sleep.", message_count: 3 };
  expect(nameChat(people, { ...chat, ...last }).full).toBe("Mira: I never sleep.");
});

test("names a chat without character and title after its last message, in plain text", () => {
  expect(nameChat(people, { ...chat, title: "", character_ids: [] }).full).toBe("She smiles.");
  expect(nameChat(people, { ...chat, title: "", character_ids: [], snippet: "" }).full).toBe("Untitled");
});

test.each([
  ["# Title\n\n- **one** `two`", "Title one two"],
  ["[link](https://a.example/b) and ![image](x.png)", "link and image"],
  ["<think>secret plan</think>Hello <b>you</b>", "Hello you"],
  ["<think>unfinished", ""],
  ["> quoted 3 * 4", "quoted 3 4"],
  ["git push <remote> and Promise<void>", "git push <remote> and Promise<void>"],
  ['<b>Bold</b> and <span style="col', "Bold and"],
  ["1. Flour\n2. Salt", "Flour Salt"],
  ["It was in 1998. Then came 3 + 4.", "It was in 1998. Then came 3 + 4."],
])("turns %j into plain text", (markdown, plain) => {
  expect(toPlainText(markdown)).toBe(plain);
});

test("keeps underscores within words, and drops those that mark emphasis", () => {
  expect(toPlainText("Call `read_file` in my_long_name, _please_, __now__")).toBe(
    "Call read_file in my_long_name, please, now",
  );
});
