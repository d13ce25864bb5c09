/**
 * Everything that takes long with a large card: parsing, changing, writing. Runs at once for small cards, and in children
 * of the sandbox for large ones.
 */
import { createHash } from "node:crypto";
import { AppError, getErrorMessage } from "../../errors.ts";
import type { LedgerEntry } from "../../json/ledger.ts";
import { parseJsonBody } from "../../json/json_body.ts";
import { asArray, asObject, isJsonObject, type JsonObject } from "../../json/type_guards.ts";
import type { SandboxHost } from "../../platform/sandbox/child.ts";
import { RemoteFile } from "../../platform/sandbox/remote_file.ts";
import { type CharxPlan, planCharx } from "../charx/charx_plan.ts";
import { removeEmbeddedAssets, withMainIcon } from "../charx/charx_format.ts";
import { embedCard, parsePngCard } from "../png/png_card.ts";
import {
  type Card,
  MAX_CARD_BYTES,
  parseCard,
  parseCardText,
  serializeCard,
  toV2,
  unwrapCard,
  withoutFolder,
} from "./card.ts";
import { parseCardBytes } from "./card_file.ts";
import { createWholeCardLedger } from "./card_ledger.ts";
import { createReader, readCard } from "./card_reader.ts";

/** What the bytes of a card are: a PNG or JSON of a card folder, or any file that someone imports. */
export type CardSource = "png" | "json" | "any";

/** Changes of a card, in this order. */
export interface CardEdits {
  /** Removes the folder, see `withoutFolder`. */
  dropsFolder?: boolean;
  /** The URI of the main icon, see `withMainIcon`. */
  mainIcon?: string;
  /** Removes CHARX assets, see `removeEmbeddedAssets`. */
  dropsAssets?: { hasImage: boolean };
  /** New texts, and fields to merge into extensions. */
  set?: { name: string; description: string; extensions: Record<string, JsonObject> };
}

/** A file to write. */
export type CardFormatOptions =
  /** Into a PNG. `"v2"` omits `ccv3`. */
  | { kind: "png"; versions?: "v2" }
  | { kind: "json"; isV2?: boolean }
  /** JSON to share: indented, if it can be imported again. */
  | { kind: "shared_json" };

/** Parses a card. @throws {AppError} `unprocessable`, `too_large` */
export function parseCardSource(source: CardSource, bytes: Uint8Array): Card {
  if (source === "any") return parseCardBytes(bytes).card;
  return source === "png" ? parsePngCard(bytes) : parseCardText(bytes);
}

/** Returns a changed card. */
export function editCard(card: Card, { dropsFolder, mainIcon, dropsAssets, set }: CardEdits): Card {
  let edited = dropsFolder ? withoutFolder(card) : card;
  if (mainIcon !== undefined) edited = withMainIcon(edited, mainIcon);
  if (dropsAssets !== undefined) edited = removeEmbeddedAssets(edited, dropsAssets.hasImage);
  if (set === undefined) return edited;
  const extensions = { ...edited.data.extensions };
  for (const [key, fields] of Object.entries(set.extensions)) {
    extensions[key] = { ...asObject(extensions[key]), ...fields };
  }
  return { ...edited, data: { ...edited.data, name: set.name, description: set.description, extensions } };
}

/**
 * Writes a card to a file.
 *
 * @param png The image that gets it.
 * @throws {AppError} `too_large` if it couldn't be read again; `unprocessable` for a broken PNG
 */
export function writeCard(card: Card, format: CardFormatOptions, png?: Uint8Array): Uint8Array<ArrayBuffer> {
  if (format.kind === "png") return embedCard(png!, card, { versions: format.versions });
  if (format.kind === "json") return serializeCard(format.isV2 ? toV2(card) : card, 2);
  const indented = new TextEncoder().encode(JSON.stringify(card, null, 4)); // Like SillyTavern
  return indented.length <= MAX_CARD_BYTES ? indented : new TextEncoder().encode(JSON.stringify(card));
}

/** Returns the version of a card with this JSON. */
export function hashCardText(text: string | Uint8Array): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 22);
}

