/** Exports: one conversation as a file, or all data as a ZIP file that can be imported again. */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { type ByteBudget, type Reservation, UNCOUNTED_BYTES } from "../async/byte_budget.ts";
import { yieldIfTickUsedUp } from "../async/delay.ts";
import { runAhead } from "../async/run_ahead.ts";
import { type CardFormat, exportCard } from "../characters/card/card_export.ts";
import type { ConversationReader } from "../conversations/conversation_reader.ts";
import type { VariantStore } from "../conversations/variants.ts";
import { AppError } from "../errors.ts";
import { parseJsonIncrementally } from "../json/incremental_parse.ts";
import { toTavernScript } from "../regex_scripts/regex_script.ts";
import type { VoiceSamples } from "../speech/voice_samples.ts";
import { toFileName } from "../storage/ids.ts";
import { type PackedEntry, writeZip } from "../storage/zip/zip_writer.ts";
import {
  type ChatFormat,
  EXPORT_FORMAT,
  EXPORT_MARK,
  type SpeakerNames,
  toMarkdown,
  toTavern,
  type WholeConversation,
} from "./export_formats.ts";
import type { ImportWriterDeps } from "./import_writer.ts";
import type { PackedFile, PackOrder } from "./zip_worker.ts";
import { openWorker } from "../process/worker.ts";

/** Dependencies of `Exports`: the services that imports write to, and some more. */
export interface ExportDeps extends Omit<ImportWriterDeps, "conversationImporter"> {
  budget: ByteBudget;
  reader: ConversationReader;
  variants: Pick<VariantStore, "readLines">;
  /** Ids of all conversations. */
  listConversationIds(): string[];
  /** Returns the user's name in a conversation. */
  getUserName(personaId?: string): Promise<string>;
  version: string;
  now(): number;
}

/** A conversation as a file. */
export interface ExportedChat {
  text: string;
  contentType: string;
  fileName: string;
}

/** What to export, and in which format. */
export type ExportSelection =
  | { kind: "conversations"; ids: readonly string[]; format: ChatFormat }
  | { kind: "characters"; ids: readonly string[]; format: CardFormat; image_metadata: "remove" | "keep" };

/** A file of an export: small ones in memory, CHARX files streamed. */
type ZipFile = { path: string } & ({ bytes: Uint8Array } | { stream(): AsyncIterable<Uint8Array> });

/** The files of a chat, which are read when it's their turn. */
interface ChatFiles {
  weightBytes: number;
  /** Memory that it needs until its files are written. */
  reserved?: Reservation;
  read(): Promise<{ files: ZipFile[]; unreadable: string[] }>;
}

/** What a list of files yields. At `settled`, it waits until all files before it are written. */
type ZipPart = ZipFile | ChatFiles | "settled";

/** Packed files, in the order in which they're written. */
interface PackedPart {
  entries: PackedEntry[];
  /** Names of the attachments that they refer to. */
  attachments: string[];
  /** Paths of what couldn't be read. */
  unreadable: string[];
  reserved?: Reservation;
}

/** The state of one export. */
interface ExportRun {
  /** Attachments that written files refer to. */
  images: Set<string>;
  /** Paths of what couldn't be read. */
  unreadable: string[];
  /** Memory of chats that aren't written yet. */
  held: Set<Reservation>;
  /** Aborted when it ends. */
  signal: AbortSignal;
}

/** Reads an item. Failures are listed at the end of the export. */
type Readable = <T>(path: string, reading: () => Promise<T>) => Promise<T | undefined>;

const encoder = new TextEncoder();
/** Memory per byte of a chat while it is converted: bytes, parsed values, and the file's text. */
const CHAT_WEIGHT = 5;
/** Memory per byte of a chat that is packed unchanged: encrypted, decrypted, and packed. */
const PACKED_WEIGHT = 3;
/** Number of files that are read and packed at the same time: each waits for other threads most of the time. */
const FILES_AHEAD = 16;
/** Maximum memory of all of them, except for a larger one, which is alone. */
const BYTES_AHEAD = 8 * 1024 * 1024;
/** Smaller pieces of the ZIP file are joined: the connection waits for each. */
const PIECE_BYTES = 64 * 1024;
/** Number of images whose settings are decrypted at once. */
const GALLERY_PAGE = 100;

