/**
 * Reads the chats of programs for local models: LM Studio, Jan, llama.cpp's page, Cherry Studio, KoboldCpp Lite and
 * text-generation-webui, and dumps of Character.AI. What their files contain is in docs/protocols/imports.md.
 */
import { asArray, asNumber, asObject, asText, type JsonObject } from "../../json/type_guards.ts";
import { buildTree, convertChat, type ListedMessage, type ProgramChat, type TreeMessage } from "../branching_chat.ts";
import type { ImportNote, ImportStep } from "../import_item.ts";
import { createChangedNote, createLeftOutNote, createRefusedNote, importReason } from "../import_report.ts";
import { deriveStableId, getStem, type ImportSource, parseJsonObject } from "../import_source.ts";
import { createTreeMessage, listObjects, readChatFiles, toIsoTime } from "./chat_files.ts";

/** Maximum size of a file of Jan. */
const MAX_JAN_BYTES = 64 * 1024 * 1024;
const JSON_FILE = /\.json$/i;

/** Counts parts of a chat that aren't imported, by kind. */
class Losses {
  readonly #kinds = new Map<string, number>();

  add(kind: string): void {
    this.#kinds.set(kind || "?", (this.#kinds.get(kind || "?") ?? 0) + 1);
  }

  /** Returns the note about them. */
  list(source: string): ImportNote[] {
    if (this.#kinds.size === 0) return [];
    const count = [...this.#kinds.values()].reduce((sum, one) => sum + one, 0);
    return [{
      ...createChangedNote(source, importReason("other_parts", { kinds: [...this.#kinds.keys()].join(", ") })),
      count,
    }];
  }
}

/** Joins texts that aren't empty. */
function joinTexts(texts: readonly string[]): string {
  return texts.filter((text) => text.trim() !== "").join("\n\n");
}

/** Yields the conversations of LM Studio: a file `….conversation.json` for each. */
export function readLmStudio(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => JSON_FILE.test(path), convertLmStudioChat);
}

function* convertLmStudioChat(chat: JsonObject, source: string): Generator<ImportStep> {
  const losses = new Losses();
  const list = listObjects(chat.messages).map((message, index): ListedMessage => {
    const versions = listObjects(message.versions).map((version) => convertLmStudioVersion(version, losses));
    const shown = versions[asNumber(message.currentlySelected) ?? 0] ?? versions[0];
    const others = versions.flatMap((version) => version === undefined || version === shown ? [] : [version]);
    return { id: `n${index}`, message: shown && { ...shown, ...(others.length > 0 && { others }) } };
  });
  const config = listObjects(asObject(chat.perChatPredictionConfig).fields);
  const prompt = config.find(({ key }) => key === "llm.prediction.systemPrompt");
  yield* convertChat({
    program: "lmstudio",
    key: `${asText(chat.createdAt)} ${asText(chat.name)}`,
    source,
    title: asText(chat.name),
    nodes: buildTree(list),
    system: asText(prompt?.value) || asText(chat.systemPrompt),
    createdAt: toIsoTime(chat.createdAt),
    updatedAt: toIsoTime(chat.assistantLastMessagedAt ?? chat.userLastMessagedAt ?? chat.createdAt),
    notes: losses.list(source),
  });
}

function convertLmStudioVersion(version: JsonObject, losses: Losses): TreeMessage | undefined {
  const texts: string[] = [];
  const reasoning: string[] = [];
  let model = asText(asObject(version.senderInfo).senderName);
  const addContent = (content: unknown, to: string[]) => {
    for (const part of listObjects(content)) {
      if (part.type === "text") to.push(asText(part.text));
      else losses.add(asText(part.type));
    }
  };
  addContent(version.content, texts);
  for (const step of listObjects(version.steps)) {
    if (step.type !== "contentBlock") {
      losses.add(asText(step.type));
      continue;
    }
    addContent(step.content, asObject(step.style).type === "thinking" ? reasoning : texts);
    model ||= asText(asObject(step.genInfo).indexedModelIdentifier);
  }
  const role = asText(version.role);
  const content = joinTexts(texts);
  const isKnown = ["user", "assistant", "system"].includes(role);
  if (!isKnown && content !== "") losses.add(role);
  if (!isKnown || content === "" && reasoning.length === 0) return undefined;
  return createTreeMessage({ role, content, reasoning: joinTexts(reasoning), time: undefined, model });
}

/** Yields the conversations of Jan: a folder with `thread.json` and `messages.jsonl` for each. */
export async function* readJan(source: ImportSource): AsyncGenerator<ImportStep> {
  const threads = source.files.filter(({ path }) => /(^|\/)thread\.json$/i.test(path));
  if (threads.length === 0) yield createRefusedNote("", "no_messages");
  const others = source.files.filter(({ path }) => !/(^|\/)(thread\.json|messages\.jsonl)$/i.test(path));
  if (others.length > 0) yield createLeftOutNote("", "other_files", others.length);
  for (const file of threads) {
    try {
      const path = file.path.replace(/thread\.json$/i, "messages.jsonl");
      const messages = source.files.find((one) => one.path === path);
      const lines = messages === undefined ? "" : new TextDecoder().decode(await source.read(messages, MAX_JAN_BYTES));
      yield* convertJanThread(parseJsonObject(await source.read(file, MAX_JAN_BYTES)), lines, file.path);
    } catch (error) {
      yield createRefusedNote(file.path, error);
    }
  }
}

function* convertJanThread(thread: JsonObject, lines: string, source: string): Generator<ImportStep> {
  const losses = new Losses();
  const list: ListedMessage[] = [];
  for (const [index, line] of lines.split("\n").entries()) {
    if (line.trim() === "") continue;
    let message: JsonObject;
    try {
      message = asObject(JSON.parse(line));
    } catch {
      yield createRefusedNote(source, "not_json");
      continue;
    }
    const texts = listObjects(message.content).flatMap((part) => {
      if (part.type === "text") return [asText(asObject(part.text).value) || asText(part.text)];
      losses.add(asText(part.type));
      return [];
    });
    const role = asText(message.role);
    const { reasoning, content } = splitThinking(joinTexts(texts));
    const isKnown = ["user", "assistant", "system"].includes(role);
    if (!isKnown && content !== "") losses.add(role);
    const isShown = isKnown && (content !== "" || reasoning !== "");
    list.push({
      id: asText(message.id) || `n${index}`,
      message: isShown ? createTreeMessage({ role, content, reasoning, time: message.created_at }) : undefined,
    });
  }
  const [assistant] = listObjects(thread.assistants);
  yield* convertChat({
    program: "jan",
    key: asText(thread.id) || source,
    source,
    title: asText(thread.title) || asText(asObject(thread.metadata).title),
    nodes: buildTree(list),
    system: asText(assistant?.instructions),
    createdAt: toIsoTime(thread.created),
    updatedAt: toIsoTime(thread.updated ?? thread.created),
    notes: losses.list(source),
  });
}

/** Splits the reasoning from a text that begins with `<think>`. */
function splitThinking(text: string): { reasoning: string; content: string } {
  const end = text.trimStart().startsWith("<think>") ? text.indexOf("</think>") : -1;
  if (end < 0) return { reasoning: "", content: text };
  const reasoning = text.slice(0, end).trim().slice("<think>".length).trim();
  return { reasoning, content: text.slice(end + "</think>".length).trim() };
}

/** Yields the conversations that llama.cpp's page exports: `{conv, messages}`, or a list of them. */
export function readLlamaCpp(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => JSON_FILE.test(path), convertLlamaCppChat);
}

function* convertLlamaCppChat(file: JsonObject, source: string): Generator<ImportStep> {
  const losses = new Losses();
  const { id, name, currNode, lastModified } = asObject(file.conv);
  const list = listObjects(file.messages).map((message): ListedMessage => {
    const parent = asText(message.parent);
    return {
      id: asText(message.id),
      parentId: parent === "" || parent === "-1" ? null : parent,
      message: message.type === "root" ? undefined : convertLlamaCppMessage(message, losses),
    };
  });
  yield* convertChat({
    program: "llamacpp",
    key: asText(id) || source,
    source,
    title: asText(name),
    nodes: buildTree(list),
    current: asText(currNode) || undefined,
    createdAt: toIsoTime(asArray(file.messages).map((message) => asObject(message).timestamp).find(asNumber)),
    updatedAt: toIsoTime(lastModified),
    notes: losses.list(source),
  });
}

function convertLlamaCppMessage(message: JsonObject, losses: Losses): TreeMessage | undefined {
  const files: string[] = [];
  const images: string[] = [];
  for (const { type, name, content, base64Url } of listObjects(message.extra)) {
    if (asText(content) !== "") files.push(`${asText(name)}:\n\n${asText(content)}`);
    else if (asText(base64Url).startsWith("data:image/")) images.push(asText(base64Url));
    else losses.add(asText(type));
  }
  const role = asText(message.role);
  const { reasoning, content } = splitThinking(asText(message.content));
  const text = joinTexts([content, ...files]);
  if (!["user", "assistant", "system"].includes(role) || text === "" && images.length === 0) return undefined;
  return createTreeMessage({
    role,
    content: withImages(text, images),
    reasoning: [message.reasoningContent, message.reasoning_content, message.thinking].map(asText).find(Boolean) ||
      reasoning,
    time: message.timestamp,
    model: asText(message.model),
  });
}

function withImages(text: string, images: readonly string[]): TreeMessage["content"] {
  if (images.length === 0) return text;
  return [
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...images.map((url) => ({ type: "image_url" as const, image_url: { url } })),
  ];
}

/** Yields the conversations of a backup of Cherry Studio: `data.json` in a ZIP. */
export function readCherryStudio(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => /(^|\/)data\.json$/i.test(path), convertCherryBackup);
}

function* convertCherryBackup(file: JsonObject, source: string): Generator<ImportStep> {
  const { topics, message_blocks: blocks } = asObject(file.indexedDB);
  const chats = listObjects(topics);
  if (chats.length === 0) return yield createRefusedNote(source, "no_messages");
  yield createLeftOutNote(source, "service_keys_left_out");
  const byId = new Map(listObjects(blocks).map((block) => [asText(block.id), block]));
  const names = readCherryTopics(asText(asObject(file.localStorage)["persist:cherry-studio"]));
  for (const topic of chats) {
    const losses = new Losses();
    const id = asText(topic.id);
    const { title = asText(topic.name), system = "" } = names.get(id) ?? {};
    const messages = listObjects(topic.messages);
    const known = new Set(messages.map((message) => asText(message.id)));
    const list = messages.map((message): ListedMessage => {
      const asked = asText(message.askId);
      return {
        id: asText(message.id),
        // Replies of several models to one question.
        ...(message.role === "assistant" && known.has(asked) && { parentId: asked }),
        message: convertCherryMessage(message, byId, losses),
      };
    });
    const name = `${source} ${title}`.trim();
    yield* convertChat({
      program: "cherrystudio",
      key: id,
      source,
      title,
      nodes: buildTree(list),
      current: list.at(-1)?.id,
      system,
      createdAt: toIsoTime(messages[0]?.createdAt),
      updatedAt: toIsoTime(messages.at(-1)?.createdAt),
      notes: losses.list(name),
      refusedAs: name,
    });
  }
}

function convertCherryMessage(
  message: JsonObject,
  blocks: ReadonlyMap<string, JsonObject>,
  losses: Losses,
): TreeMessage | undefined {
  const [texts, reasoning, images]: [string[], string[], string[]] = [[asText(message.content)], [], []];
  for (const id of asArray(message.blocks)) {
    const block = asObject(blocks.get(asText(id)));
    const { type, content, url } = block;
    if (type === "main_text") texts.push(asText(content));
    else if (type === "thinking") reasoning.push(asText(content));
    else if (type === "code") texts.push(`\`\`\`${asText(block.language)}\n${asText(content)}\n\`\`\``);
    else if (type === "image" && asText(url).startsWith("data:image/")) images.push(asText(url));
    else losses.add(asText(type));
  }
  const role = asText(message.role);
  const text = joinTexts(texts);
  if (!["user", "assistant", "system"].includes(role) || text === "" && images.length === 0) return undefined;
  const { name, id } = asObject(message.model);
  return createTreeMessage({
    role,
    content: withImages(text, images),
    reasoning: joinTexts(reasoning),
    time: message.createdAt,
    model: asText(name) || asText(id),
  });
}

/** Reads the names of topics and the prompts of their assistants, which are JSON texts within a JSON text. */
function readCherryTopics(stored: string): Map<string, { title: string; system: string }> {
  const found = new Map<string, { title: string; system: string }>();
  try {
    const { assistants } = asObject(JSON.parse(stored));
    for (const { prompt, topics } of listObjects(asObject(JSON.parse(asText(assistants))).assistants)) {
      for (const { id, name } of listObjects(topics)) {
        found.set(asText(id), { title: asText(name), system: asText(prompt) });
      }
    }
  } catch {
    // The chats are imported without their titles.
  }
  return found;
}

/** Yields the chat of a save of KoboldCpp Lite with its memory, author's note and World Info. */
export function readKoboldCpp(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => JSON_FILE.test(path), convertKoboldSave);
}

/** Marks of the speakers in a save of KoboldCpp Lite. */
const KOBOLD_MARK = /\{\{\[(INPUT|OUTPUT|SYSTEM)(?:_END)?\]\}\}/;
const KOBOLD_NOTE_DEPTH = 4;

function* convertKoboldSave(save: JsonObject, source: string): Generator<ImportStep> {
  if (!Array.isArray(save.actions)) return yield createRefusedNote(source, "no_messages");
  const settings = asObject(save.savedsettings);
  const parts = [asText(save.prompt), ...save.actions.map(asText)];
  const list = splitKoboldText(parts, settings).map(({ role, text, name }, index): ListedMessage => ({
    id: `n${index}`,
    message: { ...createTreeMessage({ role, content: text, time: undefined }), ...(name !== "" && { name }) },
  }));
  const title = asText(settings.chatopponent).split("||$||")[0]! || getStem(source.replace(/#\d+$/, ""));
  const key = `${title} ${parts.join("").slice(0, 500)}`;
  const entries = listObjects(save.worldinfo).map((entry) => ({
    keys: splitKeys(entry.key),
    secondary_keys: splitKeys(entry.keysecondary),
    selective: entry.selective === true && splitKeys(entry.keysecondary).length > 0,
    content: asText(entry.content),
    comment: asText(entry.comment),
    constant: entry.constant === true,
    enabled: true,
    insertion_order: 100,
    extensions: {},
  }));
  const bookId = deriveStableId("koboldcpp", "lorebook", key);
  if (entries.length > 0) {
    yield { what: "lorebook", id: bookId, source, name: title, book: { name: title, entries }, scope: "chat" };
  }
  const note = asText(save.authorsnote);
  const chat: ProgramChat = {
    program: "koboldcpp",
    key,
    source,
    title,
    nodes: buildTree(list),
    system: asText(save.memory),
  };
  for (const step of convertChat(chat)) {
    if (step.what === "conversation") {
      if (note.trim() !== "") step.head.note = { text: note, depth: KOBOLD_NOTE_DEPTH, role: "system" };
      if (entries.length > 0) step.head.lorebook_ids = [bookId];
    }
    yield step;
  }
  const images = Object.keys(asObject(save.completed_imgs_meta)).length;
  if (images > 0) yield { ...createChangedNote(source, "files_not_in_export"), count: images };
}

function splitKeys(value: unknown): string[] {
  return asText(value).split(",").map((key) => key.trim()).filter((key) => key !== "");
}

/** Splits a story into messages: at marks of instructions, at names of a chat, or at the actions of an adventure. */
function splitKoboldText(
  parts: readonly string[],
  settings: JsonObject,
): { role: string; text: string; name: string }[] {
  const whole = parts.join("");
  if (KOBOLD_MARK.test(whole)) {
    const [first = "", ...rest] = whole.split(new RegExp(KOBOLD_MARK, "g"));
    const found = [{ role: "assistant", text: first.trim(), name: "" }];
    for (let at = 0; at < rest.length; at += 2) {
      const role = rest[at] === "INPUT" ? "user" : rest[at] === "SYSTEM" ? "system" : "assistant";
      found.push({ role, text: (rest[at + 1] ?? "").trim(), name: "" });
    }
    return found.filter(({ text }) => text !== "");
  }
  const own = asText(settings.chatname);
  const names = [own, ...asText(settings.chatopponent).split("||$||")].filter((name) => name !== "");
  if (asNumber(settings.opmode) === 3 && names.length > 1) {
    const found: { role: string; text: string; name: string }[] = [];
    for (const line of whole.split("\n")) {
      const name = names.find((one) => line.startsWith(`${one}:`));
      const last = found.at(-1);
      if (name !== undefined) {
        found.push({ role: name === own ? "user" : "assistant", text: line.slice(name.length + 1).trim(), name });
      } else if (last !== undefined) last.text += `\n${line}`;
      else if (line.trim() !== "") found.push({ role: "assistant", text: line, name: "" });
    }
    return found.map(({ text, ...rest }) => ({ ...rest, text: text.trim() })).filter(({ text }) => text !== "");
  }
  return parts.flatMap((part) => {
    const text = part.trim();
    if (text === "") return [];
    return [{ role: text.startsWith("> ") ? "user" : "assistant", text: text.replace(/^> /, ""), name: "" }];
  });
}

/** Yields the chats of text-generation-webui: `logs/chat/<character>/<time>.json`. */
export function readTextGenWebUi(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => JSON_FILE.test(path), convertTextGenChat);
}

/** Stands for the user's message before a greeting. */
const VISIBLE_MARK = "<|BEGIN-VISIBLE-CHAT|>";

function* convertTextGenChat(chat: JsonObject, source: string): Generator<ImportStep> {
  const metadata = asObject(chat.metadata);
  const list = asArray(chat.internal).flatMap((pair, index): ListedMessage[] => {
    const [said, reply] = asArray(pair).map(asText);
    const ofUser = asObject(metadata[`user_${index}`]);
    const ofReply = asObject(metadata[`assistant_${index}`]);
    const others = listObjects(ofReply.versions).map(({ content }) => asText(content)).filter((text) => text !== reply);
    const messages: ListedMessage[] = [];
    if (said && said !== VISIBLE_MARK) {
      const message = createTreeMessage({ role: "user", content: said, time: ofUser.timestamp });
      messages.push({ id: `u${index}`, message });
    }
    if (reply) {
      const { reasoning, content } = splitThinking(reply);
      const message: TreeMessage = createTreeMessage({
        role: "assistant",
        content,
        reasoning,
        time: ofReply.timestamp,
        model: asText(ofReply.model_name),
      });
      if (others.length > 0) message.others = others.map((content) => ({ content }));
      messages.push({ id: `a${index}`, message });
    }
    return messages;
  });
  const path = source.replace(/#\d+$/, "");
  const folder = path.split("/").at(-2) ?? "";
  const times = list.flatMap(({ message }) => message?.created_at ?? []);
  yield* convertChat({
    program: "textgen",
    key: path.split("/").slice(-2).join("/"),
    source,
    title: [folder, getStem(path)].filter((text) => text !== "").join(" "),
    nodes: buildTree(list),
    createdAt: times[0],
    updatedAt: times.at(-1),
  });
}

/** Yields the chats of a dump of Character.AI: `histories`, or `turns` with candidates. */
export function readCharacterAi(source: ImportSource): AsyncGenerator<ImportStep> {
  return readChatFiles(source, (path) => JSON_FILE.test(path), convertCharacterAiDump);
}

function* convertCharacterAiDump(file: JsonObject, source: string): Generator<ImportStep> {
  const character = asText(asObject(asObject(file.info).character).name) || asText(asObject(file.character).name);
  const { histories = file.histories } = asObject(file.histories);
  const chats = Array.isArray(file.turns) ? [file] : [...listObjects(histories), ...listObjects(file.chats)];
  if (chats.length === 0) return yield createRefusedNote(source, "no_messages");
  for (const [index, chat] of chats.entries()) {
    const turns = listObjects(chat.turns);
    const list = turns.length > 0
      ? turns.toSorted((a, b) => asText(a.create_time) < asText(b.create_time) ? -1 : 1).map(convertTurn)
      : listObjects(chat.msgs).map(convertCharacterAiMessage);
    const times = list.flatMap(({ message }) => message?.created_at ?? []);
    const name = list.map(({ message }) => message?.role === "assistant" ? asText(message.name) : "").find(Boolean);
    yield* convertChat({
      program: "characterai",
      key: asText(chat.external_id) || asText(chat.chat_id) || `${source} ${index}`,
      source,
      title: character || name || getStem(source.replace(/#\d+$/, "")),
      nodes: buildTree(list),
      createdAt: toIsoTime(chat.created) ?? times[0],
      updatedAt: toIsoTime(chat.last_interaction) ?? times.at(-1),
    });
  }
}

function convertCharacterAiMessage(message: JsonObject, index: number): ListedMessage {
  const { is_human, name } = asObject(message.src);
  const content = asText(message.text);
  const role = is_human === true ? "user" : "assistant";
  return {
    id: asText(message.uuid) || `n${index}`,
    message: content.trim() === ""
      ? undefined
      : { ...createTreeMessage({ role, content, time: message.created }), ...(asText(name) !== "" && { name }) },
  };
}

function convertTurn(turn: JsonObject, index: number): ListedMessage {
  const { is_human, name } = asObject(turn.author);
  const candidates = listObjects(turn.candidates);
  const shown = candidates.find((one) => one.candidate_id === turn.primary_candidate_id) ?? candidates[0];
  const content = asText(shown?.raw_content);
  const others = candidates.filter((one) => one !== shown).map((one) => ({ content: asText(one.raw_content) }));
  const role = is_human === true ? "user" : "assistant";
  return {
    id: asText(asObject(turn.turn_key).turn_id) || `n${index}`,
    message: content.trim() === "" ? undefined : {
      ...createTreeMessage({ role, content, time: turn.create_time }),
      ...(asText(name) !== "" && { name }),
      ...(others.length > 0 && { others }),
    },
  };
}
