import { expect, test } from "vitest";
import { parseModelName, toSlug } from "../../../services/openai_api/openai_models.ts";

test.each([
  ["default", { kind: "default" }],
  ["character:mira", { kind: "character", character: "mira" }],
  ["character:Mira of/the moor", { kind: "character", character: "Mira of/the moor" }],
  ["connection:c1/llama", { kind: "connection", connectionId: "c1", model: "llama" }],
  ["connection:c1/org/model:free", { kind: "connection", connectionId: "c1", model: "org/model:free" }],
])("reads %s", (name, parsed) => {
  expect(parseModelName(name)).toEqual(parsed);
});

test.each([
  "",
  "Default",
  "gpt-4o",
  "character",
  "character:",
  "connection:c1",
  "connection:c1/",
  "connection:/m",
  "persona:x",
])(
  "rejects %j and says where the models are listed",
  (name) => {
    expect(() => parseModelName(name)).toThrow(expect.objectContaining({
      code: "not_found",
      message: expect.stringContaining("/api/v1/models"),
      issues: [expect.objectContaining({ path: "model" })],
    }));
  },
);

test.each([
  ["Ada Lovelace", "ada-lovelace"],
  ["  Älva, of the Moor! ", "älva-of-the-moor"],
  ["森の守り人 2", "森の守り人-2"],
  ["Zoe\u0308", "zoë"],
  ["!?", ""],
])("the slug of %j is %j", (name, slug) => {
  expect(toSlug(name)).toBe(slug);
});
