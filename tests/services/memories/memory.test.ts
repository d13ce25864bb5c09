import { expect, test } from "vitest";
import { appliesTo, type MemoryScope, saysTheSame } from "../../../services/memories/memory.ts";

test.each([
  ["Mira likes tea.", "mira likes TEA"],
  ["The user's sister lives in Berlin.", "User's sister lives in Berlin"],
  ["Mira plays the violin every Sunday morning", "Every Sunday morning Mira plays violin"],
  ["Ada trinkt gern grünen Tee.", "Ada trinkt gern den grünen Tee"],
  ["ミラは紅茶が好きです。", "ミラは紅茶が好きです"],
])("%j says the same as %j", (one, other) => {
  expect(saysTheSame(one, other)).toBe(true);
  expect(saysTheSame(other, one)).toBe(true);
});

test.each([
  ["The user's sister lives in Berlin.", "The user's sister lives in Bergen."],
  ["Mira drinks coffee in the early morning hours", "Mira doesn't drink coffee in the early morning hours"],
  ["The cat of the user is 7 years old", "The cat of the user is 9 years old"],
  ["Mira likes tea", "Mira likes trains"],
  ["ミラは紅茶が好きです。", "ミラは紅茶が好きではない。"],
  ["Likes tea", "Has a dog"],
])("%j says something else than %j", (one, other) => {
  expect(saysTheSame(one, other)).toBe(false);
  expect(saysTheSame(other, one)).toBe(false);
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
  expect(appliesTo(scope, { characterId: "fox", personaId: "ada", folder: "Work" })).toBe(expected);
});
