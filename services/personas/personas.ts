/** Personas: card files in a folder of their own, with or without a picture. A file put there is a persona. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { readSealedFile, writeSealedFile } from "../storage/sealed_file.ts";
import { type Card, v2Of } from "../characters/card/card.ts";
import { cardIn, NO_CARD, readCardBytes } from "../characters/card/card_file.ts";
import { cardBytes } from "../characters/card/card_text.ts";
import { isZip } from "../characters/charx/charx_format.ts";
import { readPlainFile, removeFile, statPlainFile } from "../storage/plain_files.ts";
import { withPicture } from "../characters/png/png_assets.ts";
import { embedCard } from "../characters/png/png_card.ts";
import { isPng } from "../attachments/images/png_chunks.ts";
import { uuidV7 } from "../crypto/random.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import { inNameOrder } from "../storage/collation.ts";
import type { EventHub } from "../events/event_hub.ts";
import { isId } from "../storage/ids.ts";
import { fileError, fileExists, writeFileAtomic } from "../storage/atomic_file.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import { KeyedMutex } from "../async/keyed_mutex.ts";
import type { Version, VersionCause, Versions } from "../storage/versions.ts";
import { personaCard, personaOfCard, type PersonaText, personaText } from "./persona_card.ts";
import { type ExpectedVersion, isExpected } from "../storage/preconditions.ts";

/** A persona as the API shows it. */
export interface Persona extends PersonaText {
  id: string;
  has_avatar: boolean;
  /** ISO 8601, UTC. */
  updated_at: string;
}

/** A persona and the version of its file. */
export interface ReadPersona {
  persona: Persona;
  version: string;
}

/** What personas stand on. */
export interface PersonaParts {
  db: Database;
  /** `<datadir>/personas` */
  folder: string;
  /** `<datadir>/trash` */
  trashFolder: string;
  trash: { put(kind: string, title: string, record: unknown): Statement; changed(): void };
  /** For the purpose "trash". */
  sealer: PurposeSealer;
  images: {
    toPng(bytes: Uint8Array, options?: { mustBeWhole?: boolean }): Promise<Uint8Array<ArrayBuffer>>;
    resizePng(bytes: Uint8Array, options: { widthPx: number; mustBeWhole?: boolean }): Promise<Uint8Array<ArrayBuffer>>;
  };
  versions: Versions;
  events: EventHub;
}

/** A persona and what its file holds. */
interface OpenPersona extends ReadPersona {
  path: string;
  card: Card;
  bytes: Uint8Array<ArrayBuffer>;
}

/** What the trash keeps of a persona beside its sealed file. */
interface TrashRecord {
  id: string;
  fileName: string;
  /** Also names its versions in the trash. */
  sealedName: string;
}

/** Reads and changes personas. */
export class Personas {
  readonly #parts: PersonaParts;
  readonly #locks = new KeyedMutex();
  /** By path; read again when time or size of the file has moved. */
  readonly #known = new Map<string, { mtimeMs: number; size: number; read: ReadPersona | undefined }>();

  constructor(parts: PersonaParts) {
    this.#parts = parts;
  }

