/**
 * Reads archives of Backyard AI (BYAF): a character with its images and lore, and scenarios, each with its chat. What
 * they contain is in docs/protocols/imports.md.
 */
import { serializeCard } from "../../characters/card/card.ts";
import { AppError } from "../../errors.ts";
import { asObject, asText, asTexts, type JsonObject } from "../../json/type_guards.ts";
import { hashTree, splitTree, type TreeMessage, type TreeNode } from "../branching_chat.ts";
import type { ImportStep } from "../import_item.ts";
import { createChangedNote, createLeftOutNote, createRefusedNote, importReason } from "../import_report.ts";
import { deriveStableId, getStem, type ImportSource, parseJsonObject, type SourceFile } from "../import_source.ts";
import { createTreeMessage, listObjects, toIsoTime } from "./chat_files.ts";

const MANIFEST = /^(?:(.*)\/)?manifest\.json$/;
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_IMAGE_BYTES = 50 * 1024 * 1024;

/** A scenario with its place in the archive. */
interface Scenario {
  path: string;
  json: JsonObject;
}

/** Yields the characters and chats of an archive, or of a folder with unpacked ones. @throws {AppError} `unprocessable` */
export async function* readBackyard(source: ImportSource): AsyncGenerator<ImportStep> {
  const manifests = source.files.filter(({ path }) => MANIFEST.test(path));
  if (manifests.length === 0) {
    throw new AppError("unprocessable", "Can't find a manifest.json of Backyard AI in this import");
  }
  const used = new Set(manifests.map(({ path }) => path));
  for (const { path } of manifests) {
    const root = MANIFEST.exec(path)![1];
    try {
      yield* new BackyardArchive(source, root === undefined ? "" : `${root}/`, used).read(path);
    } catch (error) {
      yield createRefusedNote(path, error);
    }
  }
  const others = source.files.filter(({ path }) => !used.has(path)).length;
  if (others > 0) yield createLeftOutNote("", "other_files", others);
}

class BackyardArchive {
  readonly #files: Map<string, SourceFile>;

  /** @param root Folder of the archive, with a slash. @param used Gets the paths of the files that were read. */
  constructor(readonly source: ImportSource, readonly root: string, readonly used: Set<string>) {
    this.#files = new Map(source.files.map((file) => [file.path, file]));
  }

  async *read(manifestPath: string): AsyncGenerator<ImportStep> {
    const manifest = await this.#readJson(manifestPath);
    const scenarios: Scenario[] = [];
    for (const name of asTexts(manifest.scenarios)) {
      const path = `${this.root}${name}`;
      try {
        scenarios.push({ path, json: await this.#readJson(path) });
      } catch (error) {
        yield createRefusedNote(path, error);
      }
    }
    const characters = asTexts(manifest.characters);
    if (characters.length === 0 && asTexts(manifest.scenarios).length === 0) {
      throw new AppError("unprocessable", "the manifest names neither characters nor scenarios");
    }
    const ids: string[] = [];
    let name = "";
    for (const path of characters) {
      try {
        const character = await this.#readJson(`${this.root}${path}`);
        // Without an ID, characters of several archives have the same path.
        const key = asText(character.id) || `${asText(character.name)} ${asText(character.persona)}`;
        const id = deriveStableId("backyard", "character", key, asText(character.createdAt));
        name ||= asText(character.name) || asText(character.displayName);
        yield* this.#convertCharacter({ id, path: `${this.root}${path}`, character, manifest, scenarios });
        ids.push(id);
      } catch (error) {
        yield createRefusedNote(`${this.root}${path}`, error);
      }
    }
    yield* noteScenarios(scenarios);
    for (const scenario of scenarios) yield* convertChat(scenario, ids, name);
  }

  async *#convertCharacter(
    { id, path, character, manifest, scenarios }: {
      id: string;
      path: string;
      character: JsonObject;
      manifest: JsonObject;
      scenarios: readonly Scenario[];
    },
  ): AsyncGenerator<ImportStep> {
    const folder = path.replace(/[^/]*$/, "");
    const images = listObjects(character.images).map((image) => `${folder}${asText(image.path)}`);
    let avatar: Uint8Array<ArrayBuffer> | undefined;
    const [first, ...others] = images;
    if (first !== undefined) {
      avatar = await this.#read(first, MAX_IMAGE_BYTES).catch(() => undefined);
      if (avatar === undefined) yield createChangedNote(path, "avatar_missing");
    }
    for (const image of others) this.used.add(image);
    if (others.length > 0) yield { ...createChangedNote(path, "backyard_images"), count: others.length };
    const name = asText(character.displayName) || asText(character.name);
    const card = convertCharacter(character, asText(asObject(manifest.author).name), scenarios);
    yield { what: "character", id, source: path, name, file: serializeCard(card), avatar };
  }

  async #readJson(path: string): Promise<JsonObject> {
    return parseJsonObject(await this.#read(path, MAX_BYTES));
  }

  async #read(path: string, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
    const file = this.#files.get(path);
    if (file === undefined) throw new AppError("unprocessable", "the archive doesn't contain this file");
    this.used.add(path);
    return await this.source.read(file, maxBytes);
  }
}

