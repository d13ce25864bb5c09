/**
 * Card files outside of the gallery: uploads before they become characters, and deleted ones, sealed until the trash
 * deletes them.
 */
import { basename, join } from "node:path";
import { readSealedFile, writeSealedFile } from "../storage/sealed_file.ts";
import { createUuidV7 } from "../crypto/random.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import {
  joinBytes,
  pathExists,
  readFileIfExists,
  removeFile,
  statPlainFile,
  streamFilePieces,
  writeChunksAtomic,
  writeFileAtomic,
  writePieces,
} from "../storage/atomic_file.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { TrashBin } from "../storage/trash.ts";
import type { Versions } from "../storage/versions.ts";
import type { CardAssets } from "./charx/charx.ts";
import type { CardCodec } from "./card/card_codec.ts";
import { type CardFileStat, type CardRow, toCardRow, toUnreadableRow } from "./card/card_head.ts";
import type { CardIndex } from "./index/card_index.ts";
import { findCardRow, findCaseClash, type StoredCard } from "./index/card_rows.ts";
import { isCharx, MAX_CHARX_BYTES } from "./charx/charx_format.ts";

/** Dependencies of `CardTrash`. */
interface CardTrashDeps {
  db: Database;
  codec: CardCodec;
  bin: TrashBin;
  /** For the purpose "trash". */
  sealer: PurposeSealer;
  index: CardIndex;
  assets: CardAssets;
  versions: Versions;
  events: EventHub;
  /** Folder of our card files. */
  folder: string;
  /** Folder of sealed files. */
  sealedFolder: string;
}

/** Trash record of a card. */
interface TrashedCard {
  id: string;
  /** File name in the card folder. */
  name: string;
  /** Name of the sealed file, and of its versions in the trash. */
  sealedName: string;
  /** Name of the sealed CHARX assets, if any. */
  sealedAssets?: string;
}

/** Stores and restores deleted card files. */
export class CardTrash {
  readonly #deps: CardTrashDeps;

  constructor(deps: CardTrashDeps) {
    this.#deps = deps;
  }

