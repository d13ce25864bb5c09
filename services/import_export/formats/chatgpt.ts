/**
 * Reads ChatGPT's data export: `conversations.json` with a message tree for each chat, and the images next to it. See
 * docs/protocols/imports.md.
 */
import { sniffImage } from "../../attachments/images/image_header.ts";
import type { ContentPart } from "../../llm/chat_event.ts";
import { asNumber, asObject, asText, isJsonObject, type JsonObject, parseJsonBytes } from "../../json/type_guards.ts";
import { convertChat, type TreeNode } from "../branching_chat.ts";
import type { ImportStep } from "../import_item.ts";
import { createChangedNote, createLeftOutNote, importReason, type ImportReasonCode } from "../import_report.ts";
import {
  deriveStableId,
  getBaseName,
  getExtension,
  type ImportHost,
  type ImportSource,
  type SourceFile,
} from "../import_source.ts";
import { createTreeMessage, listObjects, readChatFiles, toIsoTime } from "./chat_files.ts";

const CHATS = /(^|\/)conversations[-\d]*( ?\(\d+\))?\.json$/i;
const IMAGE_ENDING = /^(png|jpe?g|webp|gif)$/i;
const MAX_IMAGE_BYTES = 50 * 1024 * 1024;

/** Images of an export, by the ID at the start of their names: `file-AbC123-photo.png`, `file_00ab-….webp`. */
class ExportedImages {
  readonly #files = new Map<string, SourceFile>();
  /** Files to import, by the names of their attachments. */
  readonly wanted = new Map<string, SourceFile>();

  constructor(files: readonly SourceFile[]) {
    for (const file of files) {
      const id = /^file[-_][A-Za-z0-9]+/.exec(getBaseName(file.path))?.[0];
      if (id !== undefined && IMAGE_ENDING.test(getExtension(file.path))) this.#files.set(id, file);
    }
  }

  /** Returns the attachment for `file-service://file-AbC123`; `undefined` if the export has no such file. */
  find(pointer: string): string | undefined {
    const id = /:\/\/(file[-_][A-Za-z0-9]+)/.exec(pointer)?.[1];
    const file = this.#files.get(id ?? "");
    if (file === undefined) return undefined;
    const name = `${deriveStableId("chatgpt", "image", id!)}.${getExtension(file.path).toLowerCase()}`;
    this.wanted.set(name, file);
    return name;
  }
}

/** Yields the conversations of the export, each after its images. */
export async function* readChatGpt(source: ImportSource, host: ImportHost): AsyncGenerator<ImportStep> {
  const images = new ExportedImages(source.files);
  const done = new Set<string>();
  let others = 0;
  const steps = readChatFiles(
    source,
    (path) => CHATS.test(path),
    (chat, path) => convertConversation(chat, path, images, host),
    { hasChats: looksLikeChats },
  );
  for await (const step of steps) {
    if (step.what === "note" && step.code === "other_files") {
      others = step.count ?? 0;
      continue;
    }
    for (const [name, file] of images.wanted) {
      images.wanted.delete(name);
      if (done.has(name)) continue;
      done.add(name);
      yield* readImage(source, name, file);
    }
    yield step;
  }
  if (others - done.size > 0) yield createLeftOutNote("", "other_files", others - done.size);
}

async function* readImage(source: ImportSource, name: string, file: SourceFile): AsyncGenerator<ImportStep> {
  const bytes = await source.read(file, MAX_IMAGE_BYTES).catch(() => undefined);
  if (bytes !== undefined && sniffImage(bytes) !== undefined) {
    yield { what: "attachment", id: name, name, source: file.path, bytes };
  } else yield createChangedNote(file.path, "image_unreadable");
}