/** Converts a character to a card. Its first scenario is that of the card; the others add greetings. */
function convertCharacter(character: JsonObject, creator: string, scenarios: readonly Scenario[]): JsonObject {
  const [name, nickname] = [asText(character.displayName) || asText(character.name), asText(character.name)];
  const [first = {}] = scenarios.map(({ json }) => json);
  const greetings = scenarios.map(({ json }) => getGreeting(json));
  const alternatives = greetings.slice(1).filter((text, n, all) =>
    text !== "" && text !== greetings[0] && all.indexOf(text) === n
  );
  const examples = listObjects(first.exampleMessages).map((message) =>
    `${getSpeaker(message, character)}: ${toMacros(message.text)}`
  );
  const entries = listObjects(character.loreItems).map(({ key, value }, index) => ({
    keys: asText(key).split(",").map((one) => one.trim()).filter((one) => one !== ""),
    content: toMacros(value),
    enabled: true,
    insertion_order: index,
    extensions: {},
  }));
  return {
    spec: "chara_card_v3",
    spec_version: "3.0",
    data: {
      name,
      ...(nickname !== "" && nickname !== name && { nickname }),
      description: toMacros(character.persona),
      personality: "",
      scenario: toMacros(first.narrative),
      first_mes: greetings[0] ?? "",
      mes_example: examples.length === 0 ? "" : `<START>\n${examples.join("\n")}`,
      creator_notes: "",
      system_prompt: toMacros(first.formattingInstructions),
      post_history_instructions: "",
      alternate_greetings: alternatives,
      group_only_greetings: [],
      tags: character.isNSFW === true ? ["NSFW"] : [],
      creator,
      character_version: "",
      extensions: {},
      ...(entries.length > 0 && { character_book: { entries, extensions: {} } }),
    },
  };
}

function getGreeting(scenario: JsonObject): string {
  return listObjects(scenario.firstMessages).map(({ text }) => toMacros(text)).join("\n\n");
}

function getSpeaker({ characterID: speaker }: JsonObject, { id }: JsonObject): string {
  return speaker === id ? "{{char}}" : "{{user}}";
}

/** Replaces placeholders by macros: `{character}`, `{user}`, and with `#` before a turn of an example. */
function toMacros(text: unknown): string {
  return asText(text).replace(
    /#?\{(character|user)\}/gi,
    (_, name: string) => name.length === 4 ? "{{user}}" : "{{char}}",
  );
}

