/** Personas: card files in their own folder, with or without an image. Files added to the folder become personas. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { readSealedFile, writeSealedFile } from "../storage/sealed_file.ts";
import { CardCodec, type ReadCard } from "../characters/card/card_codec.ts";
import { NO_CARD } from "../characters/card/card_file.ts";
import { isPngPath } from "../characters/card/card_head.ts";
import { isZip } from "../characters/charx/charx_format.ts";
import {
  pathExists,
  readPlainFile,
  removeFile,
  statPlainFile,
  toFileError,
  writeFileAtomic,
} from "../storage/atomic_file.ts";
import { removeImageMetadata } from "../characters/png/image_metadata.ts";
import { replaceImage } from "../characters/png/png_assets.ts";
import { isPng } from "../attachments/images/png.ts";
import { createUuidV7 } from "../crypto/random.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import { sortByName } from "../json/text.ts";
import type { EventHub } from "../events/event_hub.ts";
import { isId } from "../storage/ids.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import { KeyedMutex } from "../async/locks.ts";
import type { Version, VersionCause, Versions } from "../storage/versions.ts";
import { assertExpected, type ExpectedVersion } from "../storage/preconditions.ts";
import type { Sandbox } from "../platform/sandbox/sandbox.ts";
import {
  convertToPersonaText,
  createPersonaCard,
  getPersonaText,
  isPersonaCard,
  type PersonaPlacement,
  type PersonaText,
  toPersonaEdits,
} from "./persona_card.ts";

/** A persona as returned by the API. */
export interface Persona extends PersonaText {
  id: string;
  has_avatar: boolean;
  /** ISO 8601, UTC. */
  updated_at: string;
  /** Set if the file can't be read: only ID, time and the name of its latest version are right then. */
  unreadable?: true;
}

/** A persona and the version of its file. */
export interface ReadPersona {
  persona: Persona;
  version: string;
}

/** Dependencies of `Personas`. */
export interface PersonaDeps {
  db: Database;
  sandbox: Sandbox;
  /** `<datadir>/personas` */
  folder: string;
  /** `<datadir>/trash` */
  trashFolder: string;
  trash: { put(kind: string, title: string, record: unknown): Statement; publishChange(): void };
  /** For the purpose "trash". */
  sealer: PurposeSealer;
  images: {
    toPng(bytes: Uint8Array, options?: { mustBeComplete?: boolean }): Promise<Uint8Array<ArrayBuffer>>;
    resizePng(
      bytes: Uint8Array,
      options: { widthPx: number; mustBeComplete?: boolean },
    ): Promise<Uint8Array<ArrayBuffer>>;
  };
  versions: Versions;
  events: EventHub;
  damageReports: { report(path: string): void };
}

/** The file of a persona. */
interface PersonaFile {
  id: string;
  path: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** A persona with the content of its file. */
interface OpenPersona extends ReadPersona, PersonaFile {
  card: ReadCard;
}

/** Trash record of a persona; the file itself is sealed. */
interface TrashRecord {
  id: string;
  fileName: string;
  /** Also the name of its versions in the trash. */
  sealedName: string;
}

/** Reads and changes personas. */
export class Personas {
  readonly #deps: PersonaDeps;
  readonly #codec: CardCodec;
  readonly #locks = new KeyedMutex();
  /** By path. Read again if the file's time or size changes. */
  readonly #known = new Map<string, { mtimeMs: number; size: number; persona: Persona }>();

  constructor(deps: PersonaDeps) {
    this.#deps = deps;
    this.#codec = new CardCodec(deps.sandbox);
  }

