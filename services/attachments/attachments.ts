/** Stores images and recordings by name, sealed. Owners record their references in their own writes; see attachment_rows.ts. */
import { yieldToEventLoop } from "../async/delay.ts";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { createUuidV7 } from "../crypto/random.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Log } from "../log.ts";
import { removeLeftovers } from "../storage/atomic_file.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import { KeyedMutex } from "../async/locks.ts";
import type { RetentionClock } from "../storage/retention_clock.ts";
import type { Version, VersionCause, Versions } from "../storage/versions.ts";
import {
  type AttachmentRow,
  AttachmentRows,
  type AudioType,
  GRACE_MS,
  releaseFile,
  removeRow,
  retainFile,
  saveRow,
  setGracePeriod,
  sniffRecording,
  toAttachmentFileName,
} from "./attachment_rows.ts";
import { type ImageFacts, type ImageType, readOrientation, sniffImage } from "./images/image_header.ts";
import {
  getAttachmentFile,
  getAttachmentFileName,
  readSealedFile,
  readSealedRange,
  writeSealedFile,
} from "../storage/sealed_file.ts";
import { assertExpected, type ExpectedVersion } from "../storage/preconditions.ts";
import { checkImageStream } from "./images/whole_image.ts";

/** An attachment without its content. */
export interface Attachment {
  name: string;
  type: ImageType | AudioType;
  sizeBytes: number;
  /** As shown, that is, turned as the camera says. Absent for recordings. */
  widthPx?: number;
  heightPx?: number;
  /** Changes with every write. */
  version: number;
}

/** An attachment that is an image. */
export type ImageAttachment = Attachment & { type: ImageType; widthPx: number; heightPx: number };

/** Dependencies of `Attachments`. */
export interface AttachmentDeps {
  db: Database;
  /** For the purpose "attachments". */
  sealer: PurposeSealer;
  /** For the purpose "attachment names": the name of a message's image is a keyed hash of its bytes. */
  nameSealer: Pick<PurposeSealer, "copyKey">;
  /** `<datadir>/attachments` */
  folder: string;
  /** Maximum size of a file. */
  maxBytes: number;
  trash: { put(kind: string, title: string, record: unknown): Statement; publishChange(): void };
  versions: Versions;
  events: EventHub;
  log: Log;
  now(): number;
  retention: Pick<RetentionClock, "listExpired">;
}

/** Twice the size of the largest camera images. */
const MAX_PIXELS = 400_000_000;

/** The dimensions in a JPEG come after metadata, which may contain a whole preview image. */
const MAX_HEADER_BYTES = 1024 * 1024;

/** Bytes per step, so that no image blocks the event loop. */
const STEP_BYTES = 256 * 1024;

/** The images and recordings of messages. */
export class Attachments {
  readonly #deps: AttachmentDeps;
  readonly #rows: AttachmentRows;
  readonly #locks = new KeyedMutex();
  readonly #nameKey: Uint8Array;

  constructor(options: AttachmentDeps) {
    this.#deps = options;
    this.#rows = new AttachmentRows(options.db);
    this.#nameKey = options.nameSealer.copyKey();
  }