/** What lists and prompts use of a card. The lists are direct members, so that they can be parsed in pieces. */
export interface CardSummary {
  /** All other fields. */
  data: JsonObject;
  alternate_greetings: unknown[];
  group_only_greetings: unknown[];
  tags: unknown[];
  assets: unknown[];
  /** Those of the lorebook, if there is one. */
  entries?: unknown[];
}

const DATA_FIELDS = [
  ...["name", "description", "personality", "scenario", "first_mes", "mes_example", "creator_notes", "nickname"],
  ...["system_prompt", "post_history_instructions", "creator", "character_version"],
];
/** Extensions that are used, with the fields of those that are objects. */
const EXTENSIONS: Record<string, readonly string[]> = {
  fav: [],
  talkativeness: [],
  world: [],
  depth_prompt: ["prompt", "depth", "role"],
  parlor: ["folder", "note"],
  "parlor/persona": ["version", "placement", "character_ids"],
};
const BOOK_FIELDS = ["name", "description", "scan_depth", "token_budget", "recursive_scanning"];
const ASSET_FIELDS = ["type", "uri", "name", "ext"];
const MAX_EMOTIONS = 2_000;
/** Maximum number of values of an extension. */
const MAX_EXTENSION_VALUES = 2_000;
/** Maximum number of values of an entry of a lorebook. Only a thousand keys of each kind are used. */
const MAX_ENTRY_VALUES = 5_000;
/** Levels of objects in an entry: extensions, those of a program, and its filter of characters. */
const ENTRY_LEVELS = 3;

/** Leaves out what only files need. What's left of unknown fields is bounded, except for texts and lists. */
function summarizeCard({ data }: Card): CardSummary {
  const { character_book: book } = data;
  const extensions: JsonObject = {};
  for (const [key, fields] of Object.entries(EXTENSIONS)) {
    const value = data.extensions[key];
    if (isJsonObject(value)) extensions[key] = summarizeFields(value, { left: MAX_EXTENSION_VALUES }, 1, fields);
    else if (!Array.isArray(value)) extensions[key] = value;
  }
  extensions.risuai = {
    emotions: asArray(asObject(data.extensions.risuai).emotions).slice(0, MAX_EMOTIONS).map((emotion) =>
      asArray(emotion).slice(0, 2).filter(isPlain)
    ),
  };
  const summary: CardSummary = {
    data: { ...pick(data, DATA_FIELDS), extensions },
    alternate_greetings: data.alternate_greetings,
    group_only_greetings: data.group_only_greetings,
    tags: data.tags,
    assets: asArray(data.assets).map((asset) => isJsonObject(asset) ? pick(asset, ASSET_FIELDS) : null),
  };
  if (book === undefined) return summary;
  summary.data.character_book = { ...pick(book, BOOK_FIELDS), entries: [] };
  summary.entries = book.entries.map((entry) => summarizeFields(entry, { left: MAX_ENTRY_VALUES }, ENTRY_LEVELS));
  return summary;
}

/** Keeps plain values and lists of them. @param fields The names of those to keep; by default all. */
function summarizeFields(
  value: JsonObject,
  values: { left: number },
  levels: number,
  fields?: readonly string[],
): JsonObject {
  const kept: JsonObject = {};
  // Not by entries: they would be created for all fields at once.
  for (const key in value) {
    if (fields !== undefined && !fields.includes(key)) continue;
    if (--values.left < 0) break;
    const field = value[key];
    if (isPlain(field)) kept[key] = field;
    else if (Array.isArray(field)) {
      const list = field.slice(0, values.left).filter(isPlain);
      values.left -= list.length;
      kept[key] = list;
    } else if (levels > 0) kept[key] = summarizeFields(field as JsonObject, values, levels - 1);
  }
  return kept;
}

function pick(value: JsonObject, fields: readonly string[]): JsonObject {
  return Object.fromEntries(fields.flatMap((field) => isPlain(value[field]) ? [[field, value[field]]] : []));
}

function isPlain(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}

