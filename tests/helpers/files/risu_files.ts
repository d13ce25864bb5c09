/**
 * Files as RisuAI writes them, put together from nothing. Their shapes are those of its sources at 460ecae (2025-12-31):
 * drive/backuplocal.ts, storage/risuSave.ts, storage/database.svelte.ts, characters.ts, persona.ts.
 */
import { Buffer } from "node:buffer";
import { gzipSync } from "node:zlib";
import { encode, ExtData } from "@msgpack/msgpack";
import { cardChunk, END, header, pixels, pngOf } from "./cards.ts";
import { picture } from "./pictures.ts";

const utf8 = (text: string) => new TextEncoder().encode(text);

/** What its encoder writes for JavaScript's undefined. */
export const UNDEFINED = new ExtData(0, new Uint8Array(1));
/** A moment of 2023, in milliseconds. */
const RISU_TIME = 1_700_000_000_000;
/** Images are called by their SHA-256. */
const [FOX, JOY, ANN] = ["f0", "10", "a0"].map((two) => `${two.repeat(32)}.png`);
const COLD = "\uEF01COLDSTORAGE\uEF01";

/** Forms of the database over the years. */
export const RISU_FORMS = ["plain", "packed", "stream", "blocks", "packed blocks", "bare", "oldest"] as const;

/** One entry of a lorebook. */
export function risuLore(key: string, content: string, more: object = {}): Record<string, unknown> {
  return {
    key,
    secondkey: "",
    insertorder: 100,
    comment: key,
    content,
    mode: "normal",
    alwaysActive: false,
    selective: false,
    bookVersion: 2,
    ...more,
  };
}

/** A chat between Ann and Fox. */
export function risuChat(more: object = {}): Record<string, unknown> {
  return {
    message: [
      { role: "user", data: "Grüße, 灯台。", time: RISU_TIME, chatId: "m1" },
      {
        role: "char",
        data: "<Thoughts>\nDusk.\n</Thoughts>\nAhoy!",
        time: RISU_TIME + 1000,
        saying: "fox",
        generationInfo: { model: "m-1", generationId: "g" },
      },
      { role: "user", data: "Nobody reads this.", time: RISU_TIME + 2000, disabled: true },
    ],
    note: "It rains.",
    name: "Evening",
    localLore: [],
    id: "chat-1",
    fmIndex: 0,
    ...more,
  };
}

