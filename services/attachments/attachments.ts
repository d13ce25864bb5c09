/** Sealed pictures by name. Who refers to them is told by their owners in their own writes; see attachment_rows.ts. */
import { yieldToEventLoop } from "../async/yield_to_event_loop.ts";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { uuidV7 } from "../crypto/random.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError, messageOf } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Log } from "../log.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import { KeyedMutex } from "../async/keyed_mutex.ts";
import type { Version, VersionCause, Versions } from "../storage/versions.ts";
import { nameWithEnding } from "./attachment_names.ts";
import {
  type AttachmentRow,
  AttachmentRows,
  GRACE_MS,
  graceUntil,
  keepFile,
  letFileGo,
  removeRow,
  saveRow,
} from "./attachment_rows.ts";
import { type ImageFacts, type ImageType, sniffImage } from "./images/image_type.ts";
import { attachmentFile, attachmentFileName, readSealedFile, writeSealedFile } from "../storage/sealed_file.ts";
import { type ExpectedVersion, isExpected } from "../storage/preconditions.ts";
import { wholeImage } from "./images/whole_image.ts";

/** An attachment, without its picture. */
export interface Attachment {
  name: string;
  type: ImageType;
  sizeBytes: number;
  widthPx: number;
  heightPx: number;
  /** Moves with every change. */
  version: number;
}

/** What attachments stand on. */
export interface AttachmentOptions {
  db: Database;
  /** For the purpose "attachments". */
  sealer: PurposeSealer;
  /** For the purpose "attachment names": pictures of messages are named by a keyed hash of their bytes. */
  nameSealer: Pick<PurposeSealer, "copyKey">;
  /** `<datadir>/attachments` */
  folder: string;
  /** Of one file. */
  maxBytes: number;
  trash: { put(kind: string, title: string, record: unknown): Statement; changed(): void };
  versions: Versions;
  events: EventHub;
  log: Log;
  now(): number;
}

/** Twice the largest pictures that cameras of today take. */
const MAX_PIXELS = 400_000_000;

/** A JPEG tells its size behind everything its camera has to say, which may hold a whole preview. */
const MAX_HEADER_BYTES = 1024 * 1024;

/** A file without a row may be one about to get it; after this it is a leftover of a crash. */
const LEFTOVER_AGE_MS = 60 * 60 * 1000;

/** Bytes handed on at a time, so that no picture holds the serving thread. */
const STEP_BYTES = 256 * 1024;

/** The pictures of messages. */
export class Attachments {
  readonly #options: AttachmentOptions;
  readonly #rows: AttachmentRows;
  readonly #locks = new KeyedMutex();
  readonly #nameKey: Uint8Array;

  constructor(options: AttachmentOptions) {
    this.#options = options;
    this.#rows = new AttachmentRows(options.db);
    this.#nameKey = options.nameSealer.copyKey();
  }

