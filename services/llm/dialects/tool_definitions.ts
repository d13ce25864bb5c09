/** Adapts tool definitions to the JSON schemas that a server accepts (docs/protocols/llm.md, "Tool definitions"). */
import { isJsonObject, type JsonObject } from "../../json/type_guards.ts";
import type { DialectName } from "./dialect.ts";

/** Maximum depth of a schema. Deeper parts become schemas that accept everything. */
const MAX_DEPTH = 30;
/** Keywords that combine schemas. OpenAI and Anthropic refuse them at the top level, also behind OpenRouter. */
const COMBINATORS = ["allOf", "anyOf", "oneOf"];
const WITHOUT_TOP_LEVEL_COMBINATORS: readonly DialectName[] = ["openai", "azure", "anthropic", "openrouter"];

/**
 * Returns OpenAI tool definitions with parameters that the server accepts. What isn't a function stays as it is.
 *
 * MCP allows schemas without `properties`, which OpenAI and Azure refuse. Gemini refuses all keywords outside of its own
 * list.
 *
 * @see https://platform.openai.com/docs/guides/function-calling
 * @see https://ai.google.dev/api/caching#Schema
 */
export function fitToolDefinitions(dialect: DialectName, tools: unknown): unknown {
  if (!Array.isArray(tools)) return tools;
  return tools.map((tool) => {
    if (!isJsonObject(tool) || !isJsonObject(tool.function)) return tool;
    const { parameters, ...rest } = tool.function;
    const fitted = fitParameters(dialect, parameters);
    return { ...tool, function: { ...rest, ...(fitted !== undefined && { parameters: fitted }) } };
  });
}

/** Returns the schema of a tool's parameters; `undefined` if the server wants none for a tool without parameters. */
export function fitParameters(dialect: DialectName, parameters: unknown): JsonObject | undefined {
  const given = isJsonObject(parameters) ? parameters : {};
  const whole: JsonObject = { ...given, type: "object" };
  if (dialect === "gemini") {
    const fitted = new GeminiSchema(whole).convert(whole);
    return isJsonObject(fitted.properties) ? fitted : undefined;
  }
  const flat = WITHOUT_TOP_LEVEL_COMBINATORS.includes(dialect) ? mergeCombinators(whole) : whole;
  const filled = fill(flat, 0, dialect === "llama.cpp");
  return { ...filled, properties: isJsonObject(filled.properties) ? filled.properties : {} };
}

/** Adds `properties` to objects and `items` to arrays, which OpenAI requires. */
function fill(schema: JsonObject, depth: number, dropsPatterns: boolean): JsonObject {
  if (depth > MAX_DEPTH) return {};
  const filled: JsonObject = {};
  for (const [name, value] of Object.entries(schema)) {
    // llama.cpp's grammars only know patterns for the whole text.
    if (dropsPatterns && name === "pattern" && typeof value === "string" && !/^\^[^]*\$$/.test(value)) continue;
    filled[name] = fillValue(name, value, depth, dropsPatterns);
  }
  if (filled.type === "object" && filled.properties === undefined && depth > 0) filled.properties = {};
  if (filled.type === "array" && filled.items === undefined && filled.prefixItems === undefined) filled.items = {};
  return filled;
}

function fillValue(name: string, value: unknown, depth: number, dropsPatterns: boolean): unknown {
  const next = (inner: unknown) => isJsonObject(inner) ? fill(inner, depth + 1, dropsPatterns) : inner;
  // `true` accepts everything, as `{}` does, which every server can read.
  if (name === "properties" && isJsonObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, inner === true ? {} : next(inner)]));
  }
  if (["$defs", "definitions", "patternProperties"].includes(name) && isJsonObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, next(inner)]));
  }
  if (["items", "additionalProperties", "not", "contains"].includes(name)) return next(value);
  if ([...COMBINATORS, "prefixItems"].includes(name) && Array.isArray(value)) return value.map(next);
  return value;
}

/**
 * Merges `allOf`, `anyOf` and `oneOf` of an object into its properties. Only what every alternative requires stays
 * required.
 */
