/** Opens the room: the index, the characters, their pictures and trash, each once. Portraits wait for who draws them. */
import { join, resolve } from "node:path";
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Log } from "../log.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { DataDir } from "../storage/data_dir.ts";
import { ArrivingCards } from "./card_uploads.ts";
import { Avatars } from "./avatars.ts";
import { BuiltinCharacter, installBuiltin, type InstalledFlag } from "./builtin/builtin_character.ts";
import { CardAssets } from "./charx/card_assets.ts";
import { CardIndex } from "./index/card_index.ts";
import { CardTrash, type TrashBin } from "./card_trash.ts";
import { Characters, type PictureTools } from "./characters.ts";
import type { Versions } from "../storage/versions.ts";

/** Everything about characters. */
export interface CharacterRoom {
  characters: Characters;
  avatars: Avatars;
  builtinCharacter: BuiltinCharacter;
}

/** What the room stands on. */
export interface CharacterRoomOptions {
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
  pictures: PictureTools;
  builtinFlag: InstalledFlag;
}

/**
 * Opens the room. No card is looked at before somebody asks for one.
 *
 * @throws {AppError} `internal` when its folders cannot be made.
 */
export async function openCharacters(
  options: CharacterRoomOptions,
): Promise<{ room: CharacterRoom; close(): Promise<void> }> {
  const { db, dataDir, cardDirs, versions, events, log, pictures, builtinFlag: flag } = options;
  const folder = await dataDir.ensureFolder("characters");
  const sealedFolder = await dataDir.ensureFolder("trash");
  const cache = await dataDir.ensureFolder("cache");
  const prepared = installBuiltin(folder, flag, log);
  const external = [...new Set(cardDirs.map((path) => resolve(path)))].filter((path) => path !== folder);
  const folders = [folder, ...external].map((path) => ({ path, isExternal: path !== folder }));
  const index = new CardIndex({ db, databasePath: options.databasePath, folders, prepared, events, log });
  const assets = new CardAssets(folder);
  const trash = new CardTrash({
    ...{ db, index, assets, versions, events, folder, sealedFolder, bin: options.trash, sealer: options.trashSealer },
  });
  options.trash.register("character", trash);
  const arriving = new ArrivingCards(join(cache, "arriving"));
  await arriving.clear();
  const characters = new Characters({ arriving, db, index, trash, assets, versions, pictures, events, folder });
  const avatars = new Avatars({ db, index, pictures, log, folder: join(cache, "avatars") });
  return {
    room: {
      characters,
      avatars,
      builtinCharacter: new BuiltinCharacter({ characters, flag }),
    },
    async close() {
      await prepared;
      await index.close();
      await avatars.close();
    },
  };
}