/** Creates exports. */
export class Exports {
  readonly #deps: ExportDeps;

  constructor(deps: ExportDeps) {
    this.#deps = deps;
  }

  /**
   * Exports one conversation.
   *
   * @param options.signal Ends the wait for memory.
   * @param options.waitMs Maximum time to wait for memory.
   * @throws {AppError} `not_found`, `busy`; `internal` if it can't be decrypted.
   */
  async exportChat(
    id: string,
    format: ChatFormat,
    options: { signal?: AbortSignal; waitMs?: number } = {},
  ): Promise<ExportedChat> {
    const bytes = this.#deps.reader.measureBytes(id);
    using _ = bytes > UNCOUNTED_BYTES ? await this.#deps.budget.reserve(bytes * CHAT_WEIGHT, options) : undefined;
    const conversation = await this.#readConversation(id);
    const stem = conversation.title || "Chat";
    if (format === "json") {
      const text = JSON.stringify(conversation, null, 2);
      return { text, contentType: "application/json", fileName: `${stem}.json` };
    }
    const names = await this.#findNames(conversation);
    return format === "markdown"
      ? { text: toMarkdown(conversation, names), contentType: "text/markdown; charset=utf-8", fileName: `${stem}.md` }
      : { text: toTavern(conversation, names), contentType: "application/jsonl", fileName: `${stem}.jsonl` };
  }

  /** Streams all data as a ZIP file; needs the memory of the longest chat. Trash isn't included. */
  async *exportAll(): AsyncGenerator<Uint8Array> {
    yield* this.#pack((run) => this.#listFiles(run));
  }

  /** Streams conversations or characters as a ZIP file. `unreadable.json` lists those that can't be read. */
  async *exportSelection(selection: ExportSelection): AsyncGenerator<Uint8Array> {
    yield* this.#pack(() => this.#listSelected(selection));
  }

  async *#listSelected(selection: ExportSelection): AsyncGenerator<ZipFile> {
    const unreadable: string[] = [];
    const names = new Set<string>();
    for (const id of selection.ids) {
      try {
        if (selection.kind === "conversations") {
          const { text, fileName } = await this.exportChat(id, selection.format, { waitMs: Infinity });
          yield { path: toFreeName(fileName, names), bytes: encoder.encode(text) };
        } else {
          const keepsImageMetadata = selection.image_metadata === "keep";
          using file = await exportCard(this.#deps.characters, id, selection.format, { keepsImageMetadata });
          yield { path: toFreeName(file.fileName, names), stream: () => file.stream() };
        }
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        unreadable.push(id);
      }
    }
    if (unreadable.length > 0) yield createJsonFile("unreadable.json", unreadable);
  }