  /** Lists all by name; a file without a readable card is no persona. */
  async list(): Promise<Persona[]> {
    const found: Persona[] = [];
    const files = await this.#files();
    for (const path of this.#known.keys()) if (![...files.values()].includes(path)) this.#known.delete(path);
    for (const [id, path] of files) {
      const info = await statPlainFile(path);
      if (info === undefined) continue;
      let known = this.#known.get(path);
      if (known === undefined || known.mtimeMs !== info.mtimeMs || known.size !== info.size) {
        known = { ...info, read: await this.#open(id, path).catch(NO_CARD) };
        this.#known.set(path, known);
      }
      if (known.read !== undefined) found.push(known.read.persona);
    }
    return inNameOrder(found);
  }

  /** @throws {AppError} `not_found`; `unprocessable` for a file that holds no readable card */
  async get(id: string): Promise<ReadPersona> {
    const { persona, version } = await this.#get(id);
    return { persona, version };
  }

  /** Gives the name of a persona; `undefined` where there is none to be read. */
  async findName(id: string): Promise<string | undefined> {
    return (await this.find(id))?.name;
  }

  /** Finds a persona; `undefined` where there is none to be read. */
  async find(id: string): Promise<Persona | undefined> {
    const found = await this.get(id).catch(NO_CARD);
    return found?.persona;
  }

  /**
   * Creates or changes a persona. Its picture, and whatever else its card holds, stays.
   *
   * @throws {AppError} `revision_mismatch`; `conflict` when the id differs from another by letter case alone
   */
  put(
    id: string,
    given: { name: string; description?: string },
    expected?: ExpectedVersion,
  ): Promise<ReadPersona & { isNew: boolean }> {
    return this.#inTurn(id, async () => {
      const before = await this.#stored(id);
      checkVersion(id, before?.version, expected);
      const description = given.description ?? before?.persona.description ?? "";
      const card = personaCard({ name: given.name, description }, before?.card);
      const saved = before === undefined ? await this.#create(id, card) : await this.#replace(before, {
        content: isPng(before.bytes) ? embedded(before.bytes, card) : textOf(card),
        cause: "put",
      });
      return { ...saved, isNew: before === undefined };
    });
  }

  /**
   * Makes a persona of a card file.
   *
   * @param file PNG, JSON, or a WebP or JPEG with a card: a persona's, or any character's.
   * @param options.swapsNames As in `personaOfCard`.
   * @throws {AppError} `unprocessable`, `too_large`
   */
  async importCard(file: Uint8Array, options: { swapsNames: boolean }): Promise<ReadPersona> {
    if (isZip(file)) {
      const message =
        "Cannot read the persona: it is a CHARX or another ZIP; import it as a character, or take its PNG";
      throw new AppError("unprocessable", message);
    }
    const { card: given, avatarPng, avatarImage } = readCardBytes(file);
    const card = personaOfCard(given, options);
    const picture = avatarPng ?? avatarImage;
    const png = picture && await this.#asPng(picture);
    const id = uuidV7();
    return await this.#inTurn(id, () => this.#create(id, card, png));
  }

  /** Gives the file of a persona, for another program or another Parlor. @throws {AppError} `not_found`, `unprocessable` */
  async exportCard(id: string): Promise<{ bytes: Uint8Array<ArrayBuffer>; contentType: string; fileName: string }> {
    const { bytes, persona } = await this.#get(id);
    const [ending, contentType] = isPng(bytes) ? ["png", "image/png"] : ["json", "application/json"];
    return { bytes, contentType: contentType!, fileName: `${persona.name}.${ending}` };
  }

  /** Gives the picture as PNG, which is the portable card of this persona. @throws {AppError} `not_found` */
  async avatar(id: string): Promise<Uint8Array<ArrayBuffer>> {
    const { bytes } = await this.#get(id);
    if (!isPng(bytes)) throw new AppError("not_found", `Persona "${id}" has no picture`);
    return bytes;
  }

  /**
   * Gives a persona another picture.
   *
   * @param image PNG, JPEG, WebP or GIF; a card inside it does not count.
   * @throws {AppError} `not_found`, `revision_mismatch`; `unprocessable` for what is no such picture
   */
  async setAvatar(id: string, image: Uint8Array<ArrayBuffer>, expected?: ExpectedVersion): Promise<ReadPersona> {
    await this.#get(id);
    const png = await this.#asPng(image);
    return await this.#inTurn(id, async () => {
      const before = await this.#get(id);
      checkVersion(id, before.version, expected);
      const picture = withPicture(isPng(before.bytes) ? before.bytes : undefined, png);
      return await this.#replace(before, { content: embedded(picture, before.card), cause: "avatar", ending: "png" });
    });
  }

  /** Lists the earlier versions of a persona, newest first. @throws {AppError} `not_found` */
  async versions(id: string): Promise<Version[]> {
    await this.#get(id);
    return await this.#parts.versions.list(resourceOf(id));
  }

  /** Returns what an earlier version said, and its picture. @throws {AppError} `not_found`, `unprocessable` */
  async version(id: string, n: number): Promise<PersonaText & { png?: Uint8Array<ArrayBuffer> }> {
    await this.#get(id);
    const { name, bytes } = await this.#readVersion(id, n);
    return { ...personaText(cardIn(name, bytes)), png: isPng(bytes) ? bytes : undefined };
  }

  /** Returns the picture of an earlier version. @param widthPx Reduces it to that width. @throws {AppError} `not_found` */
  async versionAvatar(id: string, n: number, widthPx?: number): Promise<Uint8Array<ArrayBuffer>> {
    const { png } = await this.version(id, n);
    if (png === undefined) throw new AppError("not_found", `Version ${n} of persona "${id}" has no picture`);
    return widthPx === undefined ? png : await this.#parts.images.resizePng(png, { widthPx });
  }

  /**
   * Restores text and picture of an earlier version. What they replace becomes a version.
   *
   * @throws {AppError} `not_found`, `revision_mismatch`
   */
  restoreVersion(id: string, n: number, expected?: ExpectedVersion): Promise<ReadPersona> {
    return this.#inTurn(id, async () => {
      const before = await this.#get(id);
      checkVersion(id, before.version, expected);
      const { name, bytes } = await this.#readVersion(id, n);
      cardIn(name, bytes); // a damaged version doesn't replace a good one
      const ending = isPng(bytes) ? "png" : "json";
      return await this.#replace(before, { content: bytes, cause: "restore", ending });
    });
  }

  /** Moves a persona to the trash. @throws {AppError} `not_found`, `revision_mismatch` */
  remove(id: string, expected?: ExpectedVersion): Promise<void> {
    return this.#inTurn(id, async () => {
      const { db, trash, versions, sealer, events } = this.#parts;
      const { path, version, persona, bytes } = await this.#get(id);
      checkVersion(id, version, expected);
      const record: TrashRecord = { id, fileName: basename(path), sealedName: uuidV7() };
      const sealed = this.#sealed(record);
      await writeSealedFile(sealer, sealed, ReadableStream.from([bytes]));
      try {
        await db.write([trash.put("persona", persona.name, record)]);
      } catch (error) {
        await removeFile(sealed.path);
        throw error;
      }
      await removeFile(path);
      await versions.moveToTrash(resourceOf(id), record.sealedName);
      events.publish({ kind: "persona", id });
      trash.changed();
    });
  }

  /** Brings one back from the trash. @throws {AppError} `conflict` when its id is taken */
  restore(value: unknown, takeOut: Statement): Promise<void> {
    const record = value as TrashRecord;
    return this.#inTurn(record.id, async () => {
      const { db, versions, sealer, folder, events } = this.#parts;
      const path = join(folder, record.fileName);
      if ((await this.#files()).has(record.id) || await fileExists(path)) {
        throw new AppError("conflict", `There is a persona "${record.id}" again`);
      }
      const sealed = this.#sealed(record);
      const pieces = await Array.fromAsync(readSealedFile(sealer, sealed));
      await writeFileAtomic(path, new Uint8Array(await new Blob(pieces).arrayBuffer()));
      await db.write([takeOut]);
      await versions.restoreFromTrash(resourceOf(record.id), record.sealedName);
      await removeFile(sealed.path);
      events.publish({ kind: "persona", id: record.id });
    });
  }

  /** Removes for good what lay in the trash. */
  async purge(value: unknown, takeOut: Statement): Promise<void> {
    await this.#parts.db.write([takeOut]);
    await removeFile(this.#sealed(value as TrashRecord).path);
    await this.#parts.versions.purge("personas", (value as TrashRecord).sealedName);
  }

  /** Gives the file of each persona; a picture goes before a text of the same name. */
  async #files(): Promise<Map<string, string>> {
    const { folder } = this.#parts;
    const files = new Map<string, string>();
    try {
      for await (const { name, isFile } of Deno.readDir(folder)) {
        const [, stem, ending] = /^(.+)\.(png|json)$/i.exec(name) ?? [];
        if (!isFile || stem === undefined || stem.startsWith(".")) continue;
        const id = isId(stem) ? stem : idOf(stem);
        if (ending!.toLowerCase() === "png" || !files.has(id)) files.set(id, join(folder, name));
      }
    } catch (cause) {
      throw fileError(`Cannot look through "${folder}"`, cause);
    }
    return files;
  }

  async #stored(id: string): Promise<OpenPersona | undefined> {
    const path = (await this.#files()).get(id);
    return path === undefined ? undefined : await this.#open(id, path);
  }

  async #get(id: string): Promise<OpenPersona> {
    const found = await this.#stored(id);
    if (found === undefined) throw new AppError("not_found", `There is no persona "${id}"`);
    return found;
  }

  async #open(id: string, path: string): Promise<OpenPersona | undefined> {
    const file = await readPlainFile(path);
    if (file === undefined) return undefined;
    const card = cardIn(path, file.bytes);
    return { ...readPersona(id, card, file), path, card, bytes: file.bytes };
  }

  /** @throws {AppError} `unprocessable` for what cannot be shown */
  async #asPng(image: Uint8Array): Promise<Uint8Array> {
    const { images } = this.#parts;
    if (!isPng(image)) return await images.toPng(image, { mustBeWhole: true });
    // Only a decoder knows whether a PNG that came as one can be shown.
    await images.resizePng(image, { widthPx: 16, mustBeWhole: true });
    return image;
  }

  async #create(id: string, card: Card, png?: Uint8Array): Promise<ReadPersona> {
    const { folder } = this.#parts;
    for (const other of (await this.#files()).keys()) {
      if (other.toLowerCase() === id.toLowerCase()) {
        throw new AppError("conflict", `The id "${id}" differs from "${other}" by letter case alone`);
      }
    }
    const path = join(folder, `${id}.${png === undefined ? "json" : "png"}`);
    if (await fileExists(path)) throw new AppError("conflict", `Cannot write "${path}": something else has that name`);
    return await this.#write(id, path, png === undefined ? textOf(card) : embedded(png, card));
  }

  /** Replaces the file of a persona and keeps what it was. */
  async #replace(
    before: OpenPersona,
    { content, cause, ending }: {
      content: Uint8Array<ArrayBuffer>;
      cause: VersionCause;
      /** Of its file; by default the present one. */
      ending?: "png" | "json";
    },
  ): Promise<ReadPersona> {
    const { path, bytes, persona: { id } } = before;
    const target = ending === undefined ? path : path.replace(/\.(json|png)$/i, `.${ending}`);
    const isSame = target === path && Buffer.compare(bytes, content) === 0;
    const parts = isSame ? [] : [{ name: isPng(bytes) ? "persona.png" : "persona.json", path }];
    return await this.#parts.versions.replace(resourceOf(id), { cause, parts, touched: [path, target] }, async () => {
      await writeFileAtomic(target, content);
      if (target !== path) await removeFile(path);
      return await this.#written(id);
    });
  }

  async #readVersion(id: string, n: number): Promise<{ name: string; bytes: Uint8Array<ArrayBuffer> }> {
    for (const [name, path] of await this.#parts.versions.parts(resourceOf(id), n)) {
      const file = await readPlainFile(path);
      if (file !== undefined) return { name, bytes: file.bytes };
    }
    throw new AppError("internal", `The file of version ${n} of persona "${id}" is missing`);
  }

  async #write(id: string, path: string, bytes: Uint8Array<ArrayBuffer>): Promise<ReadPersona> {
    await writeFileAtomic(path, bytes);
    return await this.#written(id);
  }

  async #written(id: string): Promise<ReadPersona> {
    this.#parts.events.publish({ kind: "persona", id });
    const { persona, version } = await this.#get(id);
    return { persona, version };
  }

  #inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#locks.run(id.toLowerCase(), work);
  }

  #sealed({ sealedName }: TrashRecord) {
    return {
      path: join(this.#parts.trashFolder, sealedName),
      place: { table: "trash", id: sealedName, field: "persona", version: 1 },
    };
  }
}

