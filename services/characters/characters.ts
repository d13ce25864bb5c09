/** Characters: card files in our folder, and read-only ones in folders of other programs. */
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { createUuidV7 } from "../crypto/random.ts";
import type { LedgerEntry } from "../json/ledger.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import {
  joinBytes,
  pathExists,
  type PlainFile,
  readPlainFile,
  removeFile,
  statPlainFile,
  streamFilePieces,
  writeChunksAtomic,
  writeFileAtomic,
} from "../storage/atomic_file.ts";
import type { Database } from "../storage/database/database.ts";
import { KeyedMutex } from "../async/locks.ts";
import type { Version, VersionCause, VersionPart, Versions } from "../storage/versions.ts";
import { isPng } from "../attachments/images/png.ts";
import { assertExpected, type ExpectedVersion } from "../storage/preconditions.ts";
import type { Card } from "./card/card.ts";
import { type CardCodec, type CardFile, type ReadCard, toReadCard } from "./card/card_codec.ts";
import type { CardTrash, CardUploads } from "./card_trash.ts";
import { type CardAssets, CardFiles } from "./charx/charx.ts";
import { NO_CARD } from "./card/card_file.ts";
import { isSameCard, isSameImage } from "./card/same_card.ts";
import type { ZipEntry } from "../storage/zip/zip_reader.ts";
import {
  type CardFileStat,
  type CardRow,
  type CharacterItem,
  isPngPath,
  toCardRow,
  toCharacterItem,
} from "./card/card_head.ts";
import type { CardIndex } from "./index/card_index.ts";
import {
  type CardFolder,
  type CardPage,
  type CardQuery,
  findCardRow,
  findCardsNamed,
  findCaseClash,
  listCards,
  listFolders,
  type StoredCard,
} from "./index/card_rows.ts";
import { findMainIcon, isCharx, OWN_IMAGE, parseEmbeddedPath } from "./charx/charx_format.ts";
import { hasAssetChunks, replaceImage } from "./png/png_assets.ts";

/** A character with its card. */
export interface Character extends CharacterItem {
  /** Has other files, in its PNG or from a CHARX, which a CHARX export includes. */
  has_assets: boolean;
  card: Card;
}

/** A character and its version. */
export interface ReadCharacter {
  character: Character;
  /** JSON of the card, in UTF-8, if the card is large: `character.card` has only what lists and prompts use. */
  cardText?: Uint8Array<ArrayBuffer>;
  /** That of a large card. */
  ledger?: LedgerEntry[];
  /** Hash of the card, without the image. */
  version: string;
}

/** Converts images off the main thread. */
export interface ImageTools {
  /** @throws {AppError} `unprocessable` if it isn't an image or too large */
  toPng(image: Uint8Array, options?: { mustBeComplete?: boolean }): Promise<Uint8Array<ArrayBuffer>>;
  /** @throws {AppError} `unprocessable` */
  resizePng(png: Uint8Array, options: { widthPx: number; mustBeComplete?: boolean }): Promise<Uint8Array<ArrayBuffer>>;
}

/** Dependencies of `Characters`. */
export interface CharacterDeps {
  codec: CardCodec;
  db: Database;
  index: CardIndex;
  trash: CardTrash;
  assets: CardAssets;
  versions: Versions;
  uploads: CardUploads;
  images: ImageTools;
  events: EventHub;
  /** Folder of our card files. */
  folder: string;
}

/** An opened card file. */
export interface OpenCard extends ReadCard {
  stored: StoredCard;
  file: PlainFile;
}

/** Options of an import. */
interface CardImportOptions {
  id?: string;
  image?: Uint8Array;
  reusesSame?: boolean;
}

/** A card that may be there already. */
interface WantedCard {
  card: ReadCard;
  png?: Uint8Array;
  others?: readonly ZipEntry[];
}

/** Name of the CHARX assets in a version. */
const ASSETS_PART = "assets.zip";

/** Files read concurrently for lists with whole cards. */
const READ_AHEAD = 8;

/** Reads and changes characters. Changes of one character are serialized. */
export class Characters {
  readonly #deps: CharacterDeps;
  readonly #locks = new KeyedMutex();

  constructor(deps: CharacterDeps) {
    this.#deps = deps;
  }

  /** Reads and writes the cards. */
  get codec(): CardCodec {
    return this.#deps.codec;
  }

