/** Puts the built-in character into the gallery: once by itself, later when asked. */
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { messageOf, noneOn } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { fileExists, writeFileAtomic } from "../../storage/atomic_file.ts";
import { BUILTIN_AVATAR } from "./builtin_avatar.ts";
import { builtinCard } from "./builtin_card.ts";
import type { Characters, ReadCharacter } from "../characters.ts";
import { embedCard } from "../png/png_card.ts";

/** Id of the built-in character. */
export const BUILTIN_ID = "pim";

/** Whether the character was put there once, whatever became of it; kept for good. */
export interface InstalledFlag {
  isSet(): boolean;
  /** @throws {AppError} `conflict` when a flag or the environment says otherwise. */
  set(): Promise<void>;
}

/**
 * Writes the file of the built-in character unless that was done before: who removed it does not want it back. A folder
 * that cannot be written is logged and no reason not to start.
 *
 * @param folder Of our own card files; nobody reads it yet.
 */
export async function installBuiltin(folder: string, flag: InstalledFlag, log: Log): Promise<void> {
  if (flag.isSet()) return;
  try {
    const paths = ["png", "json"].map((ending) => join(folder, `${BUILTIN_ID}.${ending}`));
    // What lies there already, as in a folder copied from elsewhere, is the owner's.
    if (!(await Promise.all(paths.map(fileExists))).includes(true)) {
      await writeFileAtomic(paths[0]!, embedCard(picture(), builtinCard()));
    }
    await remember(flag);
  } catch (error) {
    log("error", "Cannot install the built-in character", { error: messageOf(error) });
  }
}

/** The built-in character once there is a gallery. */
export class BuiltinCharacter {
  readonly #characters: Characters;
  readonly #flag: InstalledFlag;

  constructor(options: { characters: Characters; flag: InstalledFlag }) {
    this.#characters = options.characters;
    this.#flag = options.flag;
  }

  /** Puts it there as it came; one that is there goes to the trash before if its card was changed. */
  async restore(): Promise<ReadCharacter> {
    const card = builtinCard();
    const standing = await this.#characters.get(BUILTIN_ID).catch(noneOn("not_found", "unprocessable"));
    const restored = JSON.stringify(standing?.character.card) === JSON.stringify(card)
      ? await this.#characters.setAvatar(BUILTIN_ID, picture(), { cause: "restore" })
      : await this.#replace(card);
    await remember(this.#flag);
    return restored;
  }

  async #replace(card: ReturnType<typeof builtinCard>): Promise<ReadCharacter> {
    await this.#characters.remove(BUILTIN_ID).catch(noneOn("not_found"));
    return await this.#characters.add(BUILTIN_ID, card, picture());
  }
}

/** Where a flag or the environment says "not installed", the owner wants it looked for at every start. */
async function remember(flag: InstalledFlag): Promise<void> {
  if (!flag.isSet()) await flag.set().catch(noneOn("conflict"));
}

function picture(): Uint8Array {
  return Buffer.from(BUILTIN_AVATAR, "base64");
}