/** A job of the sandbox. Its bytes are the card, and the PNG for outputs that need it. */
export interface CardOrder {
  /** `body`: that of a request, see `unwrapCard`; only for the output `card`. */
  source: CardSource | "body";
  edits?: CardEdits;
  output:
    /** The JSON of the card and of its `CardSummary`; the value has its version and its ledger. */
    | { kind: "card" }
    /** Nothing. The bytes are read by the function `file`. */
    | { kind: "check"; sizeBytes: number }
    /** A file. */
    | CardFormatOptions
    /** The content of card.json; the value is a `CharxPlan` without it. */
    | { kind: "charx"; usedPaths: string[] };
}

/** The value of a result. */
export interface CardResult {
  version?: string;
  ledger?: LedgerEntry[];
  plan?: Omit<CharxPlan, "text">;
  /** What the API checks of a body, also if its card can't be read. */
  body?: unknown;
  failure?: { code: CardFailureCode; message: string };
}

/** Why a card can't be read. */
export const CARD_FAILURES = ["unprocessable", "too_large", "invalid_json", "invalid_request"] as const;

type CardFailureCode = (typeof CARD_FAILURES)[number];

/** Runs a job. @throws {AppError} with a code of `CARD_FAILURES` */
export async function runCardOrder(
  { source, edits = {}, output }: CardOrder,
  [bytes, png]: readonly Uint8Array[],
  host: SandboxHost,
): Promise<{ value: CardResult; bytes: Uint8Array<ArrayBuffer>[] }> {
  if (output.kind === "check") {
    const { sizeBytes } = output;
    await readCard(createReader(new RemoteFile(host, sizeBytes), sizeBytes), sizeBytes, source === "png");
    return { value: {}, bytes: [] };
  }
  if (source === "body") return readBody(parseJsonBody(bytes!));
  const card = editCard(parseCardSource(source, bytes!), edits);
  if (output.kind === "charx") {
    const { text, ...plan } = await planCharx(card, png, new Set(output.usedPaths));
    return { value: { plan }, bytes: [text] };
  }
  return output.kind === "card" ? encodeCard(card) : { value: {}, bytes: [writeCard(card, output, png)] };
}

function readBody(json: unknown): { value: CardResult; bytes: Uint8Array<ArrayBuffer>[] } {
  const body = summarizeBody(json);
  try {
    const { value, bytes } = encodeCard(parseCard(unwrapCard(json)));
    return { value: { ...value, body }, bytes };
  } catch (error) {
    return { value: { ...toCardFailure(error), body }, bytes: [] };
  }
}

const DOCUMENT_FIELDS = ["id", "use", "pages"];
/** More than the API accepts. */
const MAX_BODY_DOCUMENTS = 200;
const MAX_BODY_CHARS = 5_000;

/** Returns what the API checks of a body: its type, and the documents next to its card. */
function summarizeBody(json: unknown): unknown {
  if (!isJsonObject(json)) return null;
  const shorten = (value: unknown): unknown =>
    typeof value === "string" ? value.slice(0, MAX_BODY_CHARS) : isPlain(value) ? value : [];
  const documents = Array.isArray(json.documents)
    ? json.documents.slice(0, MAX_BODY_DOCUMENTS).map((use) =>
      isJsonObject(use)
        ? Object.fromEntries(DOCUMENT_FIELDS.flatMap((field) => field in use ? [[field, shorten(use[field])]] : []))
        : shorten(use)
    )
    : isJsonObject(json.documents)
    ? {}
    : shorten(json.documents);
  return { ...typeof json.card === "object" && json.card !== null && { card: {} }, documents };
}

function encodeCard(card: Card): { value: CardResult; bytes: Uint8Array<ArrayBuffer>[] } {
  const encoder = new TextEncoder();
  const text = encoder.encode(JSON.stringify(card));
  const summary = encoder.encode(JSON.stringify(summarizeCard(card)));
  return { value: { version: hashCardText(text), ledger: createWholeCardLedger(card) }, bytes: [text, summary] };
}

/** Returns the problem of a card that can't be read. Other errors are thrown. */
export function toCardFailure(error: unknown): CardResult {
  const code = error instanceof AppError ? CARD_FAILURES.find((one) => one === error.code) : undefined;
  if (code === undefined) throw error;
  return { failure: { code, message: getErrorMessage(error) } };
}
