import { describe, expect, test } from "vitest";
import { continueText, continueWholeText } from "../../../services/chat/continuation.ts";
import type { ChatEvent, ChatMessage } from "../../../services/llm/chat_event.ts";

function callWith(...messages: ChatMessage[]) {
  return { model: "m", params: {}, messages: [{ role: "user", content: "Hi" }, ...messages] };
}
const assistant = (content: string): ChatMessage => ({ role: "assistant", content });

/** Sends a text in pieces of this length and returns what is left of it. */
async function readText(
  sent: Parameters<typeof continueText>[0],
  before: string,
  text: string,
  pieceLength: number,
): Promise<string> {
  async function* batches(): AsyncIterable<ChatEvent[]> {
    for (let at = 0; at < text.length; at += pieceLength) {
      yield [{ type: "text", text: text.slice(at, at + pieceLength) }];
    }
    yield [{ type: "finish", reason: "stop" }, { type: "usage", usage: {} }];
  }
  let received = "";
  const others: string[] = [];
  for await (const events of continueText(sent, before, batches())) {
    for (const event of events) {
      if (event.type !== "text") others.push(event.type);
      else received += event.text;
      if (event.type === "text") expect(others).toEqual([]);
    }
  }
  expect(others).toEqual(["finish", "usage"]);
  return received;
}

describe("a reply that was sent to be continued", () => {
  test.each([
    ["repeated by the server", "The sea is", "The sea is blue.", " blue."],
    ["not repeated", "The sea is", " blue.", " blue."],
    ["repeated after white space of the template", "The sea is", "\n The sea is blue.", " blue."],
    ["repeated without the white space at its end", "The sea is\n\n", "The sea is\nIt was blue.", "It was blue."],
    ["repeated with the white space at its end", "The sea is\n\n", "The sea is\n\n  blue.", "  blue."],
    ["repeated in part only", "The sea is", "The sea was blue.", "The sea was blue."],
    ["repeated and nothing more", "The sea is", "The sea is", ""],
    ["whose start is the whole continuation", "Haha, no", "Ha", "Ha"],
    ["with white space at its start", "  So", "  So be it", " be it"],
  ])("%s", async (_, stored, answer, added) => {
    const call = callWith(assistant(stored));
    for (const pieceLength of [1, 3, 100]) {
      expect(await readText({ call }, stored, answer, pieceLength)).toBe(added);
    }
    expect(continueWholeText({ call }, answer)).toBe(added);
  });

  test("a model that is asked in words starts after the separator", async () => {
    const call = callWith(assistant("One."), { role: "user", content: "Go on" });
    expect(await readText({ call, joint: "\n\n" }, "One.", " Two.", 2)).toBe("\n\nTwo.");
    expect(await readText({ call, joint: "\n\n" }, "One. ", "Two.", 2)).toBe("Two.");
  });
});

describe("the start of a reply that a preset sends", () => {
  test.each([
    ["is stored once where the server leaves it out", "Sure, ", "here it is", "Sure, here it is"],
    ["is stored once where the server repeats it", "Sure, ", "Sure, here it is", "Sure, here it is"],
    ["has no second space", "Sure, ", " here it is", "Sure, here it is"],
    ["isn't stored if it only opens the reasoning", "<think>\n", "well</think>Hi", "well</think>Hi"],
    ["isn't stored if it only names the speaker", "Ada:", " Hi", " Hi"],
    ["isn't a reply by itself", "Sure, ", "", ""],
  ])("%s", async (_, prefill, answer, stored) => {
    const call = callWith(assistant(prefill));
    for (const pieceLength of [1, 4, 100]) {
      expect(await readText({ call, prefill }, "", answer, pieceLength)).toBe(stored);
    }
    expect(continueWholeText({ call, prefill }, answer)).toBe(stored);
  });
});
