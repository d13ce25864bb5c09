import { expect, test } from "vitest";
import { isGreetingTitle } from "../../../services/conversations/conversation.ts";
import { completeMessage, hasSameJson, type Message } from "../../../services/conversations/message.ts";

const head = (title: string) => ({ title, participants: [{ character_id: "mira" }] });
const content = `*The door creaks open.* "Good evening, Ada."`;
const greeting = completeMessage({ role: "assistant", content }, "g", "2026-01-01T00:00:00Z");

test.each([
  ["The door creaks open. Good…", true],
  ["*The door creaks open.*", true],
  ["the door creaks...", true],
  [`The door creaks open. "Good evening, Ada."`, true],
  ["The door", false],
  ["The storm of the century", false],
  ["", false],
])("recognizes that %j is the greeting's beginning: %s", (title, isGreeting) => {
  expect(isGreetingTitle(head(title), greeting)).toBe(isGreeting);
});

test("a title that repeats a message of the user, or a chat without a character, isn't a greeting's", () => {
  expect(isGreetingTitle(head("The door creaks open."), { ...greeting, role: "user" })).toBe(false);
  expect(isGreetingTitle({ title: "The door creaks open.", participants: [] }, greeting)).toBe(false);
  expect(isGreetingTitle(head("The door creaks open."), undefined)).toBe(false);
});

test("two messages have the same JSON if all fields are equal, in the same order", () => {
  const message = { id: "m", role: "user", content: "a", attachments: ["x.png"], none: null } as unknown as Message;
  const is = (other: object) => hasSameJson(message, other as Message);
  expect(is(structuredClone(message))).toBe(true);
  expect(is({ ...message, content: "b" })).toBe(false);
  expect(is({ ...message, attachments: ["y.png"] })).toBe(false);
  expect(is({ ...message, none: "null" })).toBe(false);
  expect(is({ ...message, more: 1 })).toBe(false);
  const { none: _, ...less } = message;
  expect(is(less)).toBe(false);
  const { id, ...rest } = message;
  expect(is({ ...rest, id })).toBe(false);
});