  async *#pack(list: (run: ExportRun) => AsyncIterable<ZipPart>): AsyncGenerator<Uint8Array> {
    const packer = openPacker();
    const ending = new AbortController();
    const run = {
      images: new Set<string>(),
      unreadable: [],
      held: new Set<Reservation>(),
      signal: ending.signal,
    } satisfies ExportRun;
    const entries = this.#listEntries(packer, list(run), run);
    try {
      yield* joinPieces(writeZip(entries, { isLarge: true }));
    } finally {
      ending.abort();
      for (const reserved of run.held) reserved.release();
      packer.close();
    }
  }

  async *#listEntries(packer: Packer, parts: AsyncIterable<ZipPart>, run: ExportRun): AsyncGenerator<PackedEntry> {
    const packed = runAhead(parts, {
      run: (part) => packPart(packer, part),
      getSize: (part) =>
        part === "settled" || "stream" in part ? 0 : "read" in part ? part.weightBytes : part.bytes.length,
      // A streamed file is open until its list continues.
      isAlone: (part) => part === "settled" || "stream" in part,
      maxCount: FILES_AHEAD,
      maxSize: BYTES_AHEAD,
    });
    for await (const { entries, attachments, unreadable, reserved } of packed) {
      try {
        for (const name of attachments) run.images.add(name);
        run.unreadable.push(...unreadable);
        yield* entries;
      } finally {
        if (reserved !== undefined) run.held.delete(reserved);
        reserved?.release();
      }
    }
  }

  /** Lists everything. Attachments that packed files refer to come last. */
  async *#listFiles(run: ExportRun): AsyncGenerator<ZipPart> {
    const { attachments, version, now } = this.#deps;
    const { images, unreadable } = run;
    const readable = createReadable(unreadable);
    yield createJsonFile(EXPORT_MARK, { format: EXPORT_FORMAT, version, created_at: new Date(now()).toISOString() });
    yield* this.#listDocuments(readable);
    yield* this.#listSettings(readable);
    yield* this.#listOriginals(readable);
    yield* this.#listChats(run);
    yield "settled";
    yield* this.#listGallery(readable, images);
    for (const name of images) {
      const bytes = await readable(`attachments/${name}`, () => attachments.readAll(name));
      if (bytes !== undefined) yield { path: `attachments/${name}`, bytes };
    }
    if (unreadable.length > 0) yield createJsonFile("unreadable.json", unreadable);
  }

  async *#listDocuments(readable: Readable): AsyncGenerator<ZipFile> {
    const { characters, personas, lorebooks, presets, memories, proposals } = this.#deps;
    for (const { id } of await personas.list()) {
      const persona = await readable(`personas/${id}`, () => personas.get(id));
      if (persona === undefined) continue;
      if (persona.persona.has_avatar) {
        const bytes = await readable(`personas/${id}.png`, () => personas.getAvatar(id));
        if (bytes !== undefined) yield { path: `personas/${id}.png`, bytes };
      }
      yield createJsonFile(`personas/${id}.json`, persona.persona);
    }
    for (const { id } of lorebooks.list()) {
      const book = await readable(`lorebooks/${id}`, () => lorebooks.get(id));
      if (book === undefined) continue;
      const { createdAtMs, head, body } = book;
      yield createJsonFile(`lorebooks/${id}.json`, { ...head, createdAtMs, book: body });
    }
    for (const { id, isBuiltin } of presets.list()) {
      const preset = isBuiltin ? undefined : await readable(`presets/${id}`, () => presets.get(id));
      if (preset === undefined) continue;
      const { createdAtMs, head, body } = preset;
      yield createJsonFile(`presets/${id}.json`, { ...head, createdAtMs, preset: body });
    }
    // Oldest first: their order in prompts is that of their creation.
    for (const { id } of memories.list().reverse()) {
      const memory = await readable(`memories/${id}`, () => memories.get(id));
      if (memory === undefined) continue;
      yield createJsonFile(`memories/${id}.json`, { ...memory.fields, createdAtMs: memory.createdAtMs });
    }
    for (const { id, createdAtMs, fields } of proposals.listStored()) {
      const path = `proposals/${id}`;
      if (fields === undefined) await readable(path, refuseSealed);
      else yield createJsonFile(`${path}.json`, { ...fields, createdAtMs });
    }
    for (const item of (await characters.list({})).items) {
      const { id } = JSON.parse(item) as { id: string };
      const open = await readable(`characters/${id}`, () => characters.open(id));
      if (open === undefined) continue;
      if (await characters.hasCharxFiles(open.stored)) {
        using file = await readable(
          `characters/${id}`,
          () => exportCard(characters, id, "charx", { keepsFolder: true, keepsImageMetadata: true }),
        );
        if (file !== undefined) yield { path: `characters/${id}.charx`, stream: () => file.stream() };
        continue;
      }
      yield { path: `characters/${id}.${/\.png$/i.test(open.stored.path) ? "png" : "json"}`, bytes: open.file.bytes };
    }
  }

  /** Yields voices, workflows, servers without their keys, and settings. Whether a server is held isn't exported. */
  async *#listSettings(readable: Readable): AsyncGenerator<ZipFile> {
    const { voices, workflows, connections, imageProfiles, toolServers, regexScripts } = this.#deps;
    const { settings, speech, transcription, web, push, usage } = this.#deps;
    for (const { id, name, description, format, createdAtMs } of voices.list()) {
      const audio = await readable(`voices/${id}`, () => readSample(voices, id));
      if (audio === undefined) continue;
      yield { path: `voices/${id}.${format}`, bytes: audio };
      yield createJsonFile(`voices/${id}.json`, { name, description, format, createdAtMs });
    }
    for (const { id, updatedAtMs } of await workflows.list()) {
      // The starter workflow is built in. It's exported only if it was changed.
      const read = updatedAtMs === undefined ? undefined : await readable(`workflows/${id}`, () => workflows.get(id));
      if (read !== undefined) yield createJsonFile(`workflows/${id}.json`, read.workflow);
    }
    const folders = [["connections", connections], ["image_connections", imageProfiles]] as const;
    for (const [folder, profiles] of folders) {
      for (const { version: _, updatedAtMs: __, ...profile } of profiles.list()) {
        const path = `${folder}/${profile.id}`;
        if (profile.isUnreadable) await readable(path, refuseSealed);
        else if (profile.kind !== "demo") yield createJsonFile(`${path}.json`, profile);
      }
    }
    for (const { version: _, updatedAtMs: __, isHeld: ___, ...server } of toolServers.list()) {
      const path = `tool_servers/${server.id}`;
      if (server.isUnreadable) await readable(path, refuseSealed);
      else yield createJsonFile(`${path}.json`, server);
    }
    for (const { id, createdAtMs, content } of regexScripts.list()) {
      const path = `regex_scripts/${id}`;
      if (content === undefined) await readable(path, refuseSealed);
      else {
        const { name, order } = content;
        yield createJsonFile(`${path}.json`, { name, createdAtMs, order, script: toTavernScript(id, content) });
      }
    }
    const own = await readable("settings", () => Promise.resolve(settings.get().settings));
    const { version: _, ...voice } = await readable("speech", () => Promise.resolve(speech.get())) ?? {};
    const { version: __, ...listening } = await readable("transcription", () => Promise.resolve(transcription.get())) ??
      {};
    const searching = await readable("web_tools", () => Promise.resolve(web.getExport()));
    const { server } = await readable("push", () => Promise.resolve(push.getServer())) ?? {};
    yield createJsonFile("settings.json", {
      settings: own ?? {},
      speech: voice,
      transcription: listening,
      web: searching,
      notifications: server && { kind: server.kind, url: server.url, hasToken: server.token !== undefined },
    });
    const counts = await readable("usage", () => usage.export());
    if (counts !== undefined) yield createJsonFile("usage.json", counts);
  }

  /** Yields the settings of generated images. @param images Gets the names of their attachments. */
  async *#listGallery(readable: Readable, images: Set<string>): AsyncGenerator<ZipFile> {
    let before: string | undefined;
    do {
      const { items, nextCursor } = await this.#deps.gallery.list({ before, limit: GALLERY_PAGE });
      for (const { id, name, imageWidthPx: _, imageHeightPx: __, sizeBytes: ___, isUnreadable, ...image } of items) {
        if (isUnreadable) await readable(`gallery/${id}`, refuseSealed);
        else yield createJsonFile(`gallery/${id}.json`, { ...image, attachment: name });
        for (const each of [name, image.initImage]) if (each !== undefined) images.add(each);
      }
      before = nextCursor;
    } while (before !== undefined);
  }

  /**
   * Yields the originals of documents, each with its name and the characters and personas it's attached to. Imports
   * extract the text again.
   */
  async *#listOriginals(readable: Readable): AsyncGenerator<ZipFile> {
    const { documents, documentUses } = this.#deps;
    const owners = documentUses.list();
    for (const { id, name, contentType, url, createdAtMs, sizeBytes, isUnreadable, error } of documents.list()) {
      // Its name and type are lost. The original may still be readable, and its type is recognized by its content.
      if (isUnreadable) {
        await readable(`documents/${id}.json`, () => Promise.reject(new AppError("internal", error!.message)));
      }
      if (sizeBytes === 0) continue; // A link that wasn't fetched
      // Read before its entry starts, so that an unreadable file doesn't end the export.
      const facts = await readable(`documents/${id}`, () => measurePieces(documents.readOriginal(id)));
      if (facts === undefined) continue;
      const usedBy = owners.flatMap(({ kind, id: ownerId, documents: uses }) =>
        uses.filter((use) => use.id === id).map((use) => ({ kind, id: ownerId, use }))
      );
      yield { path: `document_files/${id}`, stream: () => documents.readOriginal(id) };
      yield createJsonFile(`documents/${id}.json`, { name, contentType, url, createdAtMs, usedBy });
    }
  }

  /** Yields conversations. Their memory is reserved in order, so that none waits for one after it. */
  async *#listChats({ held, signal }: ExportRun): AsyncGenerator<ChatFiles> {
    const { budget, reader, listConversationIds } = this.#deps;
    for (const id of listConversationIds()) {
      await yieldIfTickUsedUp();
      const weightBytes = reader.measureBytes(id) * PACKED_WEIGHT;
      const isCounted = weightBytes > UNCOUNTED_BYTES;
      // The response has started, so wait for memory without a time limit.
      const reserved = isCounted ? await budget.reserve(weightBytes, { signal, waitMs: Infinity }) : undefined;
      if (signal.aborted) return reserved?.release();
      if (reserved !== undefined) held.add(reserved);
      yield { weightBytes, reserved, read: () => this.#readChat(id) };
    }
  }

  /** Reads the files of a conversation. Joins the decrypted blocks without parsing them. */
  async #readChat(id: string): Promise<{ files: ZipFile[]; unreadable: string[] }> {
    const { reader, variants } = this.#deps;
    const unreadable: string[] = [];
    const readable = createReadable(unreadable);
    // Each starts reading its rows when called; calling them together gives one consistent state.
    const reading = readable(`conversations/${id}`, () => reader.readWithDamage(id));
    const noteIn = (folder: string) => ({ mid, n }: { mid: string; n: number }) =>
      void unreadable.push(`${folder}/${id}/${mid}/${n}`);
    const related = [
      ["variants", readable(`variants/${id}`, () => variants.readLines(id, noteIn("variants")))],
      ["continuations", readable(`continuations/${id}`, () => reader.readContinuations(id, noteIn("continuations")))],
    ] as const;
    const read = await reading;
    const lists = await Promise.all(related.map(async ([folder, lines]) => [folder, await lines] as const));
    if (read === undefined) return { files: [], unreadable };
    // The readable part is exported; its `damaged` field says what is missing.
    if (read.damaged.length > 0) unreadable.push(`conversations/${id}`);
    const files: ZipFile[] = [{ path: `conversations/${id}.json`, bytes: read.json }];
    for (const [folder, lines = []] of lists) {
      if (lines.length > 0) files.push({ path: `${folder}/${id}.jsonl`, bytes: Buffer.concat(lines) });
    }
    return { files, unreadable };
  }

  async #readConversation(id: string): Promise<WholeConversation> {
    const { json } = await this.#deps.reader.read(id, { hasVariants: true, hasContinuations: true });
    return await parseJsonIncrementally(json, Infinity) as WholeConversation;
  }

  async #findNames(conversation: WholeConversation): Promise<SpeakerNames> {
    const participants = (conversation.participants ?? []) as { character_id: string }[];
    const characters = new Map<string, string>();
    for (const { character_id: id } of participants) {
      const found = await this.#deps.characters.get(id).catch(() => undefined);
      if (found !== undefined) characters.set(id, found.character.name);
    }
    const user = await this.#deps.getUserName(conversation.persona_id as string | undefined);
    return { user, assistant: [...characters.values()][0] ?? "Assistant", characters };
  }
}