function mergeCombinators(schema: JsonObject): JsonObject {
  const { allOf, anyOf, oneOf, not: _, enum: __, ...rest } = schema;
  const all = [allOf].flat().filter(isJsonObject).map(mergeCombinators);
  const groups = [anyOf, oneOf].filter((group) => Array.isArray(group)).map((group) =>
    (group as unknown[]).filter(isJsonObject).map(mergeCombinators)
  );
  if (all.length === 0 && groups.length === 0) return rest;
  const required = new Set([rest, ...all].flatMap(readRequired));
  for (const group of groups) {
    const [first, ...others] = group.map(readRequired);
    for (const name of first ?? []) if (others.every((names) => names.includes(name))) required.add(name);
  }
  const properties: JsonObject = {};
  for (const part of [...groups.flat(), ...all, rest]) {
    if (isJsonObject(part.properties)) Object.assign(properties, part.properties);
  }
  return { ...rest, properties, ...(required.size > 0 && { required: [...required] }) };
}

function readRequired({ required }: JsonObject): string[] {
  return Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
}

/** The keywords of Gemini's schemas whose value stays as it is. */
const GEMINI_KEYWORDS = [
  ...["title", "description", "default", "minItems", "maxItems", "minProperties", "maxProperties", "minLength"],
  ...["maxLength", "pattern", "minimum", "maximum", "nullable", "propertyOrdering"],
];
const GEMINI_FORMATS = ["date-time", "enum", "int32", "int64", "float", "double"];

/** Converts a JSON schema to Gemini's subset of OpenAPI schemas. What it can't express goes into the description. */
class GeminiSchema {
  readonly #root: JsonObject;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  convert(given: JsonObject, depth = 0, seen: readonly string[] = []): JsonObject {
    if (depth > MAX_DEPTH) return { type: "string" };
    if (typeof given.$ref === "string") return this.#resolve(given, depth, seen);
    const schema = mergeAll(given, (ref) => this.#find(ref));
    const next = (inner: unknown) => this.convert(isJsonObject(inner) ? inner : {}, depth + 1, seen);
    const converted: JsonObject = {};
    const notes: string[] = [];
    for (const name of GEMINI_KEYWORDS) if (schema[name] !== undefined) converted[name] = schema[name];
    if (GEMINI_FORMATS.includes(String(schema.format))) converted.format = schema.format;
    else if (typeof schema.format === "string") notes.push(`Format: ${schema.format}.`);
    const types = [schema.type].flat().filter((type) => typeof type === "string");
    const [type, ...otherTypes] = types.filter((name) => name !== "null");
    if (types.includes("null")) converted.nullable = true;
    if (otherTypes.length > 0) converted.anyOf = [type, ...otherTypes].map((name) => next({ type: name }));
    else if (type !== undefined) converted.type = type;
    this.#addValues(schema, converted, notes);
    addLimits(schema, converted);
    const alternatives = [schema.anyOf ?? schema.oneOf ?? []].flat().filter(isJsonObject);
    const some = alternatives.filter((one) => one.type !== "null");
    if (some.length < alternatives.length) converted.nullable = true;
    if (some.length === 1 && converted.type === undefined) {
      return { ...next(some[0]), ...converted, ...describe(converted, notes) };
    }
    if (some.length > 0 && depth > 0) converted.anyOf = some.map(next);
    if (isJsonObject(schema.properties) && Object.keys(schema.properties).length > 0) {
      const properties = Object.entries(schema.properties).map(([name, inner]) => [name, next(inner)]);
      converted.properties = Object.fromEntries(properties);
      const names = Object.keys(schema.properties);
      const required = readRequired(schema).filter((name) => names.includes(name));
      if (required.length > 0) converted.required = required;
    }
    if (converted.type === "array") converted.items = next(schema.items);
    // A schema without a type accepts everything.
    if (converted.type === undefined && converted.anyOf === undefined) {
      converted.type = isJsonObject(schema.properties) ? "object" : "string";
    }
    return { ...converted, ...describe(converted, notes) };
  }

