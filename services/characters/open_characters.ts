/** Creates the character services: index, characters, images and trash. */
import { join, resolve } from "node:path";
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Log } from "../log.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { DataDir } from "../storage/data_dir.ts";
import { CardUploads } from "./card_uploads.ts";
import { Avatars } from "./avatars.ts";
import { BuiltinCharacter, installBuiltinCharacter, type InstalledFlag } from "./builtin/builtin_character.ts";
import { CardAssets } from "./charx/card_assets.ts";
import { Expressions } from "./expressions.ts";
import { CardIndex } from "./index/card_index.ts";
import type { TrashBin } from "../storage/trash.ts";
import { CardTrash } from "./card_trash.ts";
import { Characters, type ImageTools } from "./characters.ts";
import type { Versions } from "../storage/versions.ts";

/** The character services. */
export interface CharacterServices {
  characters: Characters;
  avatars: Avatars;
  expressions: Expressions;
  builtinCharacter: BuiltinCharacter;
}

/** Dependencies of the character services. */
export interface CharacterServicesOptions {
  db: Database;
  databasePath: string;
  dataDir: DataDir;
  /** Folders of other programs. */
  cardDirs: readonly string[];
  trash: TrashBin & {
    register(kind: string, handler: {
      restore(record: unknown, takeOut: Statement): Promise<void>;
      purge(record: unknown, takeOut: Statement): Promise<void>;
    }): void;
  };
  /** For the purpose "trash". */
  trashSealer: PurposeSealer;
  versions: Versions;
  events: EventHub;
  log: Log;
  images: ImageTools;
  builtinFlag: InstalledFlag;
}

/**
 * Creates the services. Cards are read on first use.
 *
 * @throws {AppError} `internal` if a folder can't be created
 */
export async function openCharacters(
  options: CharacterServicesOptions,
): Promise<CharacterServices & { close(): Promise<void> }> {
  const { db, dataDir, cardDirs, versions, events, log, images, builtinFlag: flag } = options;
  const folder = await dataDir.ensureFolder("characters");
  const sealedFolder = await dataDir.ensureFolder("trash");
  const cache = await dataDir.ensureFolder("cache");
  const prepared = installBuiltinCharacter(folder, flag, log);
  const external = [...new Set(cardDirs.map((path) => resolve(path)))].filter((path) => path !== folder);
  const folders = [folder, ...external].map((path) => ({ path, isExternal: path !== folder }));
  const index = new CardIndex({ db, databasePath: options.databasePath, folders, prepared, events, log });
  const assets = new CardAssets(folder);
  const trash = new CardTrash({
    db,
    index,
    assets,
    versions,
    events,
    folder,
    sealedFolder,
    bin: options.trash,
    sealer: options.trashSealer,
  });
  options.trash.register("character", trash);
  const uploads = new CardUploads(join(cache, "arriving"));
  await uploads.clear();
  const characters = new Characters({
    uploads,
    db,
    index,
    trash,
    assets,
    versions,
    images,
    events,
    folder,
  });
  const avatars = new Avatars({ db, index, images, log, folder: join(cache, "avatars") });
  return {
    characters,
    avatars,
    expressions: new Expressions(characters),
    builtinCharacter: new BuiltinCharacter({ characters, flag }),
    async close() {
      await prepared;
      await index.close();
      await avatars.close();
    },
  };
}
