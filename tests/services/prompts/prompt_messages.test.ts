import { expect, test } from "vitest";
import { isTemplateRefusal, toAlternatingRoles } from "../../../services/prompts/prompt_messages.ts";

const said = (text: string) =>
  text.split(" ").map((word) => {
    const role = { s: "system", u: "user", a: "assistant" }[word[0]!]!;
    return { role, content: word };
  });
const shown = (messages: { role: string; content: unknown }[]) =>
  messages.map(({ role, content }) => `${role[0]}:${String(content).replaceAll("\n\n", "+")}`).join(" ");

test.each([
  ["s1 s2 a1 u1 s3 a2 u2 s4", "s:s1+s2 u:(The conversation begins.) a:a1 u:u1+s3 a:a2 u:u2+s4"],
  ["s1 u1 u2 a1 a2 u3", "s:s1 u:u1+u2 a:a1+a2 u:u3"],
  ["u1 a1", "u:u1 a:a1"],
  ["s1", "s:s1 u:(The conversation begins.)"],
])(
  "rewrites %s to %s, and merges the system message into the first message if system messages are refused",
  (given, strict) => {
    expect(shown(toAlternatingRoles(said(given), 0))).toBe(shown(said(given)));
    expect(shown(toAlternatingRoles(said(given), 1))).toBe(strict);
    const folded = strict.replace(/^s:(\S+) u:/, "u:$1+");
    expect(shown(toAlternatingRoles(said(given), 2))).toBe(folded);
  },
);

test("keeps images as content parts", () => {
  const picture = { type: "image_url", image_url: { url: "data:," } };
  const parts = [{ type: "text", text: "Look" }, picture];
  const given = [{ role: "system", content: "s" }, { role: "user", content: parts }, { role: "system", content: "n" }];
  const note = { type: "text", text: "n" };
  expect(toAlternatingRoles(given, 1)[1]).toEqual({ role: "user", content: [...parts, note] });
  expect(toAlternatingRoles(given, 2)).toEqual([{
    role: "user",
    content: [{ type: "text", text: "s" }, ...parts, note],
  }]);
});

test.each([
  ["Conversation roles must alternate user/assistant/user/assistant/...", true],
  ["System role not supported", true],
  ["System message must be at the beginning.", true],
  ["Only user and assistant roles are supported!", true],
  ["Error rendering prompt with jinja template", true],
  ["The model's maximum context length is 2048 tokens", false],
  ["The server is overloaded", false],
])("recognizes %j as a template error: %s", (message, isRefusal) => {
  expect(isTemplateRefusal(message)).toBe(isRefusal);
});

test("messages that become one have their names in the text", () => {
  const given = [
    { role: "user", content: "Hi", name: "Ann" },
    { role: "user", content: "Hello", name: "Bo" },
    { role: "assistant", content: "Hey", name: "Fox" },
  ];
  expect(toAlternatingRoles(given, 0)).toEqual(given);
  expect(toAlternatingRoles(given, 1)).toEqual([
    { role: "user", content: "Ann: Hi\n\nBo: Hello" },
    { role: "assistant", content: "Fox: Hey" },
  ]);
});
