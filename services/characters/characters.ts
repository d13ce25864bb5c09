/** Characters: card files in a folder of ours and in folders of other programs, which are read in place and never written. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { uuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import { fileExists, writeChunksAtomic, writeFileAtomic } from "../storage/atomic_file.ts";
import type { Database } from "../storage/database/database.ts";
import { filePieces } from "../storage/file_pieces.ts";
import { KeyedMutex } from "../async/keyed_mutex.ts";
import type { Version, VersionCause, VersionPart, Versions } from "../storage/versions.ts";
import { type Card, cardOf } from "./card/card.ts";
import type { ArrivingCards } from "./card_uploads.ts";
import { type CardAssets, CardFiles } from "./charx/card_assets.ts";
import { cardIn, NO_CARD, readCardBytes, readCardFile } from "./card/card_file.ts";
import { type CardPlace, type CardRow, type CharacterItem, hasPicture, itemOf, rowOf } from "./card/card_head.ts";
import type { CardIndex } from "./index/card_index.ts";
import {
  type CardPage,
  type CardQuery,
  findCard,
  findCaseClash,
  listCards,
  type StoredCard,
} from "./index/card_rows.ts";
import { cardBytes } from "./card/card_text.ts";
import type { CardTrash } from "./card_trash.ts";
import { isCharx } from "./charx/charx_format.ts";
import { embeddedPath, mainIconOf, OWN_PICTURE, withMainIcon } from "./card/main_icon.ts";
import { type PlainFile, readPlainFile, removeFile, statPlainFile } from "../storage/plain_files.ts";
import { hasAssetChunks, withPicture } from "./png/png_assets.ts";
import { embedCard } from "./png/png_card.ts";
import { isPng } from "../attachments/images/png_chunks.ts";
import { type ExpectedVersion, isExpected } from "../storage/preconditions.ts";

/** A character with its card. */
export interface Character extends CharacterItem {
  /** It has other files, in its PNG or from a CHARX, which an export as CHARX contains. */
  has_assets: boolean;
  card: Card;
}

/** A character as it stands. */
export interface ReadCharacter {
  character: Character;
  /** Hash of the card; the picture has no part in it. */
  version: string;
}

/** What turns pictures into PNGs, off the serving thread. */
export interface PictureTools {
  /** @throws {AppError} `unprocessable` for what is no picture or too large. */
  toPng(image: Uint8Array, options?: { mustBeWhole?: boolean }): Promise<Uint8Array<ArrayBuffer>>;
  /** @throws {AppError} `unprocessable` */
  resizePng(png: Uint8Array, options: { widthPx: number; mustBeWhole?: boolean }): Promise<Uint8Array<ArrayBuffer>>;
}

/** What the characters stand on. */
export interface CharacterParts {
  db: Database;
  index: CardIndex;
  trash: CardTrash;
  assets: CardAssets;
  versions: Versions;
  arriving: ArrivingCards;
  pictures: PictureTools;
  events: EventHub;
  /** Folder of our own card files. */
  folder: string;
}

/** The file of a character and what is in it. */
export interface OpenCard {
  stored: StoredCard;
  file: PlainFile;
  card: Card;
  version: string;
}

/** Name of the other files of a CHARX in a version. */
const ASSETS_PART = "assets.zip";

/** Files read beside each other for the list with whole cards. */
const READ_AHEAD = 8;

/** Reads and changes characters. Changes of one character happen one after another. */
export class Characters {
  readonly #parts: CharacterParts;
  readonly #locks = new KeyedMutex();

  constructor(parts: CharacterParts) {
    this.#parts = parts;
  }