/** Names what scenarios have that isn't imported. */
function* noteScenarios(scenarios: readonly Scenario[]): Generator<ImportStep> {
  for (const { path, json } of scenarios) {
    if (asText(json.grammar) !== "") yield createChangedNote(path, importReason("other_parts", { kinds: "grammar" }));
    if (asText(json.backgroundImage) !== "") yield createChangedNote(path, "backgrounds");
  }
  const [first] = scenarios;
  if (first !== undefined) yield createLeftOutNote(first.path, "backyard_sampling", scenarios.length);
  for (const [index, { path, json }] of scenarios.entries()) {
    const isOnlyInChat = index > 0 && asText(json.narrative) !== "" && listObjects(json.messages).length === 0;
    if (isOnlyInChat) {
      yield createChangedNote(path, importReason("backyard_scenario", { title: getTitle({ path, json }) }));
    }
  }
}

function getTitle({ path, json }: Scenario): string {
  return asText(json.title) || getStem(path);
}

/** Yields the chat of a scenario. One without messages has none. */
function* convertChat(scenario: Scenario, participants: string[], characterName: string): Generator<ImportStep> {
  const { path, json } = scenario;
  const list = listObjects(json.messages);
  if (list.length === 0) return;
  const unknown = list.filter(({ type }) => type !== "ai" && type !== "human");
  if (unknown.length > 0) {
    const kinds = [...new Set(unknown.map(({ type }) => asText(type) || "?"))].join(", ");
    yield { ...createChangedNote(path, importReason("other_parts", { kinds })), count: unknown.length };
  }
  const messages = list.flatMap((message): TreeMessage[] => convertMessage(message) ?? []);
  // Chats show macros as they are.
  const greeting = getGreeting(json).replaceAll("{{char}}", characterName || "{{char}}");
  // The greeting isn't among the messages.
  if (greeting !== "" && messages[0]?.content !== greeting) {
    messages.unshift(createTreeMessage({ role: "assistant", content: greeting, time: messages[0]?.created_at }));
  }
  if (messages.length === 0) return yield createRefusedNote(path, "no_messages");
  const nodes = new Map(messages.map((message, index): [string, TreeNode] => [
    `n${index}`,
    { id: `n${index}`, children: [], message, ...(index > 0 && { parent: `n${index - 1}` }) },
  ]));
  const id = deriveStableId("backyard", "chat", ...participants, path, messages[0]?.created_at ?? "");
  const title = asText(json.title) || characterName || getStem(path);
  const times = messages.flatMap(({ created_at }) => created_at ?? []).sort();
  const [narrative, system] = [toMacros(json.narrative), toMacros(json.formattingInstructions)];
  for (const chat of splitTree(nodes, undefined, () => id)) {
    yield {
      what: "conversation",
      source: path,
      name: title,
      hash: hashTree(chat, [narrative, system]),
      ...chat,
      head: {
        title,
        participants,
        ...(narrative !== "" && { scenario: narrative }),
        ...(system !== "" && { system_prompt: system }),
      },
      createdAt: times[0],
      updatedAt: times.at(-1),
    };
  }
}

/** The output that was active last is the text of a reply; the others are its variants. */
function convertMessage(message: JsonObject): TreeMessage[] | undefined {
  if (message.type === "human") {
    const content = asText(message.text);
    return content.trim() === "" ? undefined : [createTreeMessage({ role: "user", content, time: message.createdAt })];
  }
  if (message.type !== "ai") return undefined;
  const outputs = listObjects(message.outputs).filter(({ text }) => asText(text).trim() !== "");
  const shown = outputs.toSorted((a, b) => getActiveMs(b) - getActiveMs(a))[0];
  if (shown === undefined) return undefined;
  const others = outputs.filter((output) => output !== shown).map(({ text }) => ({ content: asText(text) }));
  return [{
    ...createTreeMessage({ role: "assistant", content: asText(shown.text), time: shown.createdAt }),
    ...(others.length > 0 && { others }),
  }];
}

function getActiveMs({ activeTimestamp, updatedAt }: JsonObject): number {
  return Date.parse(toIsoTime(activeTimestamp) ?? toIsoTime(updatedAt) ?? "") || 0;
}