  /** Makes rows of the list again that a disk has damaged. @throws {AppError} `internal` */
  async verifyList(): Promise<void> {
    await this.#deps.index.verify();
  }

  /**
   * Lists characters without their cards, all or one page. @throws {AppError} `invalid_request` for an invalid cursor
   */
  async list(query: CardQuery): Promise<CardPage> {
    await this.#deps.index.refresh();
    return listCards(this.#deps.db, query);
  }

  /** Lists the folders that characters are in, by name. */
  async listFolders(): Promise<CardFolder[]> {
    await this.#deps.index.refresh();
    return listFolders(this.#deps.db);
  }

  /**
   * Yields the characters of a list with their cards, as JSON; unreadable ones as they are in the list. Characters that
   * were deleted or became unreadable are skipped.
   */
  async *readWithCards(items: readonly string[]): AsyncGenerator<string | Uint8Array> {
    for (let at = 0; at < items.length; at += READ_AHEAD) {
      const ids = items.slice(at, at + READ_AHEAD).map((item): string => JSON.parse(item).id);
      const found = await Promise.all(ids.map((id) => this.get(id).catch(NO_CARD)));
      for (const [i, one] of found.entries()) {
        const item = items[at + i]!;
        if (one !== undefined) yield toCharacterJson(one);
        else if ((JSON.parse(item) as CharacterItem).unreadable) yield item;
      }
    }
  }

  /** @throws {AppError} `not_found`; `unprocessable` for a file without a readable card */
  async get(id: string): Promise<ReadCharacter> {
    const { stored, file, card, text, version, ledger } = await this.open(id);
    const item = toCharacterItem({ ...stored, mtimeMs: file.mtimeMs }, card);
    const has_assets = await this.#hasAssets(stored, file.bytes);
    return { character: { ...item, has_assets, card }, cardText: text, version, ledger };
  }

  /**
   * Saves a card: into the image of an existing character, or as a new one without image.
   *
   * @param expected The required current version, if any.
   * @throws {AppError} `too_large`, `revision_mismatch`; `conflict` for an external or unreadable card, and for an
   *   id that differs from another only in case
   */
  async put(id: string, card: ReadCard, expected?: ExpectedVersion): Promise<ReadCharacter & { isNew: boolean }> {
    const { index, codec } = this.#deps;
    await index.refresh();
    return await this.#lock(id, async () => {
      const stored = findCardRow(this.#deps.db, id);
      if (stored === undefined) {
        assertExpected(`character "${id}"`, expected, undefined);
        return { ...await this.#create(id, card), isNew: true };
      }
      const { file } = await this.#openOwn(id, expected);
      const content = isPngPath(stored.path)
        ? await codec.write(card, { kind: "png" }, { png: file.bytes })
        : await codec.write(card, { kind: "json" });
      return { ...await this.#replace(stored, { content, card, cause: "put" }), isNew: false };
    });
  }

  /**
   * Creates a character from a card file: PNG, JSON or CHARX.
   *
   * @param file Its bytes, or its path. The file is left in place.
   * @param options.id By default a new one.
   * @param options.image Image for files without one: PNG, JPEG, WebP or GIF. A card inside it is ignored.
   * @param options.reusesSame Returns a character that is the same, see `findSame`, instead of creating another one.
   * @throws {AppError} `unprocessable`, `too_large`; `conflict` if the id is taken
   */
  async importCard(
    file: Uint8Array<ArrayBuffer> | string,
    { id = createUuidV7(), image, reusesSame = false }: CardImportOptions = {},
  ): Promise<ReadCharacter & { isPresent?: boolean }> {
    // A CHARX is read from disk.
    if (typeof file !== "string" && isCharx(file)) {
      return await this.#deps.uploads.withTemporaryFile(
        [file],
        (path) => this.importCard(path, { id, image, reusesSame }),
      );
    }
    const isOnDisk = typeof file === "string";
    const { avatarPng, avatarImage = image, others, ...card } = await this.readFile(file);
    const png = avatarPng ?? (avatarImage && await this.#asPng(avatarImage));
    using files = isOnDisk && others !== undefined ? await CardFiles.open(file, others) : undefined;
    const create = () => this.#lock(id, () => this.#create(id, card, png, files));
    await this.#deps.index.refresh();
    if (!reusesSame) return await create();
    // One after another, or two requests with the same file would both find none.
    return await this.#locks.run(`same ${card.card.data.name}`, async () => {
      const same = await this.#findSame({ card, png, others });
      return same === undefined ? await create() : { ...await this.get(same), isPresent: true };
    });
  }

  /** Reads a card file, or one on disk, without storing anything. @throws {AppError} Like `importCard` */
  async readFile(file: Uint8Array | string): Promise<CardFile> {
    const { codec } = this.#deps;
    return typeof file === "string" ? await codec.readFile(file) : await codec.parseAny(file);
  }

  /**
   * Finds the character that a card file would repeat: its card, its image and its other files are the same, or were in
   * an earlier version. A file without an image is the same as one with it.
   *
   * @param image Like that of `importCard`.
   * @param knownId A character that it may be although it has another name now.
   * @throws {AppError} `unprocessable`, `too_large`
   */
  async findSame(
    file: Uint8Array<ArrayBuffer> | string,
    { image, knownId }: { image?: Uint8Array; knownId?: string } = {},
  ): Promise<string | undefined> {
    if (typeof file !== "string" && isCharx(file)) {
      return await this.#deps.uploads.withTemporaryFile([file], (path) => this.findSame(path, { image, knownId }));
    }
    const { avatarPng, avatarImage = image, others, ...card } = await this.readFile(file);
    // One that can't be read isn't imported either.
    const png = avatarPng ?? (avatarImage && await this.#asPng(avatarImage).catch(NO_CARD));
    return await this.#findSame({ card, png, others }, knownId);
  }

  async #findSame(wanted: WantedCard, knownId?: string): Promise<string | undefined> {
    const { db, index } = this.#deps;
    await index.refresh();
    const ids = findCardsNamed(db, wanted.card.card.data.name);
    for (const id of knownId === undefined ? ids : [knownId, ...ids]) {
      if (await this.#isSame(id, wanted)) return id;
    }
    return undefined;
  }

  async #isSame(id: string, { card, png, others = [] }: WantedCard): Promise<boolean> {
    const now = await this.open(id).catch(NO_CARD);
    if (now === undefined) return false;
    const isOne = (known: ReadCard, name: string, bytes: Uint8Array) =>
      isSameCard(known, card) && (png === undefined || (isPngPath(name) && isSameImage(bytes, png)));
    if (isOne(now, now.stored.path, now.file.bytes)) {
      using files = others.length === 0 ? undefined : await this.openCharxFiles(now.stored);
      const known = new Map(files?.entries.map(({ path, crc }) => [path, crc]));
      return others.every(({ path, crc }) => known.get(path) === crc);
    }
    if (now.stored.isExternal || others.length > 0) return false;
    for (const { n } of await this.#deps.versions.list(toResource(id))) {
      const before = await this.#readVersion(id, n).catch(NO_CARD);
      if (before && isOne(before.card, before.name, before.bytes)) return true;
    }
    return false;
  }

  /**
   * Creates a character from an upload. A CHARX is written to disk as it arrives.
   *
   * @param maxBytes Limit for PNG and JSON, which are kept in memory.
   * @throws {AppError} like `importCard`; `storage_full`, and errors of `content`
   */
  async importStream(
    content: AsyncIterable<Uint8Array>,
    maxBytes: number,
    options: CardImportOptions = {},
  ): Promise<ReadCharacter & { isPresent?: boolean }> {
    return await this.#deps.uploads.receive(content, maxBytes, (file) => this.importCard(file, options));
  }

  /**
   * Creates a character from a card and an image.
   *
   * @throws {AppError} `conflict` if the id is taken
   */
  async add(id: string, card: Card, png: Uint8Array): Promise<ReadCharacter> {
    await this.#deps.index.refresh();
    return await this.#lock(id, () => this.#create(id, toReadCard(card), png));
  }

  /**
   * Replaces the image of a character without changing its card.
   *
   * @param image PNG, JPEG, WebP or GIF. A card inside it is ignored.
   * @throws {AppError} `not_found`, `conflict`, `revision_mismatch`; `unprocessable` if it isn't an image
   */
  async setAvatar(
    id: string,
    image: Uint8Array,
    { expected, cause = "avatar" }: { expected?: ExpectedVersion; cause?: VersionCause } = {},
  ): Promise<ReadCharacter> {
    const { index, assets, codec } = this.#deps;
    await index.refresh();
    this.#getOwn(id);
    const png = await this.#asPng(image);
    return await this.#lock(id, async () => {
      const { stored, file, ...before } = await this.#openOwn(id, expected);
      const replaced = parseEmbeddedPath(findMainIcon(before.card)?.uri);
      // The icon of the CHARX is no longer the character's image.
      const card = replaced === undefined ? before : await codec.edit(before, { mainIcon: OWN_IMAGE });
      const imageFile = replaceImage(isPngPath(stored.path) ? file.bytes : undefined, png);
      const ending = "png";
      const changeAssets = replaced === undefined ? undefined : () => assets.removeEntry(id, replaced);
      const content = await codec.write(card, { kind: "png" }, { png: imageFile });
      return await this.#replace(stored, { content, card, cause, ending, changeAssets });
    });
  }

  /** Lists earlier versions, newest first. @throws {AppError} `not_found` */
  async listVersions(id: string): Promise<Version[]> {
    await this.#deps.index.refresh();
    if (findCardRow(this.#deps.db, id) === undefined) throw notFound(id);
    return await this.#deps.versions.list(toResource(id));
  }

  /** Returns card and image of an earlier version. @throws {AppError} `not_found`, `unprocessable` */
  async getVersion(id: string, n: number): Promise<ReadCard & { png?: Uint8Array<ArrayBuffer> }> {
    await this.#deps.index.refresh();
    if (findCardRow(this.#deps.db, id) === undefined) throw notFound(id);
    const { name, bytes, card } = await this.#readVersion(id, n);
    return { ...card, png: isPngPath(name) ? bytes : undefined };
  }

  /**
   * Returns the image of an earlier version.
   *
   * @param widthPx Resizes it to this width.
   * @throws {AppError} `not_found`, also for a version without image; `unprocessable`
   */
  async getVersionAvatar(id: string, n: number, widthPx?: number): Promise<Uint8Array<ArrayBuffer>> {
    const { png } = await this.getVersion(id, n);
    if (png === undefined) throw new AppError("not_found", `Version ${n} of character "${id}" has no image`);
    return widthPx === undefined ? png : await this.#deps.images.resizePng(png, { widthPx });
  }

  /**
   * Restores card, image and assets of an earlier version. The current state becomes a version.
   *
   * @throws {AppError} `not_found`, `conflict`, `revision_mismatch`; `unprocessable` for a damaged version
   */
  async restoreVersion(id: string, n: number, expected?: ExpectedVersion): Promise<ReadCharacter> {
    const { index, assets } = this.#deps;
    await index.refresh();
    return await this.#lock(id, async () => {
      const stored = this.#getOwn(id);
      // An unreadable current card is replaced, too.
      if (stored.isReadable) await this.#openOwn(id, expected);
      const { name, bytes, card, assetsPath } = await this.#readVersion(id, n);
      const changeAssets = async () => {
        if (assetsPath === undefined) await removeFile(assets.getPath(id));
        else await writeChunksAtomic(assets.getPath(id), streamFilePieces(assetsPath));
      };
      const ending = isPngPath(name) ? "png" : "json";
      return await this.#replace(stored, { content: bytes, card, cause: "restore", ending, changeAssets });
    });
  }

  /** @throws {AppError} `unprocessable` if it can't be decoded */
  async #asPng(image: Uint8Array): Promise<Uint8Array> {
    const { images } = this.#deps;
    if (!isPng(image)) return await images.toPng(image, { mustBeComplete: true });
    // Only decoding shows whether a PNG is valid.
    await images.resizePng(image, { widthPx: 16, mustBeComplete: true });
    return image;
  }

  /**
   * Opens the assets of the CHARX that a character was imported from. @throws {AppError} `unprocessable`, `internal`
   */
  async openCharxFiles({ id, isExternal }: StoredCard): Promise<CardFiles | undefined> {
    return isExternal ? undefined : await this.#deps.assets.open(id);
  }

  /** Reports whether a character was imported from a CHARX with assets. @throws {AppError} `internal` */
  async hasCharxFiles({ id, isExternal }: Pick<StoredCard, "id" | "isExternal">): Promise<boolean> {
    return !isExternal && await this.#deps.assets.has(id);
  }

  async #hasAssets(stored: Pick<StoredCard, "id" | "path" | "isExternal">, content: Uint8Array): Promise<boolean> {
    return await this.hasCharxFiles(stored) || (isPngPath(stored.path) && hasAssetChunks(content));
  }

  /** Moves a character to the trash. @throws {AppError} `not_found`, `conflict`, `revision_mismatch` */
  async remove(id: string, expected?: ExpectedVersion): Promise<void> {
    const { index, trash, assets, versions, events } = this.#deps;
    await index.refresh();
    await this.#lock(id, async () => {
      const stored = this.#getOwn(id);
      // Unreadable files can be deleted and restored, too.
      const opened = stored.isReadable || expected !== undefined ? await this.#openOwn(id, expected) : undefined;
      const file = opened?.file ?? await readPlainFile(stored.path);
      const entry = file && await trash.store(stored, opened?.card.data.name ?? id, file.bytes);
      await index.write([stored.path], async () => {
        await removeFile(stored.path);
        return { removedPath: stored.path };
      });
      await assets.write(id, undefined);
      if (entry !== undefined) await versions.moveToTrash(toResource(id), entry);
      events.publish({ kind: "character", id });
    });
  }

  /** Opens the file of a character. @throws {AppError} `not_found`, `unprocessable` */
  async open(id: string): Promise<OpenCard> {
    await this.#deps.index.refresh();
    let stored = findCardRow(this.#deps.db, id);
    let file = stored && await readPlainFile(stored.path);
    const now = findCardRow(this.#deps.db, id);
    if (file === undefined && now !== undefined && now.path !== stored?.path) {
      stored = now; // It got an image in the meantime.
      file = await readPlainFile(now.path);
    }
    if (file === undefined) {
      if (stored !== undefined) this.#deps.index.markStale(); // It was deleted in the meantime.
      throw notFound(id);
    }
    return { stored: stored!, file, ...await this.#deps.codec.parse(stored!.path, file.bytes) };
  }

  #lock<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#locks.run(id.toLowerCase(), work);
  }

  /** Returns the row of a writable character. */
  #getOwn(id: string): StoredCard {
    const stored = findCardRow(this.#deps.db, id);
    if (stored === undefined) throw notFound(id);
    if (stored.isExternal) {
      throw new AppError("conflict", `Character "${id}" belongs to another program's folder and is read-only`);
    }
    return stored;
  }

  async #openOwn(id: string, expected: ExpectedVersion | undefined): Promise<OpenCard> {
    const stored = this.#getOwn(id);
    if (!stored.isReadable) {
      throw new AppError("conflict", `Can't change character "${id}": its file has no readable card. Delete it first`);
    }
    const opened = await this.open(id);
    assertExpected(`character "${id}"`, expected, opened.version);
    return opened;
  }

  /** Replaces the file of a character and stores the old one as a version. */
  async #replace(
    stored: StoredCard,
    { content, card, cause, ending, changeAssets }: {
      content: Uint8Array;
      card: ReadCard;
      cause: VersionCause;
      /** File extension; by default unchanged. */
      ending?: "png" | "json";
      changeAssets?: () => Promise<void>;
    },
  ): Promise<ReadCharacter> {
    const { versions, assets } = this.#deps;
    const { id } = stored;
    const isSameKind = ending === undefined || isPngPath(stored.path) === (ending === "png");
    const path = isSameKind ? stored.path : this.#getPath(id, ending);
    if (!isSameKind) await this.#refuseTaken(path);
    const assetsPath = assets.getPath(id);
    const before = await readPlainFile(stored.path).catch(NO_CARD);
    const isSame = isSameKind && changeAssets === undefined && before !== undefined && isEqual(before.bytes, content);
    const parts: VersionPart[] = [];
    if (!isSame) {
      parts.push({ name: isPngPath(stored.path) ? "card.png" : "card.json", path: stored.path });
      if (await assets.has(id)) parts.push({ name: ASSETS_PART, path: assetsPath });
    }
    const touched = [stored.path, path, assetsPath];
    return await versions.replace(toResource(id), { cause, parts, touched }, async () => {
      await changeAssets?.();
      return await this.#write({ ...stored, path }, content, card, isSameKind ? undefined : stored.path);
    });
  }

  async #readVersion(id: string, n: number) {
    const parts = await this.#deps.versions.listParts(toResource(id), n);
    const [name, path] = [...parts].find(([part]) => part === "card.png" || part === "card.json") ?? [];
    const file = path === undefined ? undefined : await readPlainFile(path);
    if (name === undefined || file === undefined) {
      throw new AppError("internal", `The files of version ${n} of character "${id}" are missing`);
    }
    const card = await this.#deps.codec.parse(name, file.bytes);
    return { name, bytes: file.bytes, card, assetsPath: parts.get(ASSETS_PART) };
  }

  /** Creates the file of a new character. */
  async #create(id: string, card: ReadCard, png?: Uint8Array, files?: CardFiles): Promise<ReadCharacter> {
    const { db, codec } = this.#deps;
    if (findCardRow(db, id) !== undefined) {
      throw new AppError("conflict", `The ID "${id}" is already taken by another character`);
    }
    const clash = findCaseClash(db, id);
    if (clash !== undefined) {
      throw new AppError("conflict", `The ID "${id}" differs from "${clash}" only in case`);
    }
    for (const ending of ["png", "json"] as const) await this.#refuseTaken(this.#getPath(id, ending));
    const content = png === undefined
      ? await codec.write(card, { kind: "json" })
      : await codec.write(card, { kind: "png" }, { png });
    const path = this.#getPath(id, png === undefined ? "json" : "png");
    const { assets, versions } = this.#deps;
    const touched = [path, assets.getPath(id)];
    return await versions.replace(toResource(id), { cause: "put", parts: [], touched }, async () => {
      // Before the card, so that whoever sees the card finds its assets. Also removes assets left by a deleted
      // character.
      await assets.write(id, files);
      return await this.#write({ id, path, isExternal: false }, content, card);
    });
  }

  async #write(
    { id, path, isExternal }: Pick<StoredCard, "id" | "path" | "isExternal">,
    content: Uint8Array,
    { card, text, version, ledger }: ReadCard,
    removedPath?: string,
  ): Promise<ReadCharacter> {
    const { index, events } = this.#deps;
    let stat: CardFileStat | undefined;
    await index.write(removedPath === undefined ? [path] : [path, removedPath], async () => {
      await writeFileAtomic(path, content);
      const row: CardRow = toCardRow(stat = await statCardFile(id, path, isExternal), card);
      // After the index, so that concurrent readers find a file where the index says it is.
      const afterwards = removedPath === undefined ? undefined : () => removeFile(removedPath);
      return { row, removedPath, afterwards };
    });
    events.publish({ kind: "character", id });
    const has_assets = await this.#hasAssets({ id, path, isExternal }, content);
    return { character: { ...toCharacterItem(stat!, card), has_assets, card }, cardText: text, version, ledger };
  }

  /** A file unknown to the index: added a moment ago, or not a regular file. */
  async #refuseTaken(path: string): Promise<void> {
    if (!await pathExists(path)) return;
    this.#deps.index.markStale();
    throw new AppError("conflict", `Can't write "${path}": another file or folder has this name`);
  }

  #getPath(id: string, ending: "png" | "json"): string {
    return join(this.#deps.folder, `${id}.${ending}`);
  }
}