function resourceOf(id: string) {
  return { kind: "personas" as const, id };
}

/** Of a file whose name is no id: the same file always has the same one. */
function idOf(stem: string): string {
  return `p-${createHash("sha256").update(stem).digest("hex").slice(0, 24)}`;
}

function readPersona(
  id: string,
  card: Card,
  { bytes, mtimeMs }: { bytes: Uint8Array; mtimeMs: number },
): ReadPersona {
  const persona = {
    id,
    ...personaText(card),
    has_avatar: isPng(bytes),
    updated_at: new Date(mtimeMs).toISOString(),
  };
  return { persona, version: createHash("sha256").update(bytes).digest("base64url").slice(0, 22) };
}

function textOf(card: Card): Uint8Array<ArrayBuffer> {
  return cardBytes(v2Of(card), 2);
}

/** V2 alone: programs that know no persona take the file for a character of that name and description. */
function embedded(png: Uint8Array, card: Card): Uint8Array<ArrayBuffer> {
  return embedCard(png, card, { versions: "v2" });
}

function checkVersion(id: string, actual: string | undefined, expected: ExpectedVersion | undefined): void {
  if (isExpected(expected, actual)) return;
  throw new AppError("revision_mismatch", `Persona "${id}" is not at the version that was asked for`);
}
