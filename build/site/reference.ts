/** The API reference: one page for each tag of the OpenAPI document, as Markdown. */

/** The parts of an OpenAPI 3.1 document that the reference shows. @see https://spec.openapis.org/oas/v3.1.0 */
export interface OpenApiDocument {
  info: { version: string };
  paths: Record<string, Record<string, Operation>>;
  components?: { schemas?: Record<string, Schema> };
}

interface Operation {
  tags?: string[];
  summary?: string;
  description?: string;
  parameters?: Parameter[];
  requestBody?: { required?: boolean; content: Record<string, { schema?: Schema }> };
  responses?: Record<string, { description?: string; content?: Record<string, { schema?: Schema }> }>;
}

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
}

interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  description?: string;
  format?: string;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  pattern?: string;
}

/** A page of the reference. */
export interface ReferencePage {
  /** From the root of the site: `reference/characters.md`. */
  path: string;
  text: string;
}

/** Page of the schemas that several tags use. */
const SHARED = "schemas";
/** Objects in objects are shown to this depth; deeper ones are only named "object". */
const MAX_DEPTH = 3;

/** Renders all pages; the first one lists the others. */
export function renderReference(document: OpenApiDocument): ReferencePage[] {
  const tags = new Map<string, { method: string; path: string; operation: Operation }[]>();
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const tag = toSlug(operation.tags?.[0] ?? "other");
      tags.set(tag, [...tags.get(tag) ?? [], { method: method.toUpperCase(), path, operation }]);
    }
  }
  const schemas = document.components?.schemas ?? {};
  const pageOf = assignSchemas(tags, schemas);
  const names = [...tags.keys()].sort();
  const renderSchemas = (page: string, level: string) =>
    Object.keys(schemas).filter((name) => pageOf.get(name) === page).sort()
      .map((name) => `${level} ${name}\n\n${renderSchema(schemas[name]!, linksFrom(page, pageOf))}`);

  const pages = names.map((tag) => {
    const link = linksFrom(tag, pageOf);
    const operations = tags.get(tag)!.map((operation) => renderOperation(operation, link));
    const own = renderSchemas(tag, "###");
    const blocks = [`# ${toTitle(tag)}`, ...operations, ...own.length > 0 ? ["## Schemas", ...own] : []];
    return { path: `reference/${tag}.md`, text: `${blocks.join("\n\n")}\n` };
  });
  const shared = renderSchemas(SHARED, "##");
  return [
    { path: "reference/index.md", text: renderIndex(document, names, tags, shared.length > 0) },
    ...pages,
    ...shared.length > 0
      ? [{ path: `reference/${SHARED}.md`, text: `# Shared schemas\n\n${shared.join("\n\n")}\n` }]
      : [],
  ];
}

function renderIndex(
  document: OpenApiDocument,
  names: string[],
  tags: ReadonlyMap<string, { method: string; path: string; operation: Operation }[]>,
  hasShared: boolean,
): string {
  const sections = names.map((tag) => {
    const lines = tags.get(tag)!.map(({ method, path, operation }) =>
      `- \`${method} ${path}\`${operation.summary === undefined ? "" : `: ${toText(operation.summary)}`}`
    );
    return `## [${toTitle(tag)}](./${tag}.md)\n\n${lines.join("\n")}`;
  });
  return [
    "# API reference",
    `Every request of Parlor ${document.info.version}, from the OpenAPI document that a running server has at ` +
    "`/api/openapi.json`. [API](../api.md) explains the conventions: authentication, errors, streams and revisions." +
    (hasShared ? ` Schemas that several pages use are on a [page of their own](./${SHARED}.md).` : ""),
    ...sections,
  ].join("\n\n") + "\n";
}

function renderOperation(
  { method, path, operation }: { method: string; path: string; operation: Operation },
  link: (name: string) => string,
): string {
  const blocks = [`## ${toText(operation.summary ?? `${method} ${path}`)}`, `\`${method} ${path}\``];
  if (operation.description !== undefined) blocks.push(toText(operation.description));
  const parameters = operation.parameters ?? [];
  if (parameters.length > 0) {
    const rows = parameters.map((
      { name, in: place, required = false, description, schema = {} },
    ) => [`\`${name}\``, place, toType(schema, link), toNotes(schema, { required, description })]);
    blocks.push(renderTable(["Parameter", "In", "Type", "Description"], rows));
  }
  if (operation.requestBody !== undefined) blocks.push(...renderBody("Body", operation.requestBody.content, link));
  const responses = Object.entries(operation.responses ?? {});
  const isError = (status: string) => !/^[123]/.test(status);
  for (const [status, { description, content = {} }] of responses.filter(([status]) => !isError(status))) {
    const title = `Response ${status}${description === undefined ? "" : `: ${toText(description)}`}`;
    blocks.push(...renderBody(title, content, link));
  }
  const errors = responses.map(([status]) => status).filter(isError);
  if (errors.length > 0) blocks.push(`Errors: ${errors.join(", ")}. See [errors](../api.md#errors).`);
  return blocks.join("\n\n");
}

function renderBody(title: string, content: Record<string, { schema?: Schema }>, link: (name: string) => string) {
  const kinds = Object.entries(content);
  if (kinds.length === 0) return [`**${title}**, without content.`];
  return kinds.flatMap(([kind, { schema = {} }]) => {
    const rows = toRows(schema, link);
    const head = `**${title}** (\`${kind}\`): ${toType(schema, link)}`;
    return rows.length === 0 ? [head] : [head, renderFields(rows)];
  });
}