  /** @throws {AppError} `not_found` */
  get(name: string): Attachment {
    return toAttachment(this.#get(name));
  }

  /** @throws {AppError} `not_found`, `unprocessable` if it's a recording */
  getImage(name: string): ImageAttachment {
    const attachment = this.get(name);
    if (!isImage(attachment)) throw new AppError("unprocessable", `Attachment "${name}" is a recording, not an image`);
    return attachment;
  }

  /**
   * Opens an attachment for reading.
   *
   * @returns The attachment, and a function that yields its content or a range of it in chunks of about 64 KiB. Any
   *   chunk may throw `internal`.
   * @throws {AppError} `not_found`
   */
  open(name: string): {
    attachment: Attachment;
    read(range?: { start: number; end: number }): AsyncGenerator<Uint8Array<ArrayBuffer>>;
  } {
    const row = this.#get(name);
    const { sealer } = this.#deps;
    const file = this.#getFile(row);
    return {
      attachment: toAttachment(row),
      read: (range) => range === undefined ? readSealedFile(sealer, file) : readSealedRange(sealer, file, range),
    };
  }

  /** Reads the whole content. @throws {AppError} `not_found`, `internal` */
  async readAll(name: string): Promise<Uint8Array> {
    const { attachment, read } = this.open(name);
    const bytes = new Uint8Array(attachment.sizeBytes);
    let at = 0;
    for await (const piece of read()) {
      bytes.set(piece, at);
      at += piece.length;
    }
    return bytes;
  }

  /**
   * Stores an image or a recording and replaces an existing one. A truncated or damaged image replaces nothing.
   *
   * @param source The bytes of the file. Its errors are passed on.
   * @param expected The required current version, if any.
   * @throws {AppError} `unprocessable` if it's neither, `too_large`, `conflict` if the name differs from another
   *   only in case, `revision_mismatch`, `storage_full`
   */
  put(
    name: string,
    source: AsyncIterable<Uint8Array>,
    expected?: ExpectedVersion,
  ): Promise<{ attachment: Attachment; isNew: boolean }> {
    return this.#locks.run(toLockKey(name), async () => {
      const before = this.#rows.find(name);
      assertExpected(`attachment "${name}"`, expected, before?.created_at);
      const row = await this.#store(name, source, { before, cause: "put", mustBeComplete: true });
      return { attachment: toAttachment(row), isNew: before === undefined };
    });
  }

  /**
   * Stores the image of a message under a name derived from its bytes, so that identical images are stored once.
   *
   * @throws {AppError} `unprocessable`, `too_large`, `storage_full`
   */
  async storeInline(bytes: Uint8Array): Promise<ImageAttachment> {
    const facts = checkSize(sniffImage(bytes));
    if (facts === undefined) {
      throw new AppError("unprocessable", "Can't store the attachment: it isn't a PNG, JPEG, WebP or GIF");
    }
    return this.getImage(await this.#storeHashed(bytes, facts.type));
  }

  /**
   * Stores the sound of a message, like `storeInline`.
   *
   * @throws {AppError} `unprocessable`, `too_large`, `storage_full`
   */
  async storeRecording(bytes: Uint8Array): Promise<Attachment> {
    const type = sniffRecording(bytes);
    if (type === undefined) {
      throw new AppError("unprocessable", "Can't store the sound: it isn't a WAV, WebM, Ogg, MP4, MP3 or FLAC");
    }
    return this.get(await this.#storeHashed(bytes, type));
  }

  async #storeHashed(bytes: Uint8Array, type: ImageType | AudioType): Promise<string> {
    const hash = createHmac("sha256", this.#nameKey);
    for await (const step of splitBytes(bytes)) hash.update(step);
    const name = toAttachmentFileName(hash.digest("hex").slice(0, 40), type);
    return await this.#locks.run(toLockKey(name), async () => {
      const { db, now } = this.#deps;
      const before = this.#rows.find(name);
      if (before === undefined) await this.#store(name, splitBytes(bytes), { cause: "put" });
      else await db.write([setGracePeriod(name, now() + GRACE_MS)]);
      return name;
    });
  }

  /** Lists earlier versions, newest first. @throws {AppError} `not_found` */
  async listVersions(name: string): Promise<Version[]> {
    this.#get(name);
    return await this.#deps.versions.list(toResource(name));
  }

  /**
   * Restores an earlier version. The current one becomes a version. @throws {AppError} `not_found`, `revision_mismatch`
   */
  restoreVersion(name: string, n: number, expected?: ExpectedVersion): Promise<Attachment> {
    return this.#locks.run(toLockKey(name), async () => {
      const { sealer, folder } = this.#deps;
      const before = this.#get(name);
      assertExpected(`attachment "${name}"`, expected, before?.created_at);
      const [part, path] = [...await this.#deps.versions.listParts(toResource(name), n)][0] ?? [];
      if (part === undefined || path === undefined) {
        throw new AppError("internal", `Version ${n} of "${name}" is missing`);
      }
      const { aad } = getAttachmentFile(folder, name, parseVersionPart(part).version);
      return toAttachment(
        await this.#store(name, readSealedFile(sealer, { path, aad }), { before, cause: "restore" }),
      );
    });
  }

  /** Moves an attachment to the trash. @throws {AppError} `not_found`, `revision_mismatch` */
  remove(name: string, expected?: ExpectedVersion): Promise<void> {
    return this.#locks.run(toLockKey(name), async () => {
      const { db, events, trash, versions } = this.#deps;
      const row = this.#get(name);
      assertExpected(`attachment "${name}"`, expected, row?.created_at);
      const record = { ...row, versions: createUuidV7() } satisfies TrashRecord;
      await db.write([removeRow(row), retainFile(row), trash.put("attachment", name, record)]);
      await versions.moveToTrash(toResource(name), record.versions);
      events.publish({ kind: "attachment", id: name });
      trash.publishChange();
    });
  }

  /** Restores an attachment from the trash. @throws {AppError} `conflict` */
  restore(record: unknown, removal: Statement): Promise<void> {
    const row = record as TrashRecord;
    return this.#locks.run(toLockKey(row.name), async () => {
      const { db, events, versions, now } = this.#deps;
      if (this.#rows.find(row.name) !== undefined) {
        throw new AppError("conflict", `Can't restore "${row.name}": another attachment has this name now`);
      }
      this.#refuseCaseClash(row.name);
      await db.write([removal, saveRow(row), releaseFile(row), setGracePeriod(row.name, now() + GRACE_MS)]);
      await versions.restoreFromTrash(toResource(row.name), row.versions);
      events.publish({ kind: "attachment", id: row.name, revision: row.created_at });
    });
  }

  /** Deletes an attachment in the trash. */
  purge(record: unknown, removal: Statement): Promise<void> {
    const row = record as TrashRecord;
    return this.#locks.run(toLockKey(row.name), async () => {
      await this.#deps.db.write([removal, releaseFile(row)]);
      await this.#removeFile(row);
      await this.#deps.versions.purge("attachments", row.versions);
    });
  }

  /** Lists the conversations that may refer to attachments. Some may no longer do so. */
  listReferringConversations(): string[] {
    return this.#rows.listConversations();
  }

  /** Deletes attachments unreferenced for a day, and files left from a crash. */
  async sweep(): Promise<void> {
    const { db, now, retention } = this.#deps;
    await db.write(this.#rows.cleanUp(now()));
    const expired = retention.listExpired(GRACE_MS);
    for (const { name } of this.#rows.listExpired(expired)) {
      await this.#locks.run(toLockKey(name), async () => {
        const row = this.#rows.listExpired(expired).find((candidate) => candidate.name === name);
        if (row === undefined) return;
        await db.write(this.#rows.removeUnused(row, expired));
        await this.#removeFile(row);
        await this.#deps.versions.remove(toResource(name));
      });
    }
    const listFiles = () => this.#rows.listFiles().map(({ name, version }) => getAttachmentFileName(name, version));
    await removeLeftovers(this.#deps.folder, listFiles, (name) => Deno.remove(join(this.#deps.folder, name)));
  }

  /** Writes the file, then the row. The caller holds the lock of the name. */
  async #store(
    name: string,
    source: AsyncIterable<Uint8Array>,
    { before, cause, mustBeComplete = false }: {
      before?: AttachmentRow;
      cause: VersionCause;
      mustBeComplete?: boolean;
    },
  ): Promise<AttachmentRow> {
    const { db, sealer, events, versions, now } = this.#deps;
    if (before === undefined) this.#refuseCaseClash(name);
    const version = Math.max(now(), (before?.created_at ?? 0) + 1);
    const checked = await checkContent(source, this.#deps.maxBytes);
    const file = this.#getFile({ name, created_at: version });
    const { facts } = checked;
    // A truncated recording still plays.
    const content = mustBeComplete && "widthPx" in facts
      ? checkImageStream(checked.source, facts.type)
      : checked.source;
    const bytes = await writeSealedFile(sealer, file, content);
    const { type, widthPx: width = null, heightPx: height = null } = facts as Partial<ImageFacts> & ContentFacts;
    const row: AttachmentRow = { name, type, bytes, width, height, created_at: version };
    const parts = before === undefined ? [] : [{ name: toPartName(before), path: this.#getFile(before).path }];
    try {
      await versions.replace(
        toResource(name),
        { cause, parts, touched: [] },
        () => db.write([saveRow(row), setGracePeriod(name, now() + GRACE_MS)]),
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
    if (row === undefined) throw new AppError("not_found", `Attachment "${name}" not found`);
    return row;
  }

  #refuseCaseClash(name: string): void {
    const clash = this.#rows.findCaseClash(name);
    if (clash !== undefined) {
      throw new AppError("conflict", `The name "${name}" differs from "${clash}" only in case`);
    }
  }

  /** Each version has its own file, so that a crash between file and row leaves the old pair intact. */
  #getFile({ name, created_at: version }: Pick<AttachmentRow, "name" | "created_at">) {
    return getAttachmentFile(this.#deps.folder, name, version);
  }

  /** Removes the file of a version. If that fails, the next sweep removes it. */
  async #removeFile(row: AttachmentRow): Promise<void> {
    await Deno.remove(this.#getFile(row).path).catch((error) => {
      if (error instanceof Deno.errors.NotFound) return;
      this.#deps.log("warn", "Can't remove the file of an attachment", { error: getErrorMessage(error) });
    });
  }
}

/** Trash record of an attachment. */
interface TrashRecord extends AttachmentRow {
  /** Name of its versions in the trash; absent in records of earlier releases. */
  versions?: string;
}

function toResource(name: string) {
  return { kind: "attachments" as const, id: name };
}

/**
 * Returns the name of the sealed file in a version. It contains the AAD of the file, so the file can be opened
 * anywhere.
 */
function toPartName({ name, created_at: version }: AttachmentRow): string {
  return `${version}.${name}`;
}

/** Parses the AAD of a version's file from its name. */
export function parseVersionPart(part: string): { name: string; version: number } {
  const dot = part.indexOf(".");
  return { version: Number(part.slice(0, dot)), name: part.slice(dot + 1) };
}

function toLockKey(name: string): string {
  return name.toLowerCase();
}

function toAttachment({ name, type, bytes, width, height, created_at }: AttachmentRow): Attachment {
  const size = width !== null && height !== null
    ? { widthPx: width, heightPx: height } satisfies Partial<Attachment>
    : {};
  return { name, type, sizeBytes: bytes, ...size, version: created_at };
}

function isImage(attachment: Attachment): attachment is ImageAttachment {
  return attachment.widthPx !== undefined;
}

/** Type and dimensions of a file. */
type ContentFacts = ImageFacts | { type: AudioType };

/** Rejects images that no browser could show: decoding would take gigabytes of memory. */
function checkSize(facts: ImageFacts | undefined): ImageFacts | undefined {
  if (facts === undefined || facts.widthPx * facts.heightPx <= MAX_PIXELS) return facts;
  const { widthPx, heightPx } = facts;
  const found = `its header claims ${widthPx} × ${heightPx} pixels; the limit is ${MAX_PIXELS / 1e6} million`;
  throw new AppError("unprocessable", `Can't store the attachment: ${found}`);
}

/** Reads enough to recognize the file. @returns Its type and dimensions, and the whole stream. */
async function checkContent(
  source: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<{ facts: ContentFacts; source: AsyncIterable<Uint8Array> }> {
  const iterator = source[Symbol.asyncIterator]();
  let head = new Uint8Array();
  let facts: ContentFacts | undefined;
  try {
    while (facts === undefined && head.length < MAX_HEADER_BYTES) {
      const { done, value } = await iterator.next();
      if (done) break;
      const longer = new Uint8Array(head.length + value.length);
      longer.set(head);
      longer.set(value, head.length);
      head = longer;
      facts = turn(checkSize(sniffImage(head)), head) ?? toAudioFacts(head);
    }
    if (facts === undefined) {
      const formats = "a PNG, JPEG, WebP or GIF image or a WAV, WebM, Ogg, MP4, MP3 or FLAC recording";
      throw new AppError("unprocessable", `Can't store the attachment: it isn't ${formats}`);
    }
  } catch (error) {
    await iterator.return?.();
    throw error;
  }
  return { facts, source: limitBytes(head, { [Symbol.asyncIterator]: () => iterator }, maxBytes) };
}

/** Browsers show a JPEG as its camera was held. @param head The file up to its frame header. */
function turn(facts: ImageFacts | undefined, head: Uint8Array): ImageFacts | undefined {
  const isOnItsSide = facts?.type === "image/jpeg" && readOrientation(head) > 4;
  return isOnItsSide ? { ...facts, widthPx: facts.heightPx, heightPx: facts.widthPx } : facts;
}

function toAudioFacts(head: Uint8Array): { type: AudioType } | undefined {
  const type = sniffRecording(head);
  return type && { type };
}

async function* limitBytes(
  head: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  yield head;
  let sizeBytes = head.length;
  for await (const chunk of rest) {
    sizeBytes += chunk.length;
    if (sizeBytes > maxBytes) {
      throw new AppError("too_large", `Can't store the attachment: it's larger than ${maxBytes} bytes`);
    }
    yield chunk;
  }
}

async function* splitBytes(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += STEP_BYTES) {
    yield bytes.subarray(at, at + STEP_BYTES);
    await yieldToEventLoop(); // Lets other work run.
  }
}
