/**
 * Files as Agnai writes them, put together from nothing. Their shapes are those of its sources at 2421510 (2024-10-16):
 * common/types/library.ts, schema.ts and memory.ts, srv/api/json/index.ts, web/pages/Chat/ChatExport.tsx.
 */
import { dataUrl, picture } from "./pictures.ts";

const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

/** A character as "Agnaistic" JSON: the document without its id. */
export function agnaiCharacter(more: object = {}): Record<string, unknown> {
  return {
    kind: "character",
    userId: "anon",
    name: "Fox",
    description: "For evenings.",
    greeting: "Hi, {{user}}.",
    scenario: "A pier.",
    sampleChat: "{{char}}: Hm.",
    createdAt: "2024-01-02T03:04:05.000Z",
    tags: ["sea"],
    persona: { kind: "wpp", attributes: { species: ["fox"], mind: ["sly", "calm"] } },
    systemPrompt: "Be a fox.",
    alternateGreetings: ["Evening."],
    insert: { depth: 3, prompt: "Be sly." },
    voice: { service: "webspeechsynthesis" },
    avatar: dataUrl(picture(1)),
    ...more,
  };
}

/** A memory book, as its own file without the id. */
export function agnaiBook(more: object = {}): Record<string, unknown> {
  return {
    kind: "memory",
    name: "Harbour",
    description: "By the sea",
    entries: [
      { name: "Pier", entry: "It is lit.", keywords: ["pier", "quay"], priority: 5, weight: 7, enabled: true },
      { name: "Off", entry: "Never.", keywords: ["off"], priority: 0, weight: 0, enabled: false },
    ],
    ...more,
  };
}

/** A chat as the page exports it. */
export function agnaiExport(): Record<string, unknown> {
  return {
    name: "Exported",
    greeting: "Hi.",
    sampleChat: "",
    scenario: "A pier at night.",
    messages: [
      { characterId: "imported", msg: "Hi.", state: undefined },
      { handle: "Ann", userId: "anon", msg: "Grüße, 灯台." },
    ],
  };
}

/** The folder of an own server, with a character, one who is in a chat alone, a tree of messages, and what stays behind. */
export function agnaiFolder(): Record<string, Uint8Array<ArrayBuffer>> {
  const said = (_id: string, parent: string | undefined, msg: string, more: object = {}) => ({
    _id,
    kind: "chat-message",
    chatId: "k1",
    parent,
    msg,
    createdAt: `2024-01-02T03:04:0${_id}.000Z`,
    updatedAt: `2024-01-02T03:04:0${_id}.000Z`,
    ...more,
  });
  return {
    "db/user.json": json({ _id: "anon", oaiKey: "sk-secret" }),
    "db/profile.json": json({ _id: "p", kind: "profile", userId: "anon", handle: "Ann" }),
    "db/books.json": json([agnaiBook({ _id: "b1" })]),
    "db/scenario.json": json([]),
    "db/presets.json": json([{
      _id: "s1",
      name: "Calm",
      temp: 0.5,
      topP: 0.9,
      maxTokens: 300,
      systemPrompt: "Write.",
    }]),
    "db/characters.json": json([agnaiCharacter({ _id: "c1", avatar: "/assets/fox.png" })]),
    "db/chats.json": json([{
      _id: "k1",
      kind: "chat",
      name: "Evening",
      characterId: "c1",
      characters: { "temp-owl": true },
      memoryId: "b1",
      treeLeafId: "5",
      createdAt: "2024-01-02T03:04:00.000Z",
      systemPrompt: "Rain falls.",
      tempCharacters: {
        "temp-owl": agnaiCharacter({
          _id: "temp-owl",
          name: "Owl",
          avatar: undefined,
          createdAt: "2024-02-02T00:00:00Z",
        }),
      },
    }]),
    "db/messages-k1.json": json([
      said("1", undefined, "Hi.", { characterId: "c1" }),
      said("2", "1", "Grüße.", { userId: "anon" }),
      said("3", "2", "First.", { characterId: "c1" }),
      said("4", "2", "Second.", { characterId: "temp-owl", retries: ["Third.", "Fourth."] }),
      said("5", "4", "(Brb.)", { userId: "anon", ooc: true }),
      said("6", "3", "Beside.", { userId: "anon" }),
    ]),
    "assets/fox.png": picture(2),
  };
}