/** Reports whether a renamed file has chats. */
function looksLikeChats(start: string): boolean {
  return /^\s*[[{]/.test(start) && /"mapping"\s*:\s*\{/.test(start);
}

/** What isn't imported as it was. */
type Losses = Map<ImportReasonCode, { count: number; kinds: Set<string> }>;

function addLoss(losses: Losses, code: ImportReasonCode, kind = "", count = 1): void {
  const loss = losses.get(code) ?? { count: 0, kinds: new Set() };
  losses.set(code, loss);
  loss.count += count;
  if (kind !== "" && loss.kinds.size < 10) loss.kinds.add(kind.slice(0, 40));
}

/** A text that the model wrote next to the chat. */
interface Canvas {
  name: string;
  type: string;
  content: string;
}

/** A node of the export, while it's converted. */
interface ExportNode {
  id: string;
  parent?: string;
  children: string[];
  message?: JsonObject;
  role: string;
  contentType: string;
  recipient: string;
  /** Thoughts, code and output, which belong to the next reply. */
  work?: string;
  canvas?: Canvas;
  /** What the message shows of its canvas. */
  canvasText?: string;
}

async function* convertConversation(
  chat: JsonObject,
  source: string,
  images: ExportedImages,
  host: ImportHost,
): AsyncGenerator<ImportStep> {
  const key = asText(chat.conversation_id) || asText(chat.id) || `${asText(chat.title)} ${asText(chat.create_time)}`;
  const losses: Losses = new Map();
  const exported = new Map(
    Object.entries(asObject(chat.mapping)).map(([id, value]) => [id, parseNode(id, value)] as const),
  );
  for (const node of exported.values()) node.work = formatWork(node);
  for (const node of exported.values()) {
    if (node.role === "assistant" && node.recipient.startsWith("canmore.")) {
      node.canvasText = await convertCanvas(node, exported, losses, host);
    }
  }
  const nodes = new Map<string, TreeNode>();
  for (const node of exported.values()) {
    const { id, parent, children } = node;
    nodes.set(id, { id, parent, children, message: convertMessage(node, exported, images, losses) });
  }
  yield* convertChat({
    program: "chatgpt",
    key,
    source,
    title: asText(chat.title),
    nodes,
    current: asText(chat.current_node),
    createdAt: toIsoTime(chat.create_time),
    updatedAt: toIsoTime(chat.update_time),
    notes: [...losses].map(([code, { count, kinds }]) => ({
      ...createChangedNote(source, importReason(code, kinds.size > 0 ? { kinds: [...kinds].join(", ") } : undefined)),
      count,
    })),
  });
}

function parseNode(id: string, value: unknown): ExportNode {
  const node = asObject(value);
  const message = isJsonObject(node.message) ? node.message : undefined;
  return {
    id,
    parent: asText(node.parent) || undefined,
    children: Array.isArray(node.children) ? node.children.map(asText) : [],
    message,
    role: asText(asObject(message?.author).role),
    contentType: asText(asObject(message?.content).content_type),
    recipient: asText(message?.recipient) || "all",
  };
}

/** Content types of visible messages. */
const TEXT_TYPES = ["text", "multimodal_text", "code"];
/** Content types that are about the chat, or the raw results of tools whose reply follows. */
const INTERNAL_TYPES = [
  ...["user_editable_context", "model_editable_context", "tether_browsing_display", "tether_quote", "system_error"],
  ...["super_widget", "app_pairing_content", "reasoning_recap", "sonic_webpage", "computer_output", ""],
];

/** Returns thoughts, code to run and its output; `undefined` for other messages. */
function formatWork({ role, contentType, recipient, message }: ExportNode): string | undefined {
  const content = asObject(message?.content);
  if (contentType === "thoughts") {
    return listObjects(content.thoughts).map(({ summary, content }) =>
      [asText(summary) && `**${asText(summary)}**`, asText(content)].filter((text) => text !== "").join("\n\n")
    ).join("\n\n");
  }
  if (contentType === "execution_output") return fence(asText(content.text), "");
  if (role !== "assistant" || recipient === "all" || recipient.startsWith("canmore.")) return undefined;
  const code = asText(content.text) || joinTexts(content);
  const language = asText(content.language);
  return code === "" ? undefined : fence(code, language === "unknown" || language === "" ? "" : language);
}

function fence(text: string, language: string): string {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map(({ length }) => length));
  const marks = "`".repeat(longest + 1);
  return text.trim() === "" ? "" : `${marks}${language}\n${text}\n${marks}`;
}

function joinTexts({ parts }: JsonObject): string {
  return Array.isArray(parts) ? parts.filter((part) => typeof part === "string").join("\n\n") : "";
}

/** Maximum number of messages before a reply that are searched for its thoughts, and for its canvas. */
const MAX_WORK = 1_000;

function convertMessage(
  node: ExportNode,
  nodes: ReadonlyMap<string, ExportNode>,
  images: ExportedImages,
  losses: Losses,
): TreeNode["message"] {
  const { message, role, contentType, recipient } = node;
  if (message === undefined) return;
  const content = asObject(message.content);
  const metadata = asObject(message.metadata);
  const facts: { time: unknown; model: string } = { time: message.create_time, model: asText(metadata.model_slug) };
  if (role === "assistant" && recipient.startsWith("canmore.")) {
    const text = node.canvasText;
    return text === undefined ? undefined : createTreeMessage({ role, content: text, ...facts });
  }
  if (node.work !== undefined) {
    // Without a reply after it, it's the reply.
    const isLast = node.children.length === 0 && node.work !== "";
    return isLast
      ? createTreeMessage({ role: "assistant", content: collectWork(node, nodes, node.work), ...facts })
      : undefined;
  }
  if (metadata.is_visually_hidden_from_conversation === true) return;
  const hasImages = contentType === "multimodal_text" && role === "tool";
  if (!["user", "assistant", "system"].includes(role) && !hasImages) {
    if (!TEXT_TYPES.includes(contentType) && !INTERNAL_TYPES.includes(contentType)) {
      addLoss(losses, "chatgpt_unknown", contentType);
    }
    return;
  }
  if (!TEXT_TYPES.includes(contentType)) {
    if (!INTERNAL_TYPES.includes(contentType)) addLoss(losses, "chatgpt_unknown", contentType);
    return;
  }
  const files = listObjects(metadata.attachments).filter(({ mime_type, mimeType }) =>
    !/^image\//.test(asText(mime_type) || asText(mimeType))
  );
  for (const { name } of files) addLoss(losses, "chatgpt_files", asText(name));
  const parts = convertParts(content, metadata, images, losses);
  if (parts.length === 0) return;
  if (hasImages && parts.every(({ type }) => type === "text")) return; // The result of a tool
  const isText = parts.every(({ type }) => type === "text");
  const shownRole = hasImages ? "assistant" : role;
  const reasoning = shownRole === "assistant" ? collectWork(node, nodes) : "";
  const converted = createTreeMessage({ role: shownRole, content: "", reasoning, ...facts });
  const joined = parts.map((part) => part.type === "text" ? part.text : "").join("\n\n");
  return { ...converted, content: isText ? joined : parts };
}

/** Returns thoughts, code and output between a reply and the message before it. */
function collectWork(node: ExportNode, nodes: ReadonlyMap<string, ExportNode>, own = ""): string {
  const found = [own];
  let before = nodes.get(node.parent ?? "");
  for (let steps = 0; before !== undefined && steps < MAX_WORK; steps++) {
    const isShown = before.work === undefined && before.message !== undefined && before.recipient === "all" &&
      ["user", "assistant"].includes(before.role) && TEXT_TYPES.includes(before.contentType);
    if (isShown) break;
    if (before.work) found.push(before.work);
    before = nodes.get(before.parent ?? "");
  }
  return found.filter((text) => text !== "").reverse().join("\n\n");
}

function convertParts(
  content: JsonObject,
  metadata: JsonObject,
  images: ExportedImages,
  losses: Losses,
): ContentPart[] {
  const list = Array.isArray(content.parts) ? content.parts : [asText(content.text)];
  return list.flatMap((part): ContentPart[] => {
    if (typeof part === "string") {
      const text = replaceCitations(part, metadata, losses);
      return text.trim() === "" ? [] : [{ type: "text", text }];
    }
    const { content_type: type, text, asset_pointer: pointer } = asObject(part);
    if (type === "audio_transcription") return asText(text) === "" ? [] : [{ type: "text", text: asText(text) }];
    if (type === "image_asset_pointer") {
      const name = images.find(asText(pointer));
      if (name !== undefined) return [{ type: "image_url", image_url: { url: `/api/attachments/${name}` } }];
      addLoss(losses, "chatgpt_images");
    } else if (/audio|video/.test(asText(type))) addLoss(losses, "chatgpt_audio");
    else if (isJsonObject(part)) addLoss(losses, "chatgpt_unknown", asText(type));
    return [];
  });
}

/** Replaces the marks of citations by their links. Marks of the newer kind are between private characters. */
function replaceCitations(text: string, metadata: JsonObject, losses: Losses): string {
  let cited = text;
  const old = listObjects(metadata.citations).map(({ start_ix, end_ix, metadata: source }) =>
    ({
      start: asNumber(start_ix) ?? -1,
      end: asNumber(end_ix) ?? -1,
      ...asObject(source),
    }) as { start: number; end: number; title?: unknown; url?: unknown }
  ).sort((a, b) => b.start - a.start);
  for (const { start, end, title, url } of old) {
    const mark = start >= 0 ? cited.slice(start, end) : "";
    if (!/^【[^】]*】$/.test(mark)) continue;
    cited = cited.slice(0, start) + formatLinks([{ title, url }]) + cited.slice(end);
  }
  for (const { matched_text: mark, alt, items, safe_urls: urls } of listObjects(metadata.content_references)) {
    if (!/[\ue200-\ue206]/.test(asText(mark))) continue;
    const links = formatLinks(listObjects(items)) ||
      formatLinks((Array.isArray(urls) ? urls : []).map((url) => ({ url })));
    cited = cited.replaceAll(asText(mark), () => asText(alt).trim() || links);
  }
  const rest = cited.match(/\ue200[^\ue201]*\ue201/g) ?? [];
  if (rest.length > 0) addLoss(losses, "chatgpt_citations", "", rest.length);
  return cited.replace(/\ue200[^\ue201]*\ue201/g, "").replace(/[\ue200-\ue206]/g, "").replaceAll("  ([", " ([");
}

function formatLinks(sources: readonly { title?: unknown; url?: unknown }[]): string {
  const links = sources.filter(({ url }) => /^https?:\/\//.test(asText(url))).map(({ title, url }) => {
    const name = (asText(title) || new URL(asText(url), "http://x").host).replace(/[[\]\s]+/g, " ").trim();
    return `[${name}](${asText(url).replaceAll("(", "%28").replaceAll(")", "%29").replace(/\s/g, "%20")})`;
  });
  return links.length === 0 ? "" : ` (${links.join(", ")})`;
}

/** Returns a canvas as a titled block: when it's written, and after each change. */
async function convertCanvas(
  node: ExportNode,
  nodes: ReadonlyMap<string, ExportNode>,
  losses: Losses,
  host: ImportHost,
): Promise<string | undefined> {
  const content = asObject(node.message?.content);
  const json = parseLoosely(asText(content.text) || joinTexts(content));
  if (node.recipient === "canmore.create_textdoc") {
    node.canvas = { name: asText(json.name), type: asText(json.type), content: asText(json.content) };
    return formatCanvas(node.canvas);
  }
  if (node.recipient === "canmore.update_textdoc") {
    const before = findCanvas(node, nodes);
    const updates = listObjects(json.updates);
    let text = before?.content ?? "";
    for (const { pattern, replacement, multiple } of updates) {
      const edit = { pattern: asText(pattern), replacement: asText(replacement), isMultiple: multiple === true };
      // The whole text is replaced by a text that is no template.
      const changed = /^\(?\.\*\)?$/.test(edit.pattern) ? edit.replacement : await host.edit(text, edit);
      if (changed === undefined) addLoss(losses, "chatgpt_canvas_edits", edit.pattern);
      else text = changed;
    }
    if (text === (before?.content ?? "")) return undefined;
    node.canvas = { name: before?.name ?? "", type: before?.type ?? "", content: text };
    return formatCanvas(node.canvas);
  }
  const comments = listObjects(json.comments).map(({ comment }) => asText(comment)).filter((text) => text !== "");
  if (comments.length > 0) return comments.map((text) => `> ${text.replaceAll("\n", "\n> ")}`).join("\n\n");
  addLoss(losses, "chatgpt_unknown", node.recipient);
  return undefined;
}

function parseLoosely(text: string): JsonObject {
  try {
    return asObject(parseJsonBytes(new TextEncoder().encode(text)));
  } catch {
    return {};
  }
}

function findCanvas(node: ExportNode, nodes: ReadonlyMap<string, ExportNode>): Canvas | undefined {
  let before = nodes.get(node.parent ?? "");
  for (let steps = 0; before !== undefined && steps < MAX_WORK; steps++) {
    if (before.canvas !== undefined) return before.canvas;
    before = nodes.get(before.parent ?? "");
  }
  return undefined;
}

function formatCanvas({ name, type, content }: Canvas): string | undefined {
  if (content.trim() === "") return undefined;
  const title = name === "" ? "" : `**${name}**\n\n`;
  return title + fence(content, type === "document" ? "markdown" : /^code\/(\w+)$/.exec(type)?.[1] ?? "");
}
