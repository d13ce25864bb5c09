import { expect, test } from "vitest";
import {
  chooseMemories,
  formatMemories,
  isFor,
  isSameStatement,
  type MemoryScope,
  type UsableMemory,
} from "../../../services/memories/memory.ts";

test.each([
  ["Mira likes tea.", "mira likes TEA"],
  ["The user's sister lives in Berlin.", "User's sister lives in Berlin"],
  ["Mira plays the violin every Sunday morning", "Every Sunday morning Mira plays violin"],
  ["Ada trinkt gern grünen Tee.", "Ada trinkt gern den grünen Tee"],
  ["ミラは紅茶が好きです。", "ミラは紅茶が好きです"],
])("%j means the same as %j", (one, other) => {
  expect(isSameStatement(one, other)).toBe(true);
  expect(isSameStatement(other, one)).toBe(true);
});

test.each([
  ["The user's sister lives in Berlin.", "The user's sister lives in Bergen."],
  ["Mira drinks coffee in the early morning hours", "Mira doesn't drink coffee in the early morning hours"],
  ["The cat of the user is 7 years old", "The cat of the user is 9 years old"],
  ["Mira likes tea", "Mira likes trains"],
  ["ミラは紅茶が好きです。", "ミラは紅茶が好きではない。"],
  ["Likes tea", "Has a dog"],
])("%j means something else than %j", (one, other) => {
  expect(isSameStatement(one, other)).toBe(false);
  expect(isSameStatement(other, one)).toBe(false);
});

test.each<[MemoryScope, boolean]>([
  [{ kind: "everything" }, true],
  [{ kind: "character", id: "fox" }, true],
  [{ kind: "character", id: "fox", personaId: "ada" }, true],
  [{ kind: "character", id: "fox", personaId: "bob" }, false],
  [{ kind: "character", id: "owl" }, false],
  [{ kind: "persona", id: "ada" }, true],
  [{ kind: "persona", id: "bob" }, false],
  [{ kind: "folder", id: "Work" }, true],
  [{ kind: "folder", id: "Home" }, false],
])("scope %j applies to a chat of Ada with the fox at work: %s", (scope, expected) => {
  expect(isFor(scope, { characterId: "fox", personaId: "ada", folder: "Work" })).toBe(expected);
});

const note = (id: string, createdAtMs: number, more: Partial<UsableMemory["fields"]> = {}, usedAtMs = createdAtMs) => ({
  id,
  version: 1,
  createdAtMs,
  updatedAtMs: createdAtMs,
  usedAtMs,
  fields: {
    text: `note ${id} ${"word ".repeat(10)}`,
    scope: { kind: "everything" } as MemoryScope,
    pinned: false,
    ...more,
  },
});
const idsOf = ({ sent }: { sent: { id: string }[] }) => sent.map(({ id }) => id);
const chat = { characterId: "fox" };
/** Space for two of three. */
const TWO = chooseMemories([note("a", 1)], chat, 1_000).sent[0]!.tokens * 2.5;

test("sends notes in the order of their creation, regardless of the order of the list", () => {
  const notes = [note("c", 3), note("a", 1), note("b", 2)];
  expect(idsOf(chooseMemories(notes, chat, 1_000))).toEqual(["a", "b", "c"]);
  expect(chooseMemories(notes.toReversed(), chat, 1_000)).toEqual(chooseMemories(notes, chat, 1_000));
  const [before, after] = [notes, [...notes, note("d", 4)]].map((all) =>
    formatMemories(chooseMemories(all, chat, 1_000).sent)
  );
  expect(after!.startsWith(before!.slice(0, -2)), "a new note leaves the text before it").toBe(true);
});

test("prefers pinned notes, then narrow scopes, then those that were confirmed last", () => {
  const narrow = note("narrow", 1, { scope: { kind: "character", id: "fox" } });
  const [pinned, old, fresh] = [note("pinned", 0, { pinned: true }), note("old", 1), note("fresh", 2)];
  const confirmed = note("confirmed", 1, {}, 9);
  expect(idsOf(chooseMemories([narrow, old, pinned], chat, TWO))).toEqual(["pinned", "narrow"]);
  expect(idsOf(chooseMemories([narrow, old, fresh], chat, TWO))).toEqual(["narrow", "fresh"]);
  expect(idsOf(chooseMemories([confirmed, old, fresh], chat, TWO))).toEqual(["confirmed", "fresh"]);
  expect(chooseMemories([confirmed, old, fresh], chat, TWO).leftOut).toEqual(["old"]);
});

test("sends no notes of other scopes, and each note as one line", () => {
  const other = note("other", 1, { scope: { kind: "character", id: "owl" } });
  expect(chooseMemories([other], chat, 1_000)).toEqual({ sent: [], leftOut: [] });
  const { sent } = chooseMemories([note("a", 1, { text: "one\n- two" })], chat, 1_000);
  expect(formatMemories(sent)).toBe("[Notes from earlier chats:\n- one / - two\n]");
  expect(formatMemories([])).toBe("");
});