  /** Adds `enum` and `const`. Gemini only knows values that are strings. */
  #addValues(schema: JsonObject, converted: JsonObject, notes: string[]): void {
    const values = Array.isArray(schema.enum) ? schema.enum : schema.const === undefined ? [] : [schema.const];
    const allowed = values.filter((value) => value !== null && value !== "");
    if (values.includes(null)) converted.nullable = true;
    if (allowed.length === 0) return;
    if (allowed.every((value) => typeof value === "string")) {
      converted.type = "string";
      converted.enum = allowed;
    } else notes.push(`One of: ${allowed.map((value) => JSON.stringify(value)).join(", ")}.`);
  }

  /** Finds the schema of a reference inside of the root. */
  #find(ref: string): JsonObject | undefined {
    if (!ref.startsWith("#")) return undefined;
    let found: unknown = this.#root;
    for (const key of ref.slice(1).split("/").filter((part) => part !== "")) {
      const name = key.replaceAll("~1", "/").replaceAll("~0", "~");
      found = isJsonObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
    }
    return isJsonObject(found) ? found : undefined;
  }

  /** Replaces a reference by its schema. A recursive one becomes an object. */
  #resolve({ $ref, ...rest }: JsonObject, depth: number, seen: readonly string[]): JsonObject {
    const ref = String($ref);
    const found = this.#find(ref);
    if (found === undefined || seen.includes(ref)) {
      return { type: "object", ...(typeof rest.description === "string" && { description: rest.description }) };
    }
    return this.convert({ ...found, ...rest }, depth + 1, [...seen, ref]);
  }
}

/** Merges the parts of `allOf`. @param find Finds the schema of a reference. */
function mergeAll(
  { allOf, ...rest }: JsonObject,
  find: (ref: string) => JsonObject | undefined,
  depth = 0,
): JsonObject {
  if (depth > MAX_DEPTH) return rest;
  const parts = [allOf].flat().filter(isJsonObject).map(({ $ref, ...part }) =>
    mergeAll({ ...(typeof $ref === "string" && find($ref)), ...part }, find, depth + 1)
  );
  if (parts.length === 0) return rest;
  const whole: JsonObject = Object.assign({}, ...parts, rest);
  const properties = Object.assign({}, ...[...parts, rest].map((part) => part.properties));
  const required = [...new Set([...parts, rest].flatMap(readRequired))];
  return {
    ...whole,
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required }),
  };
}

/** Adds exclusive limits as inclusive ones. They differ by 1 for integers. */
function addLimits(schema: JsonObject, converted: JsonObject): void {
  const step = schema.type === "integer" ? 1 : 0;
  const { exclusiveMinimum: low, exclusiveMaximum: high } = schema;
  if (typeof low === "number") converted.minimum ??= low + step;
  if (typeof high === "number") converted.maximum ??= high - step;
}

function describe({ description }: JsonObject, notes: readonly string[]): JsonObject {
  if (notes.length === 0) return {};
  return { description: [typeof description === "string" ? description : "", ...notes].join(" ").trim() };
}

// Refusals of single tools.

/** Returns the name of a tool in a request, in the format of any protocol. */
export function getToolName(tool: unknown): string {
  if (!isJsonObject(tool)) return "";
  return String((isJsonObject(tool.function) ? tool.function.name : tool.name) ?? "");
}

/** Paths to one tool in errors: OpenAI, Gemini, Anthropic, and FastAPI's locations. */
const TOOL_PATHS = [
  /function_declarations\[(\d+)\]/,
  /\btools\[(\d+)\]/,
  /\btools\.(\d+)\b/,
  /["']tools["'],\s*(\d+)/,
];

/**
 * Finds the tool that an error gives as the reason for rejecting a request: by its position, or by its name next to
 * words about definitions.
 *
 * @param text The body of the response.
 * @returns Its index.
 */
export function findRefusedTool(text: string, tools: readonly unknown[]): number | undefined {
  for (const path of TOOL_PATHS) {
    const index = path.exec(text)?.[1];
    if (index !== undefined && Number(index) < tools.length) return Number(index);
  }
  if (!/schema|parameters|definition/i.test(text)) return undefined;
  const at = tools.findIndex((tool) => {
    const name = getToolName(tool);
    return name !== "" &&
      [`'${name}'`, `"${name}"`, `\`${name}\``, `\\"${name}\\"`].some((quoted) => text.includes(quoted));
  });
  return at < 0 ? undefined : at;
}