  /** @throws {AppError} `not_found` */
  get(name: string): Attachment {
    return shown(this.#get(name));
  }

  /**
   * Opens an attachment for reading.
   *
   * @returns Its facts, and its picture in pieces of some 64 KiB; reading may fail with `internal` at any of them.
   * @throws {AppError} `not_found`
   */
  read(name: string): { attachment: Attachment; picture: AsyncGenerator<Uint8Array<ArrayBuffer>> } {
    const row = this.#get(name);
    return { attachment: shown(row), picture: readSealedFile(this.#options.sealer, this.#fileOf(row)) };
  }

  /** Gives the whole picture. @throws {AppError} `not_found`, `internal` */
  async bytes(name: string): Promise<Uint8Array> {
    const { attachment, picture } = this.read(name);
    const bytes = new Uint8Array(attachment.sizeBytes);
    let at = 0;
    for await (const piece of picture) {
      bytes.set(piece, at);
      at += piece.length;
    }
    return bytes;
  }

  /**
   * Stores a picture, over whatever was there. One that is cut off or damaged replaces nothing.
   *
   * @param source Its bytes; what it throws passes.
   * @param expected The version that must stand, when the caller asked for the check.
   * @throws {AppError} `unprocessable` when it is no picture, `too_large`, `conflict` when the name differs from
   *   another by letter case alone, `revision_mismatch`, `storage_full`
   */
  put(
    name: string,
    source: AsyncIterable<Uint8Array>,
    expected?: ExpectedVersion,
  ): Promise<{ attachment: Attachment; isNew: boolean }> {
    return this.#locks.run(turnOf(name), async () => {
      const before = this.#rows.find(name);
      checkVersion(name, before, expected);
      const row = await this.#store(name, source, { before, cause: "put", mustBeWhole: true });
      return { attachment: shown(row), isNew: before === undefined };
    });
  }

  /**
   * Stores the picture of a message under a name that its bytes give: the same picture is stored once.
   *
   * @throws {AppError} `unprocessable`, `too_large`, `storage_full`
   */
  async keep(bytes: Uint8Array): Promise<Attachment> {
    const facts = checkSize(sniffImage(bytes));
    if (facts === undefined) throw noPicture();
    const hash = createHmac("sha256", this.#nameKey);
    for await (const step of stepsOf(bytes)) hash.update(step);
    const name = nameWithEnding(hash.digest("hex").slice(0, 40), facts.type);
    return await this.#locks.run(turnOf(name), async () => {
      const { db, now } = this.#options;
      const before = this.#rows.find(name);
      if (before === undefined) return shown(await this.#store(name, stepsOf(bytes), { cause: "put" }));
      await db.write([graceUntil(name, now() + GRACE_MS)]);
      return shown(before);
    });
  }

  /** Lists the earlier versions of an attachment, newest first. @throws {AppError} `not_found` */
  async versions(name: string): Promise<Version[]> {
    this.#get(name);
    return await this.#options.versions.list(resourceOf(name));
  }

  /** Restores an earlier version. What it replaces becomes a version. @throws {AppError} `not_found`, `revision_mismatch` */
  restoreVersion(name: string, n: number, expected?: ExpectedVersion): Promise<Attachment> {
    return this.#locks.run(turnOf(name), async () => {
      const { sealer, folder } = this.#options;
      const before = this.#get(name);
      checkVersion(name, before, expected);
      const [part, path] = [...await this.#options.versions.parts(resourceOf(name), n)][0] ?? [];
      if (part === undefined || path === undefined) {
        throw new AppError("internal", `Version ${n} of "${name}" is missing`);
      }
      const { place } = attachmentFile(folder, name, versionOfPart(part).version);
      return shown(await this.#store(name, readSealedFile(sealer, { path, place }), { before, cause: "restore" }));
    });
  }

  /** Moves an attachment to the trash. @throws {AppError} `not_found`, `revision_mismatch` */
  remove(name: string, expected?: ExpectedVersion): Promise<void> {
    return this.#locks.run(turnOf(name), async () => {
      const { db, events, trash, versions } = this.#options;
      const row = this.#get(name);
      checkVersion(name, row, expected);
      const record = { ...row, versions: uuidV7() } satisfies TrashRecord;
      await db.write([removeRow(row), keepFile(row), trash.put("attachment", name, record)]);
      await versions.moveToTrash(resourceOf(name), record.versions);
      events.publish({ kind: "attachment", id: name });
      trash.changed();
    });
  }

  /** Brings one back from the trash. @throws {AppError} `conflict` */
  restore(record: unknown, takeOut: Statement): Promise<void> {
    const row = record as TrashRecord;
    return this.#locks.run(turnOf(row.name), async () => {
      const { db, events, versions, now } = this.#options;
      if (this.#rows.find(row.name) !== undefined) {
        throw new AppError("conflict", `There is an attachment "${row.name}" again`);
      }
      this.#refuseCaseClash(row.name);
      await db.write([takeOut, saveRow(row), letFileGo(row), graceUntil(row.name, now() + GRACE_MS)]);
      await versions.restoreFromTrash(resourceOf(row.name), row.versions);
      events.publish({ kind: "attachment", id: row.name, revision: row.created_at });
    });
  }

  /** Removes what lay in the trash for good. */
  purge(record: unknown, takeOut: Statement): Promise<void> {
    const row = record as TrashRecord;
    return this.#locks.run(turnOf(row.name), async () => {
      await this.#options.db.write([takeOut, letFileGo(row)]);
      await this.#removeFile(row);
      await this.#options.versions.purge("attachments", row.versions);
    });
  }

  /** Gives the conversations that are known to refer to attachments; some may not do so any more. */
  referringConversations(): string[] {
    return this.#rows.conversations();
  }

  /** Removes for good what nothing has referred to for a day, and files that a crash left behind. */
  async sweep(): Promise<void> {
    const { db, now } = this.#options;
    await db.write(this.#rows.tidy(now()));
    for (const { name } of this.#rows.overdue(now())) {
      await this.#locks.run(turnOf(name), async () => {
        const row = this.#rows.overdue(now()).find((candidate) => candidate.name === name);
        if (row === undefined) return;
        await db.write(this.#rows.removeUnused(row, now()));
        await this.#removeFile(row);
        await this.#options.versions.remove(resourceOf(name));
      });
    }
    await this.#removeLeftovers();
  }

  /** Writes the file, then its row; the caller holds the name's turn. */
  async #store(
    name: string,
    source: AsyncIterable<Uint8Array>,
    { before, cause, mustBeWhole = false }: { before?: AttachmentRow; cause: VersionCause; mustBeWhole?: boolean },
  ): Promise<AttachmentRow> {
    const { db, sealer, events, versions, now } = this.#options;
    if (before === undefined) this.#refuseCaseClash(name);
    const version = Math.max(now(), (before?.created_at ?? 0) + 1);
    const checked = await checkPicture(source, this.#options.maxBytes);
    const file = this.#fileOf({ name, created_at: version });
    const content = mustBeWhole ? wholeImage(checked.source, checked.facts.type) : checked.source;
    const bytes = await writeSealedFile(sealer, file, content);
    const { type, widthPx: width, heightPx: height } = checked.facts;
    const row: AttachmentRow = { name, type, bytes, width, height, created_at: version };
    const parts = before === undefined ? [] : [{ name: partOf(before), path: this.#fileOf(before).path }];
    try {
      await versions.replace(
        resourceOf(name),
        { cause, parts, touched: [] },
        () => db.write([saveRow(row), graceUntil(name, now() + GRACE_MS)]),
      );
    } catch (error) {
      await this.#removeFile(row);
      throw error;
    }
    if (before !== undefined) await this.#removeFile(before);
    events.publish({ kind: "attachment", id: name, revision: version });
    return row;
  }

  #get(name: string): AttachmentRow {
    const row = this.#rows.find(name);
    if (row === undefined) throw new AppError("not_found", `There is no attachment "${name}"`);
    return row;
  }

  #refuseCaseClash(name: string): void {
    const clash = this.#rows.caseClash(name);
    if (clash !== undefined) {
      throw new AppError("conflict", `The name "${name}" differs from "${clash}" by letter case alone`);
    }
  }

  /** Every version has a file of its own: a crash between file and row leaves the old ones together. */
  #fileOf({ name, created_at: version }: Pick<AttachmentRow, "name" | "created_at">) {
    return attachmentFile(this.#options.folder, name, version);
  }

  /** A file that cannot be removed now is a leftover for the next sweep. */
  async #removeFile(row: AttachmentRow): Promise<void> {
    await Deno.remove(this.#fileOf(row).path).catch((error) => {
      if (error instanceof Deno.errors.NotFound) return;
      this.#options.log("warn", "Cannot remove the file of an attachment", { error: messageOf(error) });
    });
  }

  async #removeLeftovers(): Promise<void> {
    const { folder } = this.#options;
    // Names first: a file that gets its row meanwhile is then either in both lists or young.
    const found = (await Array.fromAsync(Deno.readDir(folder))).filter((entry) => entry.isFile);
    const wanted = new Set(this.#rows.files().map(({ name, version }) => attachmentFileName(name, version)));
    for (const { name } of found) {
      if (wanted.has(name)) continue;
      const path = join(folder, name);
      const changedAtMs = (await Deno.lstat(path)).mtime?.getTime() ?? 0;
      // By the clock of the disk, which a test's clock does not move.
      if (changedAtMs < Date.now() - LEFTOVER_AGE_MS) await Deno.remove(path);
    }
  }
}