  /** Lists characters without their cards, all or a page. @throws {AppError} `invalid_request` for a foreign cursor */
  async list(query: CardQuery): Promise<CardPage> {
    await this.#parts.index.fresh();
    return listCards(this.#parts.db, query);
  }

  /** Gives the JSON texts of the characters in a list with their cards; one whose file went, or holds no card any more, is left out. */
  async *withCards(items: readonly string[]): AsyncGenerator<string> {
    for (let at = 0; at < items.length; at += READ_AHEAD) {
      const ids = items.slice(at, at + READ_AHEAD).map((item): string => JSON.parse(item).id);
      const found = await Promise.all(ids.map((id) => this.get(id).catch(NO_CARD)));
      for (const one of found) if (one !== undefined) yield JSON.stringify(one.character);
    }
  }

  /** @throws {AppError} `not_found`; `unprocessable` for a file that holds no readable card */
  async get(id: string): Promise<ReadCharacter> {
    const { stored, file, card, version } = await this.open(id);
    const item = itemOf({ ...stored, mtimeMs: file.mtimeMs }, card);
    return { character: { ...item, has_assets: await this.#hasAssets(stored, file.bytes), card }, version };
  }

  /**
   * Saves a card: into the picture of the character, or as a new character without one.
   *
   * @param json A card of any version.
   * @param expected The version that must stand, when the caller asked for the check.
   * @throws {AppError} `unprocessable`, `revision_mismatch`; `conflict` for an external or unreadable card and for an id
   *   that differs from another by letter case alone.
   */
  async put(id: string, json: unknown, expected?: ExpectedVersion): Promise<ReadCharacter & { isNew: boolean }> {
    const card = cardOf(json);
    await this.#parts.index.fresh();
    return await this.#inTurn(id, async () => {
      const stored = findCard(this.#parts.db, id);
      if (stored === undefined) {
        checkVersion(id, undefined, expected);
        return { ...await this.#create(id, card), isNew: true };
      }
      const { file } = await this.#openOwn(id, expected);
      const content = hasPicture(stored.path) ? embedCard(file.bytes, card) : cardBytes(card, 2);
      return { ...await this.#replace(stored, { content, card, cause: "put" }), isNew: false };
    });
  }

  /**
   * Makes a new character of a card file: PNG, JSON or CHARX.
   *
   * @param file Its bytes, or where it lies on disk; it stays there.
   * @param options.id By default one of ours.
   * @param options.picture For a file that carries none: PNG, JPEG, WebP or GIF; a card inside it does not count.
   * @throws {AppError} `unprocessable`, `too_large`; `conflict` when the id is taken
   */
  async importCard(
    file: Uint8Array<ArrayBuffer> | string,
    { id = uuidV7(), picture }: { id?: string; picture?: Uint8Array } = {},
  ): Promise<ReadCharacter> {
    // A CHARX is read where it lies.
    if (typeof file !== "string" && isCharx(file)) {
      return await this.#parts.arriving.keep([file], (path) => this.importCard(path, { id, picture }));
    }
    const isOnDisk = typeof file === "string";
    const { card, avatarPng, avatarImage = picture, others } = isOnDisk
      ? await readCardFile(file)
      : readCardBytes(file);
    const png = avatarPng ?? (avatarImage && await this.#asPng(avatarImage));
    using files = isOnDisk && others !== undefined ? await CardFiles.open(file, others) : undefined;
    await this.#parts.index.fresh();
    return await this.#inTurn(id, () => this.#create(id, card, png, files));
  }

  /**
   * Makes a new character of a card file that is still coming: a CHARX goes to disk as it comes.
   *
   * @param maxBytes Of a PNG or JSON, which is held.
   * @throws {AppError} as `importCard`; `storage_full`, and what `content` throws
   */
  async importStream(content: AsyncIterable<Uint8Array>, maxBytes: number): Promise<ReadCharacter> {
    return await this.#parts.arriving.take(content, maxBytes, (file) => this.importCard(file));
  }

  /**
   * Makes a character of a card and a picture under an id of the caller's.
   *
   * @throws {AppError} `conflict` when the id is taken.
   */
  async add(id: string, card: Card, png: Uint8Array): Promise<ReadCharacter> {
    await this.#parts.index.fresh();
    return await this.#inTurn(id, () => this.#create(id, card, png));
  }

  /**
   * Gives the character another picture and keeps its card.
   *
   * @param image PNG, JPEG, WebP or GIF; a card inside it does not count.
   * @throws {AppError} `not_found`, `conflict`, `revision_mismatch`; `unprocessable` for what is no such picture
   */
  async setAvatar(
    id: string,
    image: Uint8Array,
    { expected, cause = "avatar" }: { expected?: ExpectedVersion; cause?: VersionCause } = {},
  ): Promise<ReadCharacter> {
    const { index, assets } = this.#parts;
    await index.fresh();
    this.#own(id);
    const png = await this.#asPng(image);
    return await this.#inTurn(id, async () => {
      const { stored, file, card: before } = await this.#openOwn(id, expected);
      const replaced = embeddedPath(mainIconOf(before)?.uri);
      // The icon of a CHARX is this character's picture no more.
      const card = replaced === undefined ? before : withMainIcon(before, OWN_PICTURE);
      const picture = withPicture(hasPicture(stored.path) ? file.bytes : undefined, png);
      const ending = "png";
      const changeAssets = replaced === undefined ? undefined : () => assets.leaveOut(id, replaced);
      return await this.#replace(stored, { content: embedCard(picture, card), card, cause, ending, changeAssets });
    });
  }

  /** Lists the earlier versions of a character, newest first. @throws {AppError} `not_found` */
  async versions(id: string): Promise<Version[]> {
    await this.#parts.index.fresh();
    if (findCard(this.#parts.db, id) === undefined) throw notFound(id);
    return await this.#parts.versions.list(resourceOf(id));
  }

  /** Returns the card and the picture of an earlier version. @throws {AppError} `not_found`, `unprocessable` */
  async version(id: string, n: number): Promise<{ card: Card; png?: Uint8Array<ArrayBuffer> }> {
    await this.#parts.index.fresh();
    if (findCard(this.#parts.db, id) === undefined) throw notFound(id);
    const { name, bytes, card } = await this.#readVersion(id, n);
    return { card, png: hasPicture(name) ? bytes : undefined };
  }

  /**
   * Returns the picture of an earlier version.
   *
   * @param widthPx Reduces it to that width.
   * @throws {AppError} `not_found` also for a version without a picture; `unprocessable`
   */
  async versionAvatar(id: string, n: number, widthPx?: number): Promise<Uint8Array<ArrayBuffer>> {
    const { png } = await this.version(id, n);
    if (png === undefined) throw new AppError("not_found", `Version ${n} of character "${id}" has no picture`);
    return widthPx === undefined ? png : await this.#parts.pictures.resizePng(png, { widthPx });
  }

  /**
   * Restores card, picture and other files of an earlier version. What they replace becomes a version.
   *
   * @throws {AppError} `not_found`, `conflict`, `revision_mismatch`; `unprocessable` for a damaged version
   */
  async restoreVersion(id: string, n: number, expected?: ExpectedVersion): Promise<ReadCharacter> {
    const { index, assets } = this.#parts;
    await index.fresh();
    return await this.#inTurn(id, async () => {
      const stored = this.#own(id);
      // A current card that can't be read is replaced all the same.
      if (stored.isReadable) await this.#openOwn(id, expected);
      const { name, bytes, card, assetsPath } = await this.#readVersion(id, n);
      const changeAssets = async () => {
        if (assetsPath === undefined) await removeFile(assets.pathOf(id));
        else await writeChunksAtomic(assets.pathOf(id), filePieces(assetsPath));
      };
      const ending = hasPicture(name) ? "png" : "json";
      return await this.#replace(stored, { content: bytes, card, cause: "restore", ending, changeAssets });
    });
  }

  /** @throws {AppError} `unprocessable` for what cannot be shown */
  async #asPng(image: Uint8Array): Promise<Uint8Array> {
    const { pictures } = this.#parts;
    if (!isPng(image)) return await pictures.toPng(image, { mustBeWhole: true });
    // Only a decoder knows whether a PNG that came as one can be shown.
    await pictures.resizePng(image, { widthPx: 16, mustBeWhole: true });
    return image;
  }

  /** Opens the other files of the CHARX that a character came in. @throws {AppError} `unprocessable`, `internal` */
  async filesOf({ id, isExternal }: StoredCard): Promise<CardFiles | undefined> {
    return isExternal ? undefined : await this.#parts.assets.open(id);
  }

  /** Says whether it came in a CHARX with other files. @throws {AppError} `internal` */
  async hasCharxFiles({ id, isExternal }: Pick<StoredCard, "id" | "isExternal">): Promise<boolean> {
    return !isExternal && await this.#parts.assets.has(id);
  }

  async #hasAssets(stored: Pick<StoredCard, "id" | "path" | "isExternal">, content: Uint8Array): Promise<boolean> {
    return await this.hasCharxFiles(stored) || (hasPicture(stored.path) && hasAssetChunks(content));
  }

  /** Moves a character to the trash. @throws {AppError} `not_found`, `conflict`, `revision_mismatch` */
  async remove(id: string, expected?: ExpectedVersion): Promise<void> {
    const { index, trash, assets, versions, events } = this.#parts;
    await index.fresh();
    await this.#inTurn(id, async () => {
      const stored = this.#own(id);
      // A file that cannot be read can be removed all the same, and comes back as it was.
      const opened = stored.isReadable || expected !== undefined ? await this.#openOwn(id, expected) : undefined;
      const file = opened?.file ?? await readPlainFile(stored.path);
      const entry = file && await trash.keep(stored, opened?.card.data.name ?? id, file.bytes);
      await index.write([stored.path], async () => {
        await removeFile(stored.path);
        return { removedPath: stored.path };
      });
      await assets.write(id, undefined);
      if (entry !== undefined) await versions.moveToTrash(resourceOf(id), entry);
      events.publish({ kind: "character", id });
    });
  }

  /** Opens the file of a character. @throws {AppError} `not_found`, `unprocessable` */
  async open(id: string): Promise<OpenCard> {
    await this.#parts.index.fresh();
    let stored = findCard(this.#parts.db, id);
    let file = stored && await readPlainFile(stored.path);
    const now = findCard(this.#parts.db, id);
    if (file === undefined && now !== undefined && now.path !== stored?.path) {
      stored = now; // its picture came while the file without one was asked for
      file = await readPlainFile(now.path);
    }
    if (file === undefined) {
      if (stored !== undefined) this.#parts.index.distrust(); // it went a moment ago
      throw notFound(id);
    }
    const card = cardIn(stored!.path, file.bytes);
    return { stored: stored!, file, card, version: versionOf(card) };
  }

  #inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#locks.run(id.toLowerCase(), work);
  }

  /** The row of a character that may be written. */
  #own(id: string): StoredCard {
    const stored = findCard(this.#parts.db, id);
    if (stored === undefined) throw notFound(id);
    if (stored.isExternal) {
      throw new AppError("conflict", `Character "${id}" belongs to another program's folder and is read-only`);
    }
    return stored;
  }

  async #openOwn(id: string, expected: ExpectedVersion | undefined): Promise<OpenCard> {
    const stored = this.#own(id);
    if (!stored.isReadable) {
      throw new AppError("conflict", `Character "${id}" is a file without a readable card; remove it first`);
    }
    const opened = await this.open(id);
    checkVersion(id, opened.version, expected);
    return opened;
  }

  /** Replaces the file of a character and keeps what it was. */
  async #replace(
    stored: StoredCard,
    { content, card, cause, ending, changeAssets }: {
      content: Uint8Array;
      card: Card;
      cause: VersionCause;
      /** Of its file; by default the present one. */
      ending?: "png" | "json";
      changeAssets?: () => Promise<void>;
    },
  ): Promise<ReadCharacter> {
    const { versions, assets } = this.#parts;
    const { id } = stored;
    const isSameKind = ending === undefined || hasPicture(stored.path) === (ending === "png");
    const path = isSameKind ? stored.path : this.#pathOf(id, ending);
    if (!isSameKind) await this.#refuseTaken(path);
    const assetsPath = assets.pathOf(id);
    const before = await readPlainFile(stored.path).catch(NO_CARD);
    const isSame = isSameKind && changeAssets === undefined && before !== undefined && isEqual(before.bytes, content);
    const parts: VersionPart[] = [];
    if (!isSame) {
      parts.push({ name: hasPicture(stored.path) ? "card.png" : "card.json", path: stored.path });
      if (await assets.has(id)) parts.push({ name: ASSETS_PART, path: assetsPath });
    }
    const touched = [stored.path, path, assetsPath];
    return await versions.replace(resourceOf(id), { cause, parts, touched }, async () => {
      await changeAssets?.();
      return await this.#write({ ...stored, path }, content, card, isSameKind ? undefined : stored.path);
    });
  }