/** A database with something of every kind. */
export function risuDatabase(): Record<string, unknown> {
  const fox = {
    type: "character",
    name: "Fox",
    image: `assets/${FOX}`,
    firstMessage: "Hi.",
    desc: "A fox.",
    notes: "",
    personality: "Sly.",
    scenario: "A pier.",
    exampleMessage: "<START>",
    creatorNotes: "",
    systemPrompt: "",
    replaceGlobalNote: "Stay short.",
    alternateGreetings: ["Evening, {{user}}. I am {{char}}.", ""],
    tags: ["sea"],
    creator: "",
    chaId: "fox",
    chatPage: 0,
    firstMsgIndex: -1,
    viewScreen: "none",
    additionalData: { creator: "Bo", character_version: "2" },
    emotionImages: [["joy", `assets/${JOY}`]],
    globalLore: [risuLore("pier, quay", "It is lit.")],
    loreSettings: { scanDepth: 5, tokenBudget: 400 },
    customscript: [{ comment: "", in: "a", out: "b", type: "editdisplay" }],
    triggerscript: [],
    bias: [],
    modules: ["mod-2"],
    depth_prompt: { depth: 3, prompt: "Be sly." },
    extentions: { other: { kept: 1 } },
    chatFolders: [{ id: "fold", name: "Sea", folded: false }],
    creation_date: RISU_TIME,
    chats: [
      risuChat({ bindedPersona: "p-2", folderId: "fold", localLore: [risuLore("buoy", "It is red.")] }),
      { message: [], note: "", name: "Empty", localLore: [], id: "chat-2" },
    ],
  };
  const owl = { ...fox, name: "Owl", chaId: "owl", image: "assets/gone.png", chats: [], modules: [], customscript: [] };
  const group = {
    type: "group",
    name: "Watch",
    chaId: "grp",
    firstMessage: "",
    characters: ["fox", "owl"],
    characterTalks: [0.5, 1],
    characterActive: [true, false],
    globalLore: [risuLore("fog", "It is thick.")],
    chatFolders: [],
    emotionImages: [],
    customscript: [],
    chats: [{
      note: "",
      name: "Night",
      localLore: [],
      id: "chat-3",
      hypaV3Data: { summaries: [{ text: "They met." }] },
      message: [
        { role: "char", data: "Who?", saying: "owl", disabled: "allBefore" },
        { role: "char", data: "Me. {{inlay::b1}}", saying: "fox" },
      ],
    }],
  };
  return {
    username: "Ann",
    personaPrompt: "A sailor.",
    userIcon: `assets/${ANN}`,
    selectedPersona: 0,
    openAIKey: "sk-secret",
    personas: [
      { name: "old", personaPrompt: "old", icon: "", note: "" },
      { name: "Cai", personaPrompt: "A cook.", icon: "", id: "p-2", note: "Tall." },
    ],
    enabledModules: ["mod-1"],
    moduleIntergration: "",
    modules: [
      { name: "Harbour", id: "mod-1", description: "", lorebook: [risuLore("mole", "It is old.")], regex: [{}] },
      { name: "Foxes", id: "mod-2", description: "", lorebook: [risuLore("/den(s)?/i", "Below.", { useRegex: true })] },
    ],
    botPresets: [{ name: "Calm", temperature: 80, PresensePenalty: -1000, maxResponse: 300, mainPrompt: "Write." }],
    characters: [fox, owl, group, { ...fox, name: "Gone", chaId: "gone", trashTime: RISU_TIME, chats: [] }],
  };
}

/** Images by the names that the database has for them. */
function risuAssets(): Record<string, Uint8Array<ArrayBuffer>> {
  return { [FOX!]: picture(1), [JOY!]: picture(2), [ANN!]: picture(3) };
}

/** Writes a database in one of its forms. */
export function risuSave(database: Record<string, unknown>, form: typeof RISU_FORMS[number]): Uint8Array {
  const marked = (kind: number, content: Uint8Array) => Buffer.concat([utf8("\0RISUSAVE\0"), Buffer.of(kind), content]);
  const packed = form.includes("blocks") ? new Uint8Array() : encode(database);
  if (form === "plain") return marked(7, packed);
  if (form === "packed") return marked(8, gzipSync(packed));
  if (form === "stream") return marked(9, gzipSync(packed));
  if (form === "bare") return packed;
  if (form === "oldest") return Buffer.concat([utf8("\0\0RISU"), packed]);
  const { characters, botPresets, modules, ...root } = database;
  const isPacked = form === "packed blocks";
  const block = (type: number, name: string, value: unknown) => {
    const content = isPacked ? gzipSync(utf8(JSON.stringify(value))) : utf8(JSON.stringify(value));
    return Buffer.concat([Buffer.of(type, isPacked ? 1 : 0, name.length), utf8(name), length(content), content]);
  };
  return Buffer.concat([
    utf8("RISUSAVE\0"),
    ...[block(1, "root", { ...root, __directory: [] }), block(4, "preset", botPresets), block(5, "modules", modules)],
    ...(characters as { chaId: string }[]).map((character) => block(2, character.chaId, character)),
    block(0, "config", { version: 1 }),
  ]);
}