function renderSchema(schema: Schema, link: (name: string) => string): string {
  const rows = toRows(schema, link);
  const about = schema.description === undefined ? [] : [toText(schema.description)];
  return [...about, rows.length === 0 ? toType(schema, link) : renderFields(rows)].join("\n\n");
}

const renderFields = (rows: string[][]) => renderTable(["Field", "Type", "Description"], rows);

function renderTable(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

/** Lists the fields of an object, those of objects in it below it as `outer.inner`, and of lists as `outer[].inner`. */
function toRows(schema: Schema, link: (name: string) => string, prefix = "", depth = 1): string[][] {
  if (schema.$ref !== undefined || depth > MAX_DEPTH) return [];
  if (schema.items !== undefined) return toRows(schema.items, link, `${prefix}[]`, depth);
  const alternatives = schema.allOf ?? schema.oneOf ?? schema.anyOf;
  if (alternatives !== undefined) return alternatives.flatMap((part) => toRows(part, link, prefix, depth));
  const separator = prefix === "" ? "" : ".";
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const path = `${prefix}${separator}${name}`;
    const required = schema.required?.includes(name) ?? false;
    const { description } = field;
    return [
      [`\`${path}\``, toType(field, link), toNotes(field, { required, description })],
      ...toRows(field, link, path, depth + 1),
    ];
  });
}

/** Says in a few words what a value is, with links to schemas. */
function toType(schema: Schema, link: (name: string) => string): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split("/").at(-1)!;
    return `[${name}](${link(name)})`;
  }
  if (schema.enum !== undefined) return schema.enum.map(toCode).join(" or ");
  if (schema.const !== undefined) return toCode(schema.const);
  if (schema.allOf !== undefined) return schema.allOf.map((part) => toType(part, link)).join(" and ");
  const alternatives = schema.oneOf ?? schema.anyOf;
  if (alternatives !== undefined) return [...new Set(alternatives.map((part) => toType(part, link)))].join(" or ");
  if (schema.items !== undefined) return `list of ${toType(schema.items, link)}`;
  const types = [schema.type ?? "any"].flat();
  return types.map((type) => type === "array" ? "list" : type).join(" or ") +
    (schema.format === undefined ? "" : ` (${schema.format})`);
}

/** Whether a value is needed, its description and its limits. */
function toNotes(schema: Schema, { required, description }: { required: boolean; description?: string }): string {
  const notes = [
    ...required ? ["required"] : [],
    ...schema.default === undefined ? [] : [`default ${toCode(schema.default)}`],
    ...schema.minimum === undefined ? [] : [`at least ${schema.minimum}`],
    ...schema.maximum === undefined || schema.maximum >= Number.MAX_SAFE_INTEGER ? [] : [`at most ${schema.maximum}`],
    ...schema.maxLength === undefined ? [] : [`at most ${schema.maxLength} characters`],
    ...schema.pattern === undefined ? [] : [`matches \`${schema.pattern.replaceAll("|", "\\|")}\``],
  ].join(", ");
  return [toCell(description), notes].filter((part) => part !== "").join("; ");
}

/** Finds the page of each schema: that of the only tag that uses it, or the shared one. */
function assignSchemas(
  tags: ReadonlyMap<string, { operation: Operation }[]>,
  schemas: Record<string, Schema>,
): Map<string, string> {
  const users = new Map<string, Set<string>>();
  for (const [tag, operations] of tags) {
    const visit = (value: unknown) => {
      for (const [, name] of JSON.stringify(value).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)) {
        const of = users.get(name!) ?? users.set(name!, new Set()).get(name!)!;
        if (of.has(tag)) continue;
        of.add(tag);
        visit(schemas[name!]);
      }
    };
    visit(operations);
  }
  return new Map(
    Object.keys(schemas).map((name) => {
      const of = [...users.get(name) ?? []];
      return [name, of.length === 1 ? of[0]! : SHARED];
    }),
  );
}

function linksFrom(page: string, pageOf: ReadonlyMap<string, string>): (name: string) => string {
  return (name) => {
    const target = pageOf.get(name) ?? SHARED;
    return `${target === page ? "" : `./${target}.md`}#${name.toLowerCase()}`;
  };
}

/** File name of a tag: "Regex scripts" becomes `regex-scripts`. "Chat" and "chat" are one page. */
const toSlug = (tag: string) => tag.toLowerCase().replace(/[^a-z0-9]+/g, "-");
/** `regex-scripts` becomes "Regex scripts". */
const toTitle = (slug: string) =>
  slug.startsWith("openai-")
    ? "OpenAI-compatible API"
    : slug.charAt(0).toUpperCase() + slug.slice(1).replaceAll("-", " ");
/** Text as Markdown that shows exactly it; code in backticks stays code. */
const toText = (text: string) =>
  text.split(/(`[^`]*`)/).map((part) => part.startsWith("`") ? part : part.replace(/[\\*_[\]<]/g, "\\$&")).join("");
const toCell = (text = "") => toText(text).replace(/\s+/g, " ").replaceAll("|", "\\|");
const toCode = (value: unknown) => `\`${JSON.stringify(value).replaceAll("|", "\\|")}\``;