/** Returns a file name that isn't taken yet, ignoring case, and adds it to `used`. */
function toFreeName(preferred: string, used: Set<string>): string {
  const name = toFileName(preferred);
  const dot = name.lastIndexOf(".");
  let free = name;
  for (let n = 2; used.has(free.toLowerCase()); n++) free = `${name.slice(0, dot)} (${n})${name.slice(dot)}`;
  used.add(free.toLowerCase());
  return free;
}

/** Reads a sealed item that can't be opened. */
function refuseSealed(): Promise<never> {
  return Promise.reject(new AppError("internal", "It is sealed"));
}

function createJsonFile(path: string, json: unknown): ZipFile {
  return { path, bytes: encoder.encode(JSON.stringify(json)) };
}

async function measurePieces(pieces: AsyncIterable<Uint8Array>): Promise<{ sizeBytes: number; crc: number }> {
  let [sizeBytes, crc] = [0, 0];
  for await (const piece of pieces) {
    sizeBytes += piece.length;
    crc = crc32(piece, crc);
  }
  return { sizeBytes, crc };
}

async function readSample(voices: VoiceSamples, id: string): Promise<Uint8Array> {
  const { sample, file } = await voices.open(id);
  using opened = file;
  const bytes = new Uint8Array(sample.sizeBytes);
  for (let at = 0; at < bytes.length;) {
    const count = await opened.read(bytes.subarray(at));
    if (count === null) throw new AppError("internal", `The audio of voice sample "${id}" is incomplete`);
    at += count;
  }
  return bytes;
}

