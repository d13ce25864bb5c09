import { expect, test } from "vitest";
import type { DialectName } from "../../../../services/llm/dialects/dialect.ts";
import { findRefusedTool, fitParameters } from "../../../../services/llm/dialects/tool_definitions.ts";
import type { JsonObject } from "../../../../services/json/type_guards.ts";

const EMPTY = { type: "object", properties: {} };

test.each<[DialectName, unknown, JsonObject | undefined]>([
  ["openai", { type: "object" }, EMPTY],
  ["openai", undefined, EMPTY],
  ["openai", null, EMPTY],
  ["azure", {}, EMPTY],
  ["mistral", { type: "object" }, EMPTY],
  ["anthropic", undefined, EMPTY],
  ["gemini", { type: "object" }, undefined],
])("%s gets %j as %j", (dialect, given, sent) => {
  expect(fitParameters(dialect, given)).toEqual(sent);
});

test("fills objects and arrays inside of a schema, and changes nothing else", () => {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: {
      where: { type: "object", description: "a place" },
      names: { type: "array", minItems: 1 },
      some: { anyOf: [{ type: "object" }, { type: "null" }] },
    },
    required: ["where"],
    additionalProperties: false,
  };
  expect(fitParameters("openai", schema)).toEqual({
    ...schema,
    properties: {
      where: { type: "object", description: "a place", properties: {} },
      names: { type: "array", minItems: 1, items: {} },
      some: { anyOf: [EMPTY, { type: "null" }] },
    },
  });
});

test.each<DialectName>(["openai", "anthropic"])("%s gets alternatives at the top level as properties", (dialect) => {
  const schema = {
    type: "object",
    properties: { unit: { type: "string" } },
    oneOf: [
      { properties: { city: { type: "string" } }, required: ["city", "unit"] },
      { properties: { zip: { type: "string" } }, required: ["zip", "unit"] },
    ],
  };
  expect(fitParameters(dialect, schema)).toEqual({
    type: "object",
    properties: { city: { type: "string" }, zip: { type: "string" }, unit: { type: "string" } },
    required: ["unit"],
  });
  expect(fitParameters("mistral", schema)).toEqual(schema);
});

test.each<[unknown, unknown]>([
  [{ type: "string", const: "on" }, { type: "string", enum: ["on"] }],
  [{ enum: [1, 2], type: "integer" }, { type: "integer", description: "One of: 1, 2." }],
  [{ enum: ["a", null] }, { type: "string", enum: ["a"], nullable: true }],
  [{ type: ["string", "null"] }, { type: "string", nullable: true }],
  [{ type: ["string", "integer"] }, { anyOf: [{ type: "string" }, { type: "integer" }] }],
  [{ type: "integer", exclusiveMinimum: 0, multipleOf: 2 }, { type: "integer", minimum: 1 }],
  [{ type: "string", format: "uri", description: "A page." }, {
    type: "string",
    description: "A page. Format: uri.",
  }],
  [{ type: "string", format: "date-time" }, { type: "string", format: "date-time" }],
  [{ type: "array" }, { type: "array", items: { type: "string" } }],
  [{ oneOf: [{ type: "string" }, { type: "null" }] }, { type: "string", nullable: true }],
  [{ oneOf: [{ type: "string" }, { type: "integer" }] }, { anyOf: [{ type: "string" }, { type: "integer" }] }],
  [{ $ref: "#/$defs/place" }, { type: "object", properties: { city: { type: "string" } }, required: ["city"] }],
  [{ allOf: [{ $ref: "#/$defs/place" }, { description: "Where" }] }, {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    description: "Where",
  }],
  [{ $ref: "#/$defs/loop" }, { type: "object", properties: { next: { type: "object" } } }],
  [{ type: "object", additionalProperties: { type: "string" } }, { type: "object" }],
  [{}, { type: "string" }],
])("Gemini gets the property %j as %j", (given, sent) => {
  const schema = {
    $schema: "x",
    additionalProperties: false,
    type: "object",
    properties: { p: given },
    required: ["p", "missing"],
    $defs: {
      place: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      loop: { type: "object", properties: { next: { $ref: "#/$defs/loop" } } },
    },
  };
  expect(fitParameters("gemini", schema)).toEqual({ type: "object", properties: { p: sent }, required: ["p"] });
});

test("llama.cpp gets no pattern for a part of a text", () => {
  const schema = (pattern: string) => ({ type: "object", properties: { id: { type: "string", pattern } } });
  expect(fitParameters("llama.cpp", schema("^a+$"))).toEqual(schema("^a+$"));
  expect(fitParameters("llama.cpp", schema("a+"))).toEqual({ type: "object", properties: { id: { type: "string" } } });
});

test("a schema of any depth is accepted", () => {
  let schema: JsonObject = { type: "string" };
  for (let depth = 0; depth < 5_000; depth++) schema = { type: "object", properties: { next: schema } };
  for (const dialect of ["openai", "gemini"] as const) expect(fitParameters(dialect, schema)).toMatchObject(EMPTY);
});

const TOOLS = ["look", "list", "mark"].map((name) => ({ type: "function", function: { name } }));

test.each([
  ["Invalid schema for function 'mark': object schema missing properties. tools[2].function.parameters", 2],
  ["Unknown name \"x\" at 'tools[0].function_declarations[1].parameters'", 1],
  ["tools.1.custom.input_schema: JSON schema is invalid", 1],
  ['{"detail":[{"loc":["body","tools",2,"function"],"msg":"bad"}]}', 2],
  ["Invalid schema for function 'list': bad", 1],
  ["tools[7] is invalid", undefined],
  ["This model doesn't support tools", undefined],
  ["The model `look` doesn't exist", undefined],
])("finds the refused tool in %j: %s", (text, index) => {
  expect(findRefusedTool(text, TOOLS)).toBe(index);
});
