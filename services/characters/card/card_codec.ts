/**
 * Reads and writes cards. Those that take long go to a child of the sandbox: the serving thread gets only what lists and
 * prompts use of them, and their JSON as bytes, which it never parses.
 */
import { yieldIfTickUsedUp } from "../../async/delay.ts";
import { isPng } from "../../attachments/images/png.ts";
import { AppError } from "../../errors.ts";
import { parseJsonIncrementally } from "../../json/incremental_parse.ts";
import { MAX_PARSED_BYTES, type UnparsedJson } from "../../json/json_body.ts";
import { type LedgerEntry, parseLedger } from "../../json/ledger.ts";
import { asArray, asObject, isJsonObject } from "../../json/type_guards.ts";
import { offerFile } from "../../platform/sandbox/remote_file.ts";
import { type Sandbox, SandboxFault, type SandboxFunction, type SandboxKind } from "../../platform/sandbox/sandbox.ts";
import { readPlainFile, toFileError } from "../../storage/atomic_file.ts";
import type { ZipEntry } from "../../storage/zip/zip_reader.ts";
import { type CardFiles, readCharx } from "../charx/charx.ts";
import {
  CARD_PATH,
  findMainIcon,
  IMAGE_PATH,
  isCharx,
  isSafeCharxPath,
  isZip,
  OWN_IMAGE,
  parseEmbeddedPath,
} from "../charx/charx_format.ts";
import { type CharxPlan, planCharx } from "../charx/charx_plan.ts";
import { createNotZipError } from "../charx/charx_reader.ts";
import { isCardLongerThan } from "../png/png_card.ts";
import { type Card, parseBookEntries, parseCard, startsWithBrace } from "./card.ts";
import { parseCardBytes } from "./card_file.ts";
import { isPngPath } from "./card_head.ts";
import { WHOLE_CARD_LEDGER } from "./card_ledger.ts";
import { createReader, LongCardError, readCard } from "./card_reader.ts";
import {
  CARD_FAILURES,
  type CardEdits,
  type CardFormatOptions,
  type CardOrder,
  type CardResult,
  type CardSource,
  type CardSummary,
  editCard,
  hashCardText,
  parseCardSource,
  writeCard,
} from "./card_work.ts";

/** A card that was read. */
export interface ReadCard {
  /** Of a large card, only what lists and prompts use. */
  card: Card;
  /** JSON of a large card, in UTF-8. */
  text?: Uint8Array<ArrayBuffer>;
  /** Hash of the whole card. */
  version: string;
  /** That of a large card, see `createWholeCardLedger`. */
  ledger?: LedgerEntry[];
}

/** Content of a card file. */
export interface CardFile extends ReadCard {
  /** Its image as PNG, which may contain another card. */
  avatarPng?: Uint8Array;
  /** Its image in another format, to be converted. */
  avatarImage?: Uint8Array;
  /** The other files of a CHARX: expressions, backgrounds, data of other programs. */
  others?: readonly ZipEntry[];
}

const MIB = 1024 * 1024;
/** Enough bytes to recognize the format. */
const SIGNATURE_BYTES = 4;
const MAX_DEPTH = 102;
/** Entries of a lorebook that are checked at a time. */
const STEP_ENTRIES = 500;

const KIND: SandboxKind = {
  url: new URL("./card_child.ts", import.meta.url),
  maxChildren: 2,
  maxCpuMs: 60_000,
  maxResidentBytes: 1024 * MIB,
  // A PNG with the card in both of its forms.
  maxMessageBytes: 256 * MIB,
};

/** What the child has sent. */
interface Answer {
  value: CardResult;
  bytes: Uint8Array<ArrayBuffer>[];
}

/** Reads and writes cards. */
export class CardCodec {
  readonly #sandbox: Sandbox;

  /** @param smallBytes Maximum size of the JSON of cards that are parsed at once. */
  constructor(sandbox: Sandbox, readonly smallBytes = MAX_PARSED_BYTES) {
    this.#sandbox = sandbox;
  }

  /**
   * Parses a file of a card folder.
   *
   * @param path Its extension distinguishes PNG and JSON.
   * @throws {AppError} `unprocessable`, `too_large`
   */
  async parse(path: string, bytes: Uint8Array): Promise<ReadCard> {
    return await this.#read(isPngPath(path) ? "png" : "json", bytes);
  }