  async #readVersion(id: string, n: number) {
    const parts = await this.#parts.versions.parts(resourceOf(id), n);
    const [name, path] = [...parts].find(([part]) => part === "card.png" || part === "card.json") ?? [];
    const file = path === undefined ? undefined : await readPlainFile(path);
    if (name === undefined || file === undefined) {
      throw new AppError("internal", `The files of version ${n} of character "${id}" are missing`);
    }
    return { name, bytes: file.bytes, card: cardIn(name, file.bytes), assetsPath: parts.get(ASSETS_PART) };
  }

  /** Writes the file of a new character. */
  async #create(id: string, card: Card, png?: Uint8Array, files?: CardFiles): Promise<ReadCharacter> {
    const { db } = this.#parts;
    if (findCard(db, id) !== undefined) throw new AppError("conflict", `There is a character "${id}" already`);
    const clash = findCaseClash(db, id);
    if (clash !== undefined) {
      throw new AppError("conflict", `The id "${id}" differs from "${clash}" by letter case alone`);
    }
    for (const ending of ["png", "json"] as const) await this.#refuseTaken(this.#pathOf(id, ending));
    const content = png === undefined ? cardBytes(card, 2) : embedCard(png, card);
    const path = this.#pathOf(id, png === undefined ? "json" : "png");
    const { assets, versions } = this.#parts;
    const touched = [path, assets.pathOf(id)];
    return await versions.replace(resourceOf(id), { cause: "put", parts: [], touched }, async () => {
      // First, so that whoever sees the card finds them; those of one that is gone are no business of this one.
      await assets.write(id, files);
      return await this.#write({ id, path, isExternal: false }, content, card);
    });
  }

  async #write(
    { id, path, isExternal }: Pick<StoredCard, "id" | "path" | "isExternal">,
    content: Uint8Array,
    card: Card,
    removedPath?: string,
  ): Promise<ReadCharacter> {
    const { index, events } = this.#parts;
    let place: CardPlace | undefined;
    await index.write(removedPath === undefined ? [path] : [path, removedPath], async () => {
      await writeFileAtomic(path, content);
      const row: CardRow = rowOf(place = await placeOf(id, path, isExternal), card);
      // Last, so that whoever asks meanwhile finds a file where the table says it is.
      const afterwards = removedPath === undefined ? undefined : () => removeFile(removedPath);
      return { row, removedPath, afterwards };
    });
    events.publish({ kind: "character", id });
    const has_assets = await this.#hasAssets({ id, path, isExternal }, content);
    return { character: { ...itemOf(place!, card), has_assets, card }, version: versionOf(card) };
  }

  /** Something the index does not know lies there: dropped a moment ago, or no plain file. */
  async #refuseTaken(path: string): Promise<void> {
    if (!await fileExists(path)) return;
    this.#parts.index.distrust();
    throw new AppError("conflict", `Cannot write "${path}": something else has that name`);
  }

  #pathOf(id: string, ending: "png" | "json"): string {
    return join(this.#parts.folder, `${id}.${ending}`);
  }
}

async function placeOf(id: string, path: string, isExternal: boolean): Promise<CardPlace> {
  const info = await statPlainFile(path);
  if (info === undefined) throw new AppError("internal", `Cannot find "${path}" after it was written`);
  return { id, path, isExternal, ...info };
}

function versionOf(card: Card): string {
  return createHash("sha256").update(JSON.stringify(card)).digest("base64url").slice(0, 22);
}

function resourceOf(id: string) {
  return { kind: "characters" as const, id };
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && Buffer.compare(one, other) === 0;
}

function checkVersion(id: string, actual: string | undefined, expected: ExpectedVersion | undefined): void {
  if (isExpected(expected, actual)) return;
  throw new AppError("revision_mismatch", `Character "${id}" is not at the version that was asked for`);
}

function notFound(id: string): AppError {
  return new AppError("not_found", `There is no character "${id}"`);
}