  /** Lists all personas by name. Files without a readable card are marked. */
  async list(): Promise<Persona[]> {
    const found: Persona[] = [];
    const files = await this.#listFiles();
    for (const path of this.#known.keys()) if (![...files.values()].includes(path)) this.#known.delete(path);
    for (const [id, path] of files) {
      const info = await statPlainFile(path);
      if (info === undefined) continue;
      let known = this.#known.get(path);
      if (known === undefined || known.mtimeMs !== info.mtimeMs || known.size !== info.size) {
        const read = await this.#open(id, path).catch(NO_CARD);
        known = { ...info, persona: read?.persona ?? await this.#toUnreadable(id, info.mtimeMs) };
        this.#known.set(path, known);
      }
      found.push(known.persona);
    }
    return sortByName(found);
  }

  /** @throws {AppError} `not_found`; `unprocessable` for a file without a readable card */
  async get(id: string): Promise<ReadPersona> {
    const { persona, version } = await this.#get(id);
    return { persona, version };
  }

  /** Returns the name of a persona; `undefined` if it's missing or unreadable. */
  async findName(id: string): Promise<string | undefined> {
    return (await this.find(id))?.name;
  }

  /** Finds a persona; `undefined` if it's missing or unreadable. */
  async find(id: string): Promise<Persona | undefined> {
    const found = await this.get(id).catch(NO_CARD);
    return found?.persona;
  }

  /** Returns the ID of the persona for new chats with a character; `undefined` if there is none. */
  async findIdFor(characterId: string): Promise<string | undefined> {
    return (await this.list()).find(({ character_ids }) => character_ids?.includes(characterId))?.id;
  }

  /**
   * Creates or changes a persona. Its image and the other fields of its card don't change.
   *
   * @param input.placement `null` is where the preset has it; if absent, it stays.
   * @param input.character_ids If absent, they stay.
   * @throws {AppError} `revision_mismatch`; `conflict` for an id that differs from another only in case
   */
  put(
    id: string,
    input: { name: string; description?: string; placement?: PersonaPlacement | null; character_ids?: string[] },
    expected?: ExpectedVersion,
  ): Promise<ReadPersona & { isNew: boolean }> {
    return this.#lock(id, async () => {
      const before = await this.#findStored(id);
      assertExpected(`persona "${id}"`, expected, before?.version);
      const description = input.description ?? before?.persona.description ?? "";
      const placement = input.placement === undefined ? before?.persona.placement : input.placement ?? undefined;
      const character_ids = input.character_ids ?? before?.persona.character_ids;
      const text: PersonaText = { name: input.name, description, ...(placement && { placement }), character_ids };
      const saved = before === undefined
        ? await this.#create(id, createPersonaCard(text))
        : await this.#replace(before, {
          content: await this.#toFile(await this.#codec.edit(before.card, toPersonaEdits(text)), before.bytes),
          cause: "put",
        });
      return { ...saved, isNew: before === undefined };
    });
  }

  /**
   * Creates a persona from a card file.
   *
   * @param file PNG, JSON, WebP or JPEG with a persona or character card.
   * @param options.swapsNames See `convertToPersonaText`.
   * @throws {AppError} `unprocessable`, `too_large`
   */
  async importCard(file: Uint8Array, options: { swapsNames: boolean }): Promise<ReadPersona> {
    if (isZip(file)) {
      const message =
        "Can't read the persona: it's a CHARX or another ZIP file. Import it as a character, or export it as PNG first";
      throw new AppError("unprocessable", message);
    }
    const { avatarPng, avatarImage, ...read } = await this.#codec.parseAny(file);
    const text = convertToPersonaText(read.card, options);
    const card = isPersonaCard(read.card)
      ? await this.#codec.edit(read, toPersonaEdits(text))
      : createPersonaCard(text);
    const image = avatarPng ?? avatarImage;
    const png = image && await this.#asPng(image);
    const id = createUuidV7();
    return await this.#lock(id, () => this.#create(id, card, png));
  }

  /**
   * Returns the file of a persona.
   *
   * @param options.keepsImageMetadata Whether the image keeps what it says about its place and how it was generated.
   * @throws {AppError} `not_found`, `unprocessable`
   */
  async exportCard(
    id: string,
    { keepsImageMetadata = false } = {},
  ): Promise<{ bytes: Uint8Array<ArrayBuffer>; contentType: string; fileName: string }> {
    const { bytes: stored, persona } = await this.#get(id);
    const bytes = keepsImageMetadata ? stored : removeImageMetadata(stored);
    const [ending, contentType] = isPng(bytes) ? ["png", "image/png"] : ["json", "application/json"];
    return { bytes, contentType: contentType!, fileName: `${persona.name}.${ending}` };
  }

  /** Returns the image as PNG, which also contains the card. @throws {AppError} `not_found` */
  async getAvatar(id: string): Promise<Uint8Array<ArrayBuffer>> {
    const { bytes } = await this.#get(id);
    if (!isPng(bytes)) throw new AppError("not_found", `Persona "${id}" has no image`);
    return bytes;
  }

  /**
   * Replaces the image of a persona.
   *
   * @param image PNG, JPEG, WebP or GIF. A card inside it is ignored.
   * @throws {AppError} `not_found`, `revision_mismatch`; `unprocessable` if it isn't an image
   */
  async setAvatar(id: string, image: Uint8Array<ArrayBuffer>, expected?: ExpectedVersion): Promise<ReadPersona> {
    await this.#get(id);
    const png = await this.#asPng(image);
    return await this.#lock(id, async () => {
      const before = await this.#get(id);
      assertExpected(`persona "${id}"`, expected, before.version);
      const imageFile = replaceImage(isPng(before.bytes) ? before.bytes : undefined, png);
      return await this.#replace(before, {
        content: await this.#toFile(before.card, imageFile),
        cause: "avatar",
        ending: "png",
      });
    });
  }

  /** Lists earlier versions, newest first, also of an unreadable persona. @throws {AppError} `not_found` */
  async listVersions(id: string): Promise<Version[]> {
    await this.#getFile(id);
    return await this.#deps.versions.list(toResource(id));
  }

  /** Returns text and image of an earlier version. @throws {AppError} `not_found`, `unprocessable` */
  async getVersion(id: string, n: number): Promise<PersonaText & { png?: Uint8Array<ArrayBuffer> }> {
    await this.#getFile(id);
    const { name, bytes } = await this.#readVersion(id, n);
    const { card } = await this.#codec.parse(name, bytes);
    return { ...getPersonaText(card), png: isPng(bytes) ? bytes : undefined };
  }

  /**
   * Returns the image of an earlier version. @param widthPx Resizes it to this width. @throws {AppError} `not_found`
   */
  async getVersionAvatar(id: string, n: number, widthPx?: number): Promise<Uint8Array<ArrayBuffer>> {
    const { png } = await this.getVersion(id, n);
    if (png === undefined) throw new AppError("not_found", `Version ${n} of persona "${id}" has no image`);
    return widthPx === undefined ? png : await this.#deps.images.resizePng(png, { widthPx });
  }

  /**
   * Restores text and image of an earlier version. The current state, even an unreadable one, becomes a version.
   *
   * @throws {AppError} `not_found`, `revision_mismatch`
   */
  restoreVersion(id: string, n: number, expected?: ExpectedVersion): Promise<ReadPersona> {
    return this.#lock(id, async () => {
      const before = await this.#getFile(id);
      assertExpected(`persona "${id}"`, expected, hashVersion(before.bytes));
      const { name, bytes } = await this.#readVersion(id, n);
      await this.#codec.parse(name, bytes); // A damaged version must not replace a good one.
      const ending = isPng(bytes) ? "png" : "json";
      return await this.#replace(before, { content: bytes, cause: "restore", ending });
    });
  }

  /** Moves a persona to the trash. @throws {AppError} `not_found`, `revision_mismatch` */
  remove(id: string, expected?: ExpectedVersion): Promise<void> {
    return this.#lock(id, async () => {
      const { db, trash, versions, sealer, events } = this.#deps;
      // Unreadable files can be deleted and restored, too.
      const { path, bytes } = await this.#getFile(id);
      assertExpected(`persona "${id}"`, expected, hashVersion(bytes));
      const record: TrashRecord = { id, fileName: basename(path), sealedName: createUuidV7() };
      const sealed = this.#getSealedFile(record);
      await writeSealedFile(sealer, sealed, ReadableStream.from([bytes]));
      try {
        await db.write([trash.put("persona", await this.findName(id) ?? id, record)]);
      } catch (error) {
        await removeFile(sealed.path);
        throw error;
      }
      await removeFile(path);
      await versions.moveToTrash(toResource(id), record.sealedName);
      events.publish({ kind: "persona", id });
      trash.publishChange();
    });
  }

  /** Restores a persona from the trash. @throws {AppError} `conflict` if its id is taken */
  restore(value: unknown, removal: Statement): Promise<void> {
    const record = value as TrashRecord;
    return this.#lock(record.id, async () => {
      const { db, versions, sealer, folder, events } = this.#deps;
      const path = join(folder, record.fileName);
      if ((await this.#listFiles()).has(record.id) || await pathExists(path)) {
        throw new AppError("conflict", `Can't restore the persona "${record.id}": another one has this ID now`);
      }
      const sealed = this.#getSealedFile(record);
      const pieces = await Array.fromAsync(readSealedFile(sealer, sealed));
      await writeFileAtomic(path, new Uint8Array(await new Blob(pieces).arrayBuffer()));
      await db.write([removal]);
      await versions.restoreFromTrash(toResource(record.id), record.sealedName);
      await removeFile(sealed.path);
      events.publish({ kind: "persona", id: record.id });
    });
  }

  /** Deletes a persona in the trash. */
  async purge(value: unknown, removal: Statement): Promise<void> {
    await this.#deps.db.write([removal]);
    await removeFile(this.#getSealedFile(value as TrashRecord).path);
    await this.#deps.versions.purge("personas", (value as TrashRecord).sealedName);
  }

  /** Maps ids to files. A PNG takes precedence over a JSON file of the same name. */
  async #listFiles(): Promise<Map<string, string>> {
    const { folder } = this.#deps;
    const files = new Map<string, string>();
    try {
      for await (const { name, isFile } of Deno.readDir(folder)) {
        const [, stem, ending] = /^(.+)\.(png|json)$/i.exec(name) ?? [];
        if (!isFile || stem === undefined || stem.startsWith(".")) continue;
        const id = isId(stem) ? stem : deriveId(stem);
        if (ending!.toLowerCase() === "png" || !files.has(id)) files.set(id, join(folder, name));
      }
    } catch (cause) {
      throw toFileError(`Can't list the folder "${folder}"`, cause);
    }
    return files;
  }

  async #findStored(id: string): Promise<OpenPersona | undefined> {
    const path = (await this.#listFiles()).get(id);
    return path === undefined ? undefined : await this.#open(id, path);
  }

  async #get(id: string): Promise<OpenPersona> {
    const found = await this.#findStored(id);
    if (found === undefined) throw new AppError("not_found", `Persona "${id}" not found`);
    return found;
  }

  async #open(id: string, path: string): Promise<OpenPersona | undefined> {
    const file = await readPlainFile(path);
    if (file === undefined) return undefined;
    const card = await this.#codec.parse(path, file.bytes);
    return { id, ...toReadPersona(id, card, file), path, card, bytes: file.bytes };
  }

  /** Reads the file of a persona, which may have no readable card. @throws {AppError} `not_found` */
  async #getFile(id: string): Promise<PersonaFile> {
    const path = (await this.#listFiles()).get(id);
    const file = path === undefined ? undefined : await readPlainFile(path);
    if (path === undefined || file === undefined) throw new AppError("not_found", `Persona "${id}" not found`);
    return { id, path, bytes: file.bytes };
  }

  /** Returns the list entry of a persona whose file can't be read. Its latest version has its name. */
  async #toUnreadable(id: string, mtimeMs: number): Promise<Persona> {
    this.#deps.damageReports.report(`personas/${id}`);
    const updated_at = new Date(mtimeMs).toISOString();
    const entry: Persona = { id, name: id, description: "", has_avatar: false, updated_at, unreadable: true };
    for (const { n } of await this.#deps.versions.list(toResource(id))) {
      try {
        const { name, bytes } = await this.#readVersion(id, n);
        return { ...entry, name: getPersonaText((await this.#codec.parse(name, bytes)).card).name };
      } catch {
        // It's damaged, too.
      }
    }
    return entry;
  }

  /** @throws {AppError} `unprocessable` if it can't be decoded */
  async #asPng(image: Uint8Array): Promise<Uint8Array> {
    const { images } = this.#deps;
    if (!isPng(image)) return await images.toPng(image, { mustBeComplete: true });
    // Only decoding shows whether a PNG is valid.
    await images.resizePng(image, { widthPx: 16, mustBeComplete: true });
    return image;
  }

  async #create(id: string, card: ReadCard, png?: Uint8Array): Promise<ReadPersona> {
    const { folder } = this.#deps;
    for (const other of (await this.#listFiles()).keys()) {
      if (other.toLowerCase() === id.toLowerCase()) {
        throw new AppError("conflict", `The ID "${id}" differs from "${other}" only in case`);
      }
    }
    const path = join(folder, `${id}.${png === undefined ? "json" : "png"}`);
    if (await pathExists(path)) {
      throw new AppError("conflict", `Can't write "${path}": another file or folder has this name`);
    }
    return await this.#write(id, path, await this.#toFile(card, png));
  }

  /** Only V2 in a PNG, so that other programs import it as a character with that name and description. */
  async #toFile(card: ReadCard, image: Uint8Array | undefined): Promise<Uint8Array<ArrayBuffer>> {
    return image !== undefined && isPng(image)
      ? await this.#codec.write(card, { kind: "png", versions: "v2" }, { png: image })
      : await this.#codec.write(card, { kind: "json", isV2: true });
  }

  /** Replaces the file of a persona and stores the old one as a version. */
  async #replace(
    before: PersonaFile,
    { content, cause, ending }: {
      content: Uint8Array<ArrayBuffer>;
      cause: VersionCause;
      /** File extension; by default unchanged. */
      ending?: "png" | "json";
    },
  ): Promise<ReadPersona> {
    const { id, path, bytes } = before;
    const target = ending === undefined ? path : path.replace(/\.(json|png)$/i, `.${ending}`);
    const isSame = target === path && Buffer.compare(bytes, content) === 0;
    const parts = isSame ? [] : [{ name: isPngPath(path) ? "persona.png" : "persona.json", path }];
    return await this.#deps.versions.replace(toResource(id), { cause, parts, touched: [path, target] }, async () => {
      await writeFileAtomic(target, content);
      if (target !== path) await removeFile(path);
      return await this.#afterWrite(id);
    });
  }

  async #readVersion(id: string, n: number): Promise<{ name: string; bytes: Uint8Array<ArrayBuffer> }> {
    for (const [name, path] of await this.#deps.versions.listParts(toResource(id), n)) {
      const file = await readPlainFile(path);
      if (file !== undefined) return { name, bytes: file.bytes };
    }
    throw new AppError("internal", `The file of version ${n} of persona "${id}" is missing`);
  }

  async #write(id: string, path: string, bytes: Uint8Array<ArrayBuffer>): Promise<ReadPersona> {
    await writeFileAtomic(path, bytes);
    return await this.#afterWrite(id);
  }

  async #afterWrite(id: string): Promise<ReadPersona> {
    this.#deps.events.publish({ kind: "persona", id });
    const { persona, version } = await this.#get(id);
    return { persona, version };
  }

  #lock<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#locks.run(id.toLowerCase(), work);
  }

  #getSealedFile({ sealedName }: TrashRecord) {
    return {
      path: join(this.#deps.trashFolder, sealedName),
      aad: { table: "trash", id: sealedName, field: "persona", version: 1 },
    };
  }
}

function toResource(id: string) {
  return { kind: "personas" as const, id };
}

/** Derives an ID for a file whose name isn't a valid ID. The same name always gets the same ID. */
function deriveId(stem: string): string {
  return `p-${createHash("sha256").update(stem).digest("hex").slice(0, 24)}`;
}

function toReadPersona(
  id: string,
  { card }: ReadCard,
  { bytes, mtimeMs }: { bytes: Uint8Array; mtimeMs: number },
): ReadPersona {
  const persona: Persona = {
    id,
    ...getPersonaText(card),
    has_avatar: isPng(bytes),
    updated_at: new Date(mtimeMs).toISOString(),
  };
  return { persona, version: hashVersion(bytes) };
}

function hashVersion(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("base64url").slice(0, 22);
}
