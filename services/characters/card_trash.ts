/** Removed card files: each lies sealed beside the database for as long as the trash keeps its entry. */
import { basename, join } from "node:path";
import { readSealedFile, writeSealedFile } from "../storage/sealed_file.ts";
import { uuidV7 } from "../crypto/random.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import { fileExists, readFileIfExists, writeChunksAtomic, writeFileAtomic } from "../storage/atomic_file.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import { filePieces } from "../storage/file_pieces.ts";
import type { CardAssets } from "./charx/card_assets.ts";
import { cardIn } from "./card/card_file.ts";
import { type CardPlace, type CardRow, rowOf, unreadableRow } from "./card/card_head.ts";
import type { CardIndex } from "./index/card_index.ts";
import { findCard, findCaseClash, type StoredCard } from "./index/card_rows.ts";
import type { Versions } from "../storage/versions.ts";
import { removeFile, statPlainFile } from "../storage/plain_files.ts";

/** Where what is removed goes for a while; implemented by the trash of all kinds. */
export interface TrashBin {
  /** Statement that puts something into the trash. @param title What the owner knows it by. */
  put(kind: string, title: string, record: unknown): Statement;
  /** To be called after the write. */
  changed(): void;
}

/** What the removed files stand on. */
export interface CardTrashParts {
  db: Database;
  bin: TrashBin;
  /** For the purpose "trash". */
  sealer: PurposeSealer;
  index: CardIndex;
  assets: CardAssets;
  versions: Versions;
  events: EventHub;
  /** Folder of our own card files. */
  folder: string;
  /** Folder of sealed files. */
  sealedFolder: string;
}

/** What the trash keeps of a card beside its file. */
interface Record {
  id: string;
  /** Name of the file in the folder of cards. */
  name: string;
  /** Name of the sealed file, and of its versions in the trash. */
  sealedName: string;
  /** Name of the sealed other files of a CHARX, where there were any. */
  sealedAssets?: string;
}

/** Keeps removed card files and brings them back. */
export class CardTrash {
  readonly #parts: CardTrashParts;

  constructor(parts: CardTrashParts) {
    this.#parts = parts;
  }

  /**
   * Keeps a copy of a card file, and of what lies beside it, that is about to be removed.
   *
   * @param title The character's name.
   * @returns The name for its versions in the trash.
   */
  async keep({ id, path }: StoredCard, title: string, content: Uint8Array): Promise<string> {
    const { db, bin, sealer, assets } = this.#parts;
    const record: Record = { id, name: basename(path), sealedName: uuidV7() };
    if (await assets.has(id)) record.sealedAssets = uuidV7();
    try {
      await writeFileAtomic(this.#sealedPath(record), await sealer.seal(placeOf(record), content));
      if (record.sealedAssets !== undefined) {
        await writeSealedFile(sealer, this.#sealedAssets(record.sealedAssets), filePieces(assets.pathOf(id)));
      }
      await db.write([bin.put("character", title, record)]);
      bin.changed();
      return record.sealedName;
    } catch (error) {
      await this.#removeSealed(record);
      throw error;
    }
  }

  /** Brings a file back under its name. @throws {AppError} `conflict` when its name or id is taken */
  async restore(value: unknown, takeOut: Statement): Promise<void> {
    const { db, index, assets, versions, sealer, folder, events } = this.#parts;
    const record = value as Record;
    await index.fresh();
    const path = join(folder, record.name);
    if (findCard(db, record.id) ?? findCaseClash(db, record.id) ?? await fileExists(path)) {
      throw new AppError("conflict", `There is a character "${record.id}" again`);
    }
    const sealed = await readFileIfExists(this.#sealedPath(record));
    if (sealed === undefined) throw new AppError("internal", "The file of this entry of the trash is missing");
    const content = await sealer.open(placeOf(record), sealed);
    if (record.sealedAssets !== undefined) {
      const pieces = readSealedFile(sealer, this.#sealedAssets(record.sealedAssets));
      await writeChunksAtomic(assets.pathOf(record.id), pieces);
    }
    await index.write([path], async () => {
      await writeFileAtomic(path, content);
      await db.write([takeOut]);
      const info = await statPlainFile(path);
      return info === undefined ? {} : { row: rowFor({ id: record.id, path, isExternal: false, ...info }, content) };
    });
    await versions.restoreFromTrash({ kind: "characters", id: record.id }, record.sealedName);
    await this.#removeSealed(record);
    events.publish({ kind: "character", id: record.id });
  }

  /** Removes a file for good. */
  async purge(value: unknown, takeOut: Statement): Promise<void> {
    await this.#parts.db.write([takeOut]);
    await this.#removeSealed(value as Record);
    await this.#parts.versions.purge("characters", (value as Record).sealedName);
  }

  async #removeSealed(record: Record): Promise<void> {
    await removeFile(this.#sealedPath(record));
    if (record.sealedAssets !== undefined) await removeFile(this.#sealedAssets(record.sealedAssets).path);
  }

  #sealedAssets(name: string) {
    return {
      path: join(this.#parts.sealedFolder, name),
      place: { table: "trash", id: name, field: "assets", version: 1 },
    };
  }

  #sealedPath({ sealedName }: Record): string {
    return join(this.#parts.sealedFolder, sealedName);
  }
}

function rowFor(place: CardPlace, content: Uint8Array): CardRow {
  try {
    return rowOf(place, cardIn(place.path, content));
  } catch {
    return unreadableRow(place);
  }
}

function placeOf({ sealedName }: Record) {
  return { table: "trash", id: sealedName, field: "file", version: 1 };
}
