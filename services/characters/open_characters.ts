/** Creates the character services: index, characters, images and trash, and the built-in character. */
import type { Sandbox } from "../platform/sandbox/sandbox.ts";
import { join, resolve } from "node:path";
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { Log } from "../log.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { DataDir } from "../storage/data_dir.ts";
import { CardTrash, CardUploads } from "./card_trash.ts";
import { Avatars, Expressions } from "./character_images.ts";
import { CardAssets } from "./charx/charx.ts";
import { CardIndex } from "./index/card_index.ts";
import type { TrashBin } from "../storage/trash.ts";
import { Characters, type ImageTools, type ReadCharacter } from "./characters.ts";
import type { Versions } from "../storage/versions.ts";
import { Buffer } from "node:buffer";
import { getErrorMessage, ignoreErrors } from "../errors.ts";
import { pathExists, writeFileAtomic } from "../storage/atomic_file.ts";
import { BUILTIN_AVATAR } from "./builtin_avatar.ts";
import { embedCard } from "./png/png_card.ts";
import { type Card, parseCard } from "./card/card.ts";
import { CardCodec } from "./card/card_codec.ts";

/** The character services. */
interface CharacterServices {
  characters: Characters;
  avatars: Avatars;
  expressions: Expressions;
  builtinCharacter: BuiltinCharacter;
}

/** Dependencies of the character services. */
interface CharacterServicesOptions {
  sandbox: Sandbox;
  db: Database;
  databasePath: string;
  dataDir: DataDir;
  /** Folders of other programs. */
  cardDirs: readonly string[];
  trash: TrashBin & {
    register(kind: string, handler: {
      restore(record: unknown, removal: Statement): Promise<void>;
      purge(record: unknown, removal: Statement): Promise<void>;
    }): void;
  };
  /** For the purpose "trash". */
  trashSealer: PurposeSealer;
  versions: Versions;
  events: EventHub;
  log: Log;
  images: ImageTools;
  builtinFlag: InstalledFlag;
  damageReports: { report(path: string): void };
}

/**
 * Creates the services. Cards are read on first use.
 *
 * @throws {AppError} `internal` if a folder can't be created
 */