  /**
   * Parses a card file in memory: PNG, JSON, WebP or JPEG. File name and media type are ignored.
   *
   * @throws {AppError} `unprocessable` for an invalid file, `too_large`
   */
  async parseAny(bytes: Uint8Array): Promise<CardFile> {
    if (!this.#isLarge("any", bytes)) {
      const { card, ...images } = parseCardBytes(bytes);
      return { ...toReadCard(card), ...images };
    }
    const image: Partial<CardFile> = isPng(bytes)
      ? { avatarPng: bytes }
      : startsWithBrace(bytes)
      ? {}
      : { avatarImage: bytes };
    return { ...await this.#read("any", bytes), ...image };
  }

  /**
   * Reads the card in the body of a request, see `unwrapCard`.
   *
   * @param check Gets the body with its `documents`, without the content of its card. What it throws comes first.
   * @throws {AppError} `invalid_json`, `invalid_request`, `unprocessable`
   */
  async parseBody<T>({ bytes }: UnparsedJson, check: (body: unknown) => T): Promise<{ card: ReadCard; checked: T }> {
    const answer = await this.#ask({ source: "body", output: { kind: "card" } }, [bytes]);
    if (!("body" in answer.value)) assertDone(answer); // It isn't JSON.
    const checked = check(answer.value.body);
    return { card: await toResult(assertDone(answer)), checked };
  }

  /**
   * Reads a card file from disk: PNG, JSON or CHARX.
   *
   * @throws {AppError} `unprocessable` for an invalid file, `too_large`, `internal`
   */
  async readFile(path: string): Promise<CardFile> {
    const begin = await readSignature(path);
    const charx = isCharx(begin) ? await readCharx(path, this.#sandbox) : undefined;
    // An image may have a ZIP appended. A file that starts like a ZIP must be one.
    if (charx === undefined && !isZip(begin)) {
      return await this.parseAny((await readPlainFile(path))?.bytes ?? new Uint8Array());
    }
    if (charx === undefined) throw createNotZipError();
    const { text, image, others } = charx;
    const read = await this.#read("json", text);
    const isAlone = others.length === 0 && image !== undefined &&
      parseEmbeddedPath(findMainIcon(read.card)?.uri) !== undefined;
    return {
      ...isAlone ? await this.edit(read, { mainIcon: OWN_IMAGE }) : read,
      ...image !== undefined && isPng(image) ? { avatarPng: image } : { avatarImage: image },
      others,
    };
  }

  /**
   * Checks that a file of a card folder has a readable card. Only the parts with the card are read.
   *
   * @throws {AppError} `unprocessable`, `too_large`
   */
  async check(path: string, file: Deno.FsFile): Promise<void> {
    const { size } = await file.stat();
    try {
      await readCard(createReader(file, size), size, isPngPath(path), this.smallBytes);
      return;
    } catch (error) {
      if (!(error instanceof LongCardError)) throw error;
    }
    const output = { kind: "check", sizeBytes: size } as const;
    await this.#run({ source: isPngPath(path) ? "png" : "json", output }, [], offerFile(file));
  }

  /** Returns a changed card. @throws {AppError} `unprocessable` */
  async edit(card: ReadCard, edits: CardEdits): Promise<ReadCard> {
    return card.text === undefined
      ? toReadCard(editCard(card.card, edits))
      : await this.#read("json", card.text, edits);
  }

  /**
   * Writes a card to a file.
   *
   * @param options.png The image that gets it; only for PNG.
   * @param options.edits Changes of the card in the file.
   * @throws {AppError} `unprocessable` for a broken PNG; `too_large` if the card couldn't be read again
   */
  async write(
    { card, text }: ReadCard,
    format: CardFormatOptions,
    { png, edits = {} }: { png?: Uint8Array; edits?: CardEdits } = {},
  ): Promise<Uint8Array<ArrayBuffer>> {
    if (text === undefined && (png === undefined || !this.#isLarge("png", png))) {
      return writeCard(editCard(card, edits), format, png);
    }
    const own = text ?? new TextEncoder().encode(JSON.stringify(card));
    const { bytes: [file] } = await this.#run({ source: "json", edits, output: format }, [own, png]);
    if (file === undefined) throw createInvalidError();
    return file;
  }

  /** Plans a CHARX. @throws {AppError} `unprocessable`, `too_large` */
  async planCharx(
    { card, text }: ReadCard,
    edits: CardEdits,
    png: Uint8Array | undefined,
    others: CardFiles | undefined,
  ): Promise<CharxPlan> {
    const usedPaths = others?.entries.map(({ path }) => path) ?? [];
    if (text === undefined) return await planCharx(editCard(card, edits), png, new Set(usedPaths));
    const order: CardOrder = { source: "json", edits, output: { kind: "charx", usedPaths } };
    const { value: { plan }, bytes: [placed] } = await this.#run(order, [text, png]);
    if (placed === undefined) throw createInvalidError();
    return { ...parsePlan(plan, new Set([...usedPaths, CARD_PATH])), text: placed };
  }

  #isLarge(source: CardSource, bytes: Uint8Array): boolean {
    if (source === "png" || source === "any" && isPng(bytes)) return isCardLongerThan(bytes, this.smallBytes);
    return bytes.length > this.smallBytes;
  }

  async #read(source: CardSource, bytes: Uint8Array, edits: CardEdits = {}): Promise<ReadCard> {
    if (!this.#isLarge(source, bytes)) return toReadCard(editCard(parseCardSource(source, bytes), edits));
    return await toResult(await this.#run({ source, edits, output: { kind: "card" } }, [bytes]));
  }

  async #run(
    order: CardOrder,
    files: [Uint8Array?, Uint8Array?],
    functions?: Record<string, SandboxFunction>,
  ): Promise<Answer> {
    return assertDone(await this.#ask(order, files, functions));
  }

  async #ask(
    order: CardOrder,
    [bytes, png]: [Uint8Array?, Uint8Array?],
    functions?: Record<string, SandboxFunction>,
  ): Promise<Answer> {
    try {
      const sent = [bytes, png].filter((one) => one !== undefined);
      const { value, bytes: found } = await this.#sandbox.run(KIND, { value: order, bytes: sent, functions });
      return { value: asObject(value), bytes: found };
    } catch (error) {
      if (!(error instanceof SandboxFault)) throw error;
      throw new AppError("unprocessable", `Can't read the character card: ${error.message}`, { cause: error });
    }
  }
}

function assertDone(answer: Answer): Answer {
  const { failure } = answer.value;
  if (failure === undefined) return answer;
  throw new AppError(CARD_FAILURES.find((code) => code === failure.code) ?? "unprocessable", String(failure.message));
}

async function toResult({ value, bytes: [text, summary] }: Answer): Promise<ReadCard> {
  if (text === undefined || summary === undefined) throw createInvalidError();
  const ledger = parseLedger(value.ledger, WHOLE_CARD_LEDGER);
  return { card: await parseSummary(summary), text, version: String(value.version).slice(0, 22), ledger };
}

/** Returns a whole card with its version. */
export function toReadCard(card: Card): ReadCard {
  return { card, version: hashCardText(JSON.stringify(card)) };
}

/** Reads what the child has sent, which may be anything: a file may have taken control of it. */
async function parseSummary(bytes: Uint8Array): Promise<Card> {
  let summary: Partial<CardSummary>;
  try {
    summary = asObject(await parseJsonIncrementally(bytes, MAX_DEPTH));
  } catch {
    throw createInvalidError();
  }
  const card = parseCard({ spec: "chara_card_v3", spec_version: "3.0", data: asObject(summary.data) });
  card.data.alternate_greetings = await keep(summary.alternate_greetings, isText);
  card.data.group_only_greetings = await keep(summary.group_only_greetings, isText);
  card.data.tags = await keep(summary.tags, isText);
  card.data.assets = await keep(summary.assets, isJsonObject);
  const { character_book: book } = card.data;
  if (book === undefined) return card;
  const entries = asArray(summary.entries);
  for (let at = 0; at < entries.length; at += STEP_ENTRIES) {
    book.entries.push(...parseBookEntries(entries.slice(at, at + STEP_ENTRIES)));
    await yieldIfTickUsedUp();
  }
  return card;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

async function keep<T>(values: unknown, isValid: (value: unknown) => value is T): Promise<T[]> {
  const kept: T[] = [];
  for (const [n, value] of asArray(values).entries()) {
    if (isValid(value)) kept.push(value);
    if (n % STEP_ENTRIES === 0) await yieldIfTickUsedUp();
  }
  return kept;
}

function parsePlan(plan: CardResult["plan"], usedPaths: Set<string>): Omit<CharxPlan, "text"> {
  const { imagePath, files } = asObject(plan) as Partial<CharxPlan>;
  const isFree = (path: unknown): path is string => isText(path) && isSafeCharxPath(path) && !usedPaths.has(path);
  const kept = asArray(files).filter((file): file is CharxPlan["files"][number] => {
    const { name, path, sizeBytes, crc } = asObject(file);
    if (!isText(name) || !isFree(path) || !Number.isSafeInteger(sizeBytes) || !Number.isSafeInteger(crc)) return false;
    usedPaths.add(path);
    return true;
  });
  return { imagePath: imagePath === undefined ? undefined : isFree(imagePath) ? imagePath : IMAGE_PATH, files: kept };
}

function createInvalidError(): AppError {
  return new AppError("unprocessable", "Can't read the character card: its reader sent an invalid result");
}

async function readSignature(path: string): Promise<Uint8Array> {
  try {
    using file = await Deno.open(path);
    const begin = new Uint8Array(SIGNATURE_BYTES);
    return begin.subarray(0, await file.read(begin) ?? 0);
  } catch (cause) {
    throw toFileError(`Can't read "${path}"`, cause);
  }
}