  /**
   * Stores a copy of a card file and its assets before they're deleted.
   *
   * @param title The character's name.
   * @returns The name for its versions in the trash.
   */
  async store({ id, path }: StoredCard, title: string, content: Uint8Array): Promise<string> {
    const { db, bin, sealer, assets } = this.#deps;
    const record: TrashedCard = { id, name: basename(path), sealedName: createUuidV7() };
    if (await assets.has(id)) record.sealedAssets = createUuidV7();
    try {
      await writeFileAtomic(this.#getSealedPath(record), await sealer.seal(toSealedAad(record), content));
      if (record.sealedAssets !== undefined) {
        await writeSealedFile(sealer, this.#getSealedAssets(record.sealedAssets), streamFilePieces(assets.getPath(id)));
      }
      await db.write([bin.put("character", title, record)]);
      bin.publishChange();
      return record.sealedName;
    } catch (error) {
      await this.#removeSealed(record);
      throw error;
    }
  }

  /** Restores a file under its name. @throws {AppError} `conflict` if its name or id is taken */
  async restore(value: unknown, removal: Statement): Promise<void> {
    const { db, index, assets, versions, sealer, folder, events } = this.#deps;
    const record = value as TrashedCard;
    await index.refresh();
    const path = join(folder, record.name);
    if (findCardRow(db, record.id) ?? findCaseClash(db, record.id) ?? await pathExists(path)) {
      throw new AppError("conflict", `Can't restore the character "${record.id}": another one has this ID now`);
    }
    const sealed = await readFileIfExists(this.#getSealedPath(record));
    if (sealed === undefined) {
      throw new AppError("internal", "Can't restore the character: its file is missing from the trash");
    }
    const content = await sealer.open(toSealedAad(record), sealed);
    if (record.sealedAssets !== undefined) {
      const pieces = readSealedFile(sealer, this.#getSealedAssets(record.sealedAssets));
      await writeChunksAtomic(assets.getPath(record.id), pieces);
    }
    await index.write([path], async () => {
      await writeFileAtomic(path, content);
      await db.write([removal]);
      const info = await statPlainFile(path);
      if (info === undefined) return {};
      return { row: await this.#toRow({ id: record.id, path, isExternal: false, ...info }, content) };
    });
    await versions.restoreFromTrash({ kind: "characters", id: record.id }, record.sealedName);
    await this.#removeSealed(record);
    events.publish({ kind: "character", id: record.id });
  }

  /** Deletes a file in the trash. */
  async purge(value: unknown, removal: Statement): Promise<void> {
    await this.#deps.db.write([removal]);
    await this.#removeSealed(value as TrashedCard);
    await this.#deps.versions.purge("characters", (value as TrashedCard).sealedName);
  }

  async #toRow(file: CardFileStat, content: Uint8Array): Promise<CardRow> {
    try {
      return toCardRow(file, (await this.#deps.codec.parse(file.path, content)).card);
    } catch {
      return toUnreadableRow(file);
    }
  }

  async #removeSealed(record: TrashedCard): Promise<void> {
    await removeFile(this.#getSealedPath(record));
    if (record.sealedAssets !== undefined) await removeFile(this.#getSealedAssets(record.sealedAssets).path);
  }

  #getSealedAssets(name: string) {
    return {
      path: join(this.#deps.sealedFolder, name),
      aad: { table: "trash", id: name, field: "assets", version: 1 },
    };
  }

  #getSealedPath({ sealedName }: TrashedCard): string {
    return join(this.#deps.sealedFolder, sealedName);
  }
}

function toSealedAad({ sealedName }: TrashedCard) {
  return { table: "trash", id: sealedName, field: "file", version: 1 };
}

/** Enough bytes to recognize a CHARX. */
const SIGNATURE_BYTES = 4;

/** Receives uploaded card files. Possible CHARX files are written to disk, others are small and stay in memory. */
export class CardUploads {
  readonly #folder: string;

  /** @param folder For temporary files. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Removes temporary files of an earlier process. */
  async clear(): Promise<void> {
    await Deno.remove(this.#folder, { recursive: true }).catch(() => {});
  }

  /**
   * Receives a file and passes its bytes, or its path, to `use`. The path is only valid while `use` runs.
   *
   * @param maxBytes Limit for files in memory. A CHARX may have 512 MiB.
   * @throws {AppError} `too_large`, `storage_full`; errors of `content` and `use`
   */
  async receive<T>(
    content: AsyncIterable<Uint8Array>,
    maxBytes: number,
    use: (file: Uint8Array<ArrayBuffer> | string) => Promise<T>,
  ): Promise<T> {
    const pieces = content[Symbol.asyncIterator]();
    const head: Uint8Array[] = [];
    let size = 0;
    let isEnd = false;
    while (!isEnd && size < SIGNATURE_BYTES) {
      const next = await pieces.next();
      isEnd = next.done === true;
      if (!next.done) size += head[head.push(next.value) - 1]!.length;
    }
    const whole = prepend(head, pieces);
    if (isCharx(joinBytes(head))) return await this.withTemporaryFile(limitBytes(whole, MAX_CHARX_BYTES), use);
    return await use(joinBytes(await Array.fromAsync(limitBytes(whole, maxBytes))));
  }

  /** Writes a temporary file that exists while `use` runs. @throws {AppError} like `receive` */
  async withTemporaryFile<T>(
    content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
    use: (path: string) => Promise<T>,
  ): Promise<T> {
    await Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = join(this.#folder, crypto.randomUUID());
    try {
      await writePieces(path, content);
      return await use(path);
    } finally {
      await removeFile(path);
    }
  }
}

async function* prepend(
  begun: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* begun;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

async function* limitBytes(pieces: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const piece of pieces) {
    size += piece.length;
    if (size > maxBytes) {
      throw new AppError("too_large", `The card file is larger than ${maxBytes} bytes`);
    }
    yield piece;
  }
}