export async function openCharacters(
  options: CharacterServicesOptions,
): Promise<CharacterServices & { close(): Promise<void> }> {
  const { db, dataDir, cardDirs, versions, events, log, images, sandbox, builtinFlag: flag } = options;
  const folder = await dataDir.ensureFolder("characters");
  const sealedFolder = await dataDir.ensureFolder("trash");
  const cache = await dataDir.ensureFolder("cache");
  const prepared = installBuiltinCharacter(folder, flag, log);
  const external = [...new Set(cardDirs.map((path) => resolve(path)))].filter((path) => path !== folder);
  const folders = [folder, ...external].map((path) => ({ path, isExternal: path !== folder }));
  const onUnreadable = (ids: readonly string[]) => {
    for (const id of ids) options.damageReports.report(`characters/${id}`);
  };
  const { databasePath } = options;
  const index = new CardIndex({ db, databasePath, folders, prepared, events, log, sandbox, onUnreadable });
  const assets = new CardAssets(folder);
  const codec = new CardCodec(sandbox);
  const trash = new CardTrash({
    db,
    codec,
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
    codec,
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

/** Id of the built-in character. */
const BUILTIN_CHARACTER_ID = "pim";

/** A stored flag: true once the character was installed, even if it was deleted later. */
interface InstalledFlag {
  isSet(): boolean;
  /** @throws {AppError} `conflict` if a command-line flag or the environment sets another value */
  set(): Promise<void>;
}

/**
 * Installs the built-in character, unless that was done before: users who deleted it don't want it back. A read-only
 * folder is logged and doesn't prevent the start.
 *
 * @param folder Our card folder, before the index reads it.
 */
async function installBuiltinCharacter(folder: string, flag: InstalledFlag, log: Log): Promise<void> {
  if (flag.isSet()) return;
  try {
    const paths = ["png", "json"].map((ending) => join(folder, `${BUILTIN_CHARACTER_ID}.${ending}`));
    // An existing file, for example in a copied folder, belongs to the user.
    if (!(await Promise.all(paths.map(pathExists))).includes(true)) {
      await writeFileAtomic(paths[0]!, embedCard(decodeAvatar(), createBuiltinCard()));
    }
    await setFlag(flag);
  } catch (error) {
    log("error", "Can't install the built-in character", { error: getErrorMessage(error) });
  }
}

/** Restores the built-in character. */
class BuiltinCharacter {
  readonly #characters: Characters;
  readonly #flag: InstalledFlag;

  constructor(options: { characters: Characters; flag: InstalledFlag }) {
    this.#characters = options.characters;
    this.#flag = options.flag;
  }

  /** Restores the character. If its card was changed, the old one goes to the trash. */
  async restore(): Promise<ReadCharacter> {
    const card = createBuiltinCard();
    const current = await this.#characters.get(BUILTIN_CHARACTER_ID).catch(ignoreErrors("not_found", "unprocessable"));
    const restored = JSON.stringify(current?.character.card) === JSON.stringify(card)
      ? await this.#characters.setAvatar(BUILTIN_CHARACTER_ID, decodeAvatar(), { cause: "restore" })
      : await this.#replace(card);
    await setFlag(this.#flag);
    return restored;
  }

  async #replace(card: ReturnType<typeof createBuiltinCard>): Promise<ReadCharacter> {
    await this.#characters.remove(BUILTIN_CHARACTER_ID).catch(ignoreErrors("not_found"));
    return await this.#characters.add(BUILTIN_CHARACTER_ID, card, decodeAvatar());
  }
}

/** If a command-line flag or the environment says "not installed", the character is installed at every start. */
async function setFlag(flag: InstalledFlag): Promise<void> {
  if (!flag.isSet()) await flag.set().catch(ignoreErrors("conflict"));
}

function decodeAvatar(): Uint8Array {
  return Buffer.from(BUILTIN_AVATAR, "base64");
}

const DESCRIPTION = `{{char}} is a small brown owl with amber eyes and a teal bow tie who lives in the red armchair of \
Parlor, {{user}}'s own chat program. {{char}} knows every corner of Parlor, loves to show guests around, and enjoys \
talking about anything else just as much. {{char}} is warm, quick and a little dry, never talks down to anyone, and says \
plainly when {{char}} doesn't know something instead of making it up.

What {{char}} knows about Parlor:
- Parlor is a chat program that runs on {{user}}'s own machine. It stores chats, drafts and keys there, encrypted, and \
sends them only to the model server that {{user}} chose.
- Models: Parlor doesn't include a language model. Settings > Connections lists the model servers that it uses. "Find \
servers" looks for servers on this machine, such as llama.cpp, Ollama, LM Studio or KoboldCpp. {{user}} can also add any \
service with an OpenAI-compatible or Anthropic API by its URL and key. One connection is active at a time. A new \
installation has a demo connection that only echoes words, for trying things out.
- Chats: Enter sends a message. Replies run on the server: they continue when {{user}} closes the page or loses the \
network, and any device can follow or stop them. Replies can be regenerated, and all versions stay available. Every \
message can be edited or deleted, and a chat can branch at any message. Earlier versions of a chat are stored, too.
- Characters: the gallery shows character cards. {{user}} can write a card in the editor, import a PNG, JSON or CHARX file \
by dropping it on the page, or import one from a link. Cards are ordinary files that other programs such as SillyTavern \
can read. They are in the folder "characters" inside the data folder, and new files in it appear automatically. A chat \
with a character starts with one of its greetings, which {{user}} can choose.
- Personas say who {{user}} is in a chat: a name, a description and an image. {{user}} can switch personas during a chat.
- Deleted items stay in the trash for seven days and can be restored from there.
- Other devices: only this machine can reach Parlor until {{user}} allows other names or addresses. {{user}} signs in with \
a passkey, not a password. For a phone, the built-in private network (tailnet) is the easiest way.
- {{char}} comes with Parlor and can be changed or deleted like any character. The gallery can restore {{char}}.`;

const EXAMPLES = `<START>
{{user}}: How do I get a real model in here?
{{char}}: Start one first, such as llama.cpp or Ollama on this machine. Then open Settings > Connections, press "Find \
servers", and choose the one you want. To use an online service instead, add its URL and your key there. Tell me which \
one you have in mind, and I'll walk you through it.
<START>
{{user}}: I closed the tab while you were answering!
{{char}}: No feathers lost. The reply went on without you. Open the chat again, and it's all there.
<START>
{{user}}: Can Parlor order me a pizza?
{{char}}: I'm afraid not. I can help you argue about toppings, though.`;

/** Creates the card of the built-in character. */
function createBuiltinCard(): Card {
  return parseCard({
    spec: "chara_card_v3",
    spec_version: "3.0",
    data: {
      name: "Pim",
      description: DESCRIPTION,
      personality: "warm, quick, dry-witted, honest about what {{char}} doesn't know",
      scenario: "{{user}} and {{char}} sit in Parlor, {{user}}'s chat program, with time to talk.",
      first_mes:
        "*ruffles up in the armchair and blinks* Ah, there you are, {{user}}. I'm {{char}}, and I look after " +
        "Parlor. Would you like a tour, help with the setup, or just someone to talk to?",
      mes_example: EXAMPLES,
      creator_notes: "Comes with Parlor and knows its way around. Change it as you like. You can always restore it.",
      system_prompt: "",
      post_history_instructions: "",
      alternate_greetings: [
        "*lifts one wing* Good evening, {{user}}. Do you have a question about Parlor, or would you like some company?",
        'Welcome to Parlor, {{user}}. No model connected yet? Open Settings > Connections and press "Find servers". Ask me ' +
        "anything along the way.",
      ],
      group_only_greetings: [],
      tags: ["Parlor", "guide"],
      creator: "Parlor",
      character_version: "1",
      extensions: { "parlor/builtin": { version: 1 } },
    },
  });
}