/** What the trash stores of an attachment. */
interface TrashRecord extends AttachmentRow {
  /** Names its versions in the trash; absent in records of earlier releases. */
  versions?: string;
}

function resourceOf(name: string) {
  return { kind: "attachments" as const, id: name };
}

/** Names the sealed file in a version by what it is bound to, so that it can be opened wherever it is. */
function partOf({ name, created_at: version }: AttachmentRow): string {
  return `${version}.${name}`;
}

/** Returns what the file of an earlier version is bound to. @param part Its name. */
export function versionOfPart(part: string): { name: string; version: number } {
  const dot = part.indexOf(".");
  return { version: Number(part.slice(0, dot)), name: part.slice(dot + 1) };
}

function turnOf(name: string): string {
  return name.toLowerCase();
}

function shown({ name, type, bytes, width, height, created_at }: AttachmentRow): Attachment {
  return { name, type, sizeBytes: bytes, widthPx: width, heightPx: height, version: created_at };
}

function checkVersion(name: string, row: AttachmentRow | undefined, expected: ExpectedVersion | undefined): void {
  if (isExpected(expected, row?.created_at)) return;
  const found = row === undefined ? "is not there" : `is at version ${row.created_at}`;
  throw new AppError("revision_mismatch", `Attachment "${name}" ${found}, not at the one asked for`);
}