/** Writes a local backup: images, then the database. */
export function risuBackup(
  database: Uint8Array,
  assets: Record<string, Uint8Array> = risuAssets(),
): Uint8Array<ArrayBuffer> {
  const entries = [...Object.entries(assets), ["database.risudat", database] as const];
  return new Uint8Array(
    Buffer.concat(
      entries.flatMap(([name, content]) => [length(utf8(name)), utf8(name), length(content), content]),
    ),
  );
}

/** The data folder of its server: each file is called by its key in hexadecimal digits; old chats lie apart. */
export function risuFolder(): Record<string, Uint8Array> {
  const database = risuDatabase();
  const [fox] = database.characters as { chats: Record<string, unknown>[] }[];
  const { message, localLore } = fox!.chats[0]!;
  const hidden = [{ time: RISU_TIME, data: `${COLD}cold-1`, role: "char" }];
  fox!.chats[0] = { ...fox!.chats[0], message: hidden, localLore: [] };
  const files: Record<string, Uint8Array> = {
    "database/database.bin": risuSave(database, "blocks"),
    "coldstorage/cold-1": gzipSync(utf8(JSON.stringify({ message, localLore }))),
  };
  for (const [name, bytes] of Object.entries(risuAssets())) files[`assets/${name}`] = bytes;
  return Object.fromEntries(Object.entries(files).map(([key, bytes]) => [Buffer.from(key).toString("hex"), bytes]));
}

/** A persona in the format of RisuAI's export: an image with a custom chunk. */
export function risuPersona(persona: object): Uint8Array<ArrayBuffer> {
  return pngOf(header(8, 8), pixels(8, 8), cardChunk("persona", persona), END);
}

/** What its packing makes of each byte: the other way round than it is read. @see RisuAI, rpack/rpack_map.bin */
const EXCHANGED = Buffer.from(
  "xA0eC70rP1X8RW71ZlNPGuC7MJSGumu/QVBvm+/etxBhFyDfMomonW2ryZAADF2v0sFW5RZkkYJldJfKI9ZS0f+0oOgvilg4WmAZlknb18g7PkNL" +
    "pWNHqmopkvQVz2I0eNMdPOIFjipXDhvNTC3yQCwleUgPsnq1p2w35px7VH7+h9yaAuQzouuxLgPdmaaw59WIGIN89r7hXJ/DIUYfCE7QdhJf7v2P" +
    "ROqjXosoCTWeacwKx4UHrUrzd+ln1NqEgJO2TXP6JyZ/BMb78XI5UcI2qWis+O3FucvOdaQ9gdlCcByVEbzYjJj5WaET9xR9s+xxwOON8AGuWzEG" +
    "JCI6uA==",
  "base64",
);
const exchanged = (bytes: Uint8Array) => Uint8Array.from(bytes, (byte) => EXCHANGED[byte]!);

/** A module as `.risum`, with one image behind it. */
export function risuModule(module: object): Uint8Array<ArrayBuffer> {
  const main = exchanged(utf8(JSON.stringify({ module, type: "risuModule" }, null, 2)));
  const asset = exchanged(picture(9));
  const bytes = [Buffer.of(111, 0), length(main), main, Buffer.of(1), length(asset), asset, Buffer.of(0)];
  return new Uint8Array(Buffer.concat(bytes));
}

/** A preset as `.risup`, or in the older form as `.risupreset`. */
export async function risuPreset(preset: object, isOlder = false): Promise<Uint8Array<ArrayBuffer>> {
  const digest = await crypto.subtle.digest("SHA-256", utf8("risupreset"));
  const key = await crypto.subtle.importKey("raw", digest, "AES-GCM", false, ["encrypt"]);
  const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, key, encode(preset));
  const packed = gzipSync(encode({ presetVersion: 2, type: "preset", preset: new Uint8Array(sealed) }));
  return new Uint8Array(isOlder ? packed : exchanged(packed));
}

function length(bytes: Uint8Array): Uint8Array {
  const four = Buffer.alloc(4);
  four.writeUInt32LE(bytes.length);
  return four;
}
