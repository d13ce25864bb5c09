import { expect, test } from "vitest";
import { isGreetingTitle } from "../../../services/conversations/conversation.ts";
import { completeMessage } from "../../../services/conversations/message.ts";

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