function noPicture(): AppError {
  return new AppError("unprocessable", "Cannot store the attachment: it is no PNG, JPEG, WebP or GIF");
}

/** Refuses what no browser could show: decoded it would take gigabytes. */
function checkSize(facts: ImageFacts | undefined): ImageFacts | undefined {
  if (facts === undefined || facts.widthPx * facts.heightPx <= MAX_PIXELS) return facts;
  const { widthPx, heightPx } = facts;
  const found = `it says it is ${widthPx} × ${heightPx} pixels, more than ${MAX_PIXELS / 1e6} million`;
  throw new AppError("unprocessable", `Cannot store the attachment: ${found}`);
}

/** Reads as much as tells what it is; gives that, and the whole from its begin. */
async function checkPicture(
  source: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<{ facts: ImageFacts; source: AsyncIterable<Uint8Array> }> {
  const iterator = source[Symbol.asyncIterator]();
  let head = new Uint8Array();
  let facts: ImageFacts | undefined;
  try {
    while (facts === undefined && head.length < MAX_HEADER_BYTES) {
      const { done, value } = await iterator.next();
      if (done) break;
      const longer = new Uint8Array(head.length + value.length);
      longer.set(head);
      longer.set(value, head.length);
      head = longer;
      facts = checkSize(sniffImage(head));
    }
    if (facts === undefined) throw noPicture();
  } catch (error) {
    await iterator.return?.();
    throw error;
  }
  return { facts, source: limited(head, { [Symbol.asyncIterator]: () => iterator }, maxBytes) };
}

async function* limited(
  head: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  yield head;
  let sizeBytes = head.length;
  for await (const chunk of rest) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) {
      throw new AppError("too_large", `Cannot store the attachment: it is larger than ${maxBytes} bytes`);
    }
    yield chunk;
  }
}

async function* stepsOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += STEP_BYTES) {
    yield bytes.subarray(at, at + STEP_BYTES);
    await yieldToEventLoop(); // others first
  }
}
