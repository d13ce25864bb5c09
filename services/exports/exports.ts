/** What a person owns, to be carried away: one conversation as a file, or everything in one zip that imports again whole. */
import type { Attachments } from "../attachments/attachments.ts";
import { exportCard } from "../characters/card_export.ts";
import type { Characters } from "../characters/characters.ts";
import type { ConversationReader } from "../chat/conversation_reader.ts";
import { AppError } from "../errors.ts";
import type { Lorebooks } from "../lorebooks/lorebooks.ts";
import type { Personas } from "../personas/personas.ts";
import type { Presets } from "../presets/presets.ts";
import { EXPORT_MARK } from "./export_mark.ts";
import { type ChatFormat, type Names, toMarkdown, toTavern, type WholeConversation } from "./chat_formats.ts";
import { writeZip, type ZipFile } from "./zip_writer.ts";

/** What exports stand on. */
export interface ExportParts {
  reader: ConversationReader;
  characters: Characters;
  personas: Personas;
  lorebooks: Lorebooks;
  presets: Presets;
  attachments: Attachments;
  /** Ids of all conversations. */
  conversationIds(): string[];
  /** What the owner is called in a conversation. */
  userName(personaId?: string): Promise<string>;
  version: string;
  now(): number;
}

/** A conversation as a file. */
export interface ExportedChat {
  text: string;
  contentType: string;
  fileName: string;
}

const ATTACHMENT_URL = /\/api\/attachments\/([A-Za-z0-9_-][A-Za-z0-9._-]{0,127})/g;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Makes exports. */
export class Exports {
  readonly #parts: ExportParts;

  constructor(parts: ExportParts) {
    this.#parts = parts;
  }

  /** @throws {AppError} `not_found`; `internal` when it cannot be opened */
  async chat(id: string, format: ChatFormat): Promise<ExportedChat> {
    const conversation = await this.#whole(id);
    const stem = conversation.title || "Chat";
    if (format === "json") {
      const text = JSON.stringify(conversation, null, 2);
      return { text, contentType: "application/json", fileName: `${stem}.json` };
    }
    const names = await this.#namesFor(conversation);
    return format === "markdown"
      ? { text: toMarkdown(conversation, names), contentType: "text/markdown; charset=utf-8", fileName: `${stem}.md` }
      : { text: toTavern(conversation, names), contentType: "application/jsonl", fileName: `${stem}.jsonl` };
  }

  /** Gives everything as a zip, piece by piece. What is only in the trash is not in it. */
  everything(): AsyncGenerator<Uint8Array> {
    return writeZip(this.#files());
  }

  async *#files(): AsyncGenerator<ZipFile> {
    const { characters, personas, lorebooks, presets, attachments, version, now } = this.#parts;
    const unreadable: string[] = [];
    /** One that cannot be opened does not take the others with it; the last file says so. */
    const readable = async <T>(path: string, reading: () => Promise<T>): Promise<T | undefined> => {
      try {
        return await reading();
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        if (error.code !== "not_found") unreadable.push(path); // removed a moment ago
      }
    };
    yield jsonFile(EXPORT_MARK, { format: 1, version, created_at: new Date(now()).toISOString() });
    for (const { id } of await personas.list()) {
      const persona = await readable(`personas/${id}`, () => personas.get(id));
      if (persona === undefined) continue;
      if (persona.persona.has_avatar) {
        const bytes = await readable(`personas/${id}.png`, () => personas.avatar(id));
        if (bytes !== undefined) yield { path: `personas/${id}.png`, bytes };
      }
      yield jsonFile(`personas/${id}.json`, persona.persona);
    }
    for (const { id } of lorebooks.list()) {
      const book = await readable(`lorebooks/${id}`, () => lorebooks.get(id));
      if (book !== undefined) yield jsonFile(`lorebooks/${id}.json`, { ...book.head, book: book.body });
    }
    for (const { id, isBuiltin } of presets.list()) {
      const preset = isBuiltin ? undefined : await readable(`presets/${id}`, () => presets.get(id));
      if (preset !== undefined) yield jsonFile(`presets/${id}.json`, { ...preset.head, preset: preset.body });
    }
    for (const item of (await characters.list({})).items) {
      const { id } = JSON.parse(item) as { id: string };
      const open = await readable(`characters/${id}`, () => characters.open(id));
      if (open === undefined) continue;
      if (await characters.hasAssets(open.stored)) {
        const file = await readable(`characters/${id}`, () => exportCard(characters, id, "charx"));
        if (file !== undefined) yield { path: `characters/${id}.charx`, bytes: file.bytes };
        continue;
      }
      yield { path: `characters/${id}.${/\.png$/i.test(open.stored.path) ? "png" : "json"}`, bytes: open.file.bytes };
    }
    const pictures = new Set<string>();
    for (const id of this.#parts.conversationIds()) {
      const conversation = await readable(`conversations/${id}`, () => this.#whole(id));
      if (conversation === undefined) continue;
      const file = jsonFile(`conversations/${id}.json`, conversation);
      for (const [, name] of decoder.decode(file.bytes).matchAll(ATTACHMENT_URL)) pictures.add(name!);
      yield file;
    }
    for (const name of pictures) {
      const bytes = await readable(`attachments/${name}`, () => attachments.bytes(name));
      if (bytes !== undefined) yield { path: `attachments/${name}`, bytes };
    }
    if (unreadable.length > 0) yield jsonFile("unreadable.json", unreadable);
  }

  async #whole(id: string): Promise<WholeConversation> {
    const { json } = await this.#parts.reader.read(id, { hasVariants: true });
    return JSON.parse(decoder.decode(json));
  }

  async #namesFor(conversation: WholeConversation): Promise<Names> {
    const participants = (conversation.participants ?? []) as { character_id: string }[];
    const characters = new Map<string, string>();
    for (const { character_id: id } of participants) {
      const found = await this.#parts.characters.get(id).catch(() => undefined);
      if (found !== undefined) characters.set(id, found.character.name);
    }
    const user = await this.#parts.userName(conversation.persona_id as string | undefined);
    return { user, assistant: [...characters.values()][0] ?? "Assistant", characters };
  }
}

function jsonFile(path: string, json: unknown): ZipFile {
  return { path, bytes: encoder.encode(JSON.stringify(json)) };
}