/** Reads items whose failure doesn't fail the export. @param unreadable Gets their paths; the last file lists them. */
function createReadable(unreadable: string[]): Readable {
  return async (path, reading) => {
    try {
      return await reading();
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (error.code !== "not_found") unreadable.push(path); // Deleted in the meantime
    }
  };
}

async function packPart(packer: Packer, part: ZipPart): Promise<PackedPart> {
  if (part === "settled") return { entries: [], attachments: [], unreadable: [] };
  if ("stream" in part) {
    // The checksum comes before the data, so the file is read twice instead of staying in memory.
    const { sizeBytes, crc } = await measurePieces(part.stream());
    const facts = { isDeflated: false, crc, sizeBytes, packedBytes: sizeBytes };
    return { entries: [{ path: part.path, ...facts, content: part.stream() }], attachments: [], unreadable: [] };
  }
  const { files, unreadable } = "read" in part ? await part.read() : { files: [part], unreadable: [] };
  const attachments: string[] = [];
  const entries: PackedEntry[] = [];
  await yieldIfTickUsedUp();
  for (const file of files) {
    if ("stream" in file) throw new TypeError("A chat has no streamed files");
    const { path, bytes } = file;
    const { packed, attachments: names, ...facts } = await packer.pack(bytes, /\.(?:jsonl?|md)$/.test(path));
    attachments.push(...names);
    entries.push({ path, ...facts, packedBytes: packed.length, content: [packed] });
  }
  return { entries, attachments, unreadable, reserved: "read" in part ? part.reserved : undefined };
}