async function statCardFile(id: string, path: string, isExternal: boolean): Promise<CardFileStat> {
  const info = await statPlainFile(path);
  if (info === undefined) throw new AppError("internal", `Can't find "${path}" after writing it`);
  return { id, path, isExternal, ...info };
}

/**
 * Returns the JSON of a character, with its whole card.
 *
 * @param more Fields to add.
 */
export function toCharacterJson(
  { character, cardText }: ReadCharacter,
  more: object = {},
): string | Uint8Array<ArrayBuffer> {
  return toCardJson({ ...character, ...more }, cardText);
}

/** Returns the JSON of an object with a card. @param text JSON of the card, if `card` isn't the whole card. */
export function toCardJson<T extends { card: Card }>(
  { card, ...others }: T,
  text: Uint8Array<ArrayBuffer> | undefined,
): string | Uint8Array<ArrayBuffer> {
  if (text === undefined) return JSON.stringify({ ...others, card });
  const encoder = new TextEncoder();
  return joinBytes([encoder.encode(`${JSON.stringify(others).slice(0, -1)},"card":`), text, encoder.encode("}")]);
}

function toResource(id: string) {
  return { kind: "characters" as const, id };
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && Buffer.compare(one, other) === 0;
}

function notFound(id: string): AppError {
  return new AppError("not_found", `Character "${id}" not found`);
}