/** Joins pieces up to `PIECE_BYTES`. */
async function* joinPieces(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let [small, smallBytes]: [Uint8Array[], number] = [[], 0];
  for await (const piece of pieces) {
    small.push(piece);
    smallBytes += piece.length;
    if (smallBytes < PIECE_BYTES) continue;
    yield small.length === 1 ? piece : Buffer.concat(small);
    [small, smallBytes] = [[], 0];
  }
  if (small.length > 0) yield Buffer.concat(small);
}

/** Compresses files in order. */
interface Packer {
  /**
   * Compresses a file. @param bytes Transferred: don't use them afterwards. @throws {AppError} `internal` if the Worker
   * is lost.
   */
  pack(bytes: Uint8Array, isText: boolean): Promise<PackedFile>;
  close(): void;
}

/** Starts a packer. */
function openPacker(): Packer {
  const worker = openWorker(new URL("./zip_worker.ts", import.meta.url));
  // The Worker answers in order.
  const waiting: { resolve(file: PackedFile): void; reject(error: AppError): void }[] = [];
  worker.onmessage = ({ data }: MessageEvent<PackedFile>) => waiting.shift()?.resolve(data);
  worker.onerror = (event) => {
    event.preventDefault(); // An unhandled error event would end the process.
    const error = new AppError("internal", `Can't pack the export: ${event.message}`);
    for (const { reject } of waiting.splice(0)) reject(error);
  };
  return {
    pack: (bytes, isText) =>
      new Promise((resolve, reject) => {
        waiting.push({ resolve, reject });
        // postMessage sends the whole buffer of a view, so copy a part of a larger buffer first.
        const own = bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice();
        const order: PackOrder = { bytes: own as Uint8Array<ArrayBuffer>, isText };
        worker.postMessage(order, [order.bytes.buffer]);
      }),
    close: () => worker.terminate(),
  };
}
