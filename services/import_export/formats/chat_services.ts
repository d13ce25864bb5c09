/** Reads Claude's export: conversations, the documents of projects, and memories. */
import { AppError } from "../../errors.ts";
import {
  asObject,
  asText,
  findJsonFault,
  getOwn,
  isJsonObject,
  type JsonObject,
  parseJsonBytes,
} from "../../json/type_guards.ts";
import { EVERYTHING, MAX_MEMORY_TEXT } from "../../memories/memory.ts";
import { createTreeMessage, listObjects, readChatFiles, toIsoTime } from "./chat_files.ts";
import { deriveStableId, type ImportSource, type SourceFile } from "../import_source.ts";
import type { ImportStep } from "../import_item.ts";
import { buildTree, convertChat, type TreeNode } from "../branching_chat.ts";
import { createChangedNote, createRefusedNote, importReason } from "../import_report.ts";

const ROLES: Record<string, string> = { human: "user", assistant: "assistant" };
/** The parent of a first message. */
const CLAUDE_ROOT = "00000000-0000-4000-8000-000000000000";
/** Exports without parts have this in the text for each call of a tool. */
const CLAUDE_PLACEHOLDER = /\s*```\nThis block is not supported on your current device yet\.\n```\s*/g;

/** Yields the conversations of Claude's data export: `conversations.json` with a list of messages for each. */
export async function* readClaude(source: ImportSource): AsyncGenerator<ImportStep> {
  const isConversations = (path: string) => /(^|\/)conversations[-\w]*\.json$/.test(path);
  const isReadElsewhere = (path: string) => PROJECTS.test(path) || MEMORIES.test(path);
  const hasChats = (start: string) => /"chat_messages"\s*:/.test(start);
  yield* readChatFiles(source, isConversations, convertClaudeConversation, { isReadElsewhere, hasChats });
  const projects = new Map<string, string>();
  for (const file of source.files.filter(({ path }) => PROJECTS.test(path))) {
    yield* readObjects(source, file, (project) => convertProject(project, file.path, projects));
  }
  for (const file of source.files.filter(({ path }) => MEMORIES.test(path))) {
    yield* readObjects(source, file, (memory) => convertMemories(memory, file.path, projects));
  }
}

/** Files of projects and of memories: one with a list, or a folder with a file for each. */
const PROJECTS = /(^|\/)projects(\.json$|\/[^/]+\.json$)/;
const MEMORIES = /(^|\/)memories(\.json$|\/[^/]+\.json$)/;
const MAX_BYTES = 64 * 1024 * 1024;

async function* readObjects(
  source: ImportSource,
  file: SourceFile,
  convert: (object: JsonObject) => Iterable<ImportStep>,
): AsyncGenerator<ImportStep> {
  try {
    const json = parseJsonBytes(await source.read(file, MAX_BYTES));
    const fault = findJsonFault(json);
    if (fault !== undefined) throw new AppError("unprocessable", fault);
    for (const object of isJsonObject(json) ? [json] : listObjects(json)) yield* convert(object);
  } catch (error) {
    yield error instanceof AppError ? createRefusedNote(file.path, error) : createRefusedNote(file.path, "not_json");
  }
}

/** A project's documents are imported; its instructions have no place. */
function* convertProject(project: JsonObject, source: string, names: Map<string, string>): Generator<ImportStep> {
  const [id, name] = [asText(project.uuid), asText(project.name)];
  names.set(id, name);
  if (asText(project.prompt_template).trim() !== "") {
    yield createChangedNote(source, importReason("claude_instructions", { project: name }));
  }
  for (const [index, { uuid, filename, content }] of listObjects(project.docs).entries()) {
    if (asText(content) === "") continue;
    yield {
      what: "document",
      id: deriveStableId("claude", "document", id, asText(uuid) || `${index}`),
      source,
      name: asText(filename) || name,
      contentType: "text/plain",
      usedBy: [],
      bytes: new TextEncoder().encode(asText(content)),
    };
  }
}

/** What Claude remembers becomes notes: one about all conversations, and one for each project. */
function* convertMemories(
  { conversations_memory: text, project_memories: ofProjects }: JsonObject,
  source: string,
  projects: ReadonlyMap<string, string>,
): Generator<ImportStep> {
  const notes = [["", asText(text)], ...Object.entries(asObject(ofProjects)).map(([id, one]) => [id, asText(one)])];
  for (const [project = "", note = ""] of notes) {
    if (note.trim() === "") continue;
    const heading = project === "" ? "" : `${projects.get(project) || project}:\n`;
    const pieces = splitNote(note, MAX_MEMORY_TEXT - heading.length);
    for (const [index, piece] of pieces.entries()) {
      yield {
        what: "memory",
        id: deriveStableId("claude", "memory", project, `${index}`, piece),
        source,
        name: piece.slice(0, 100),
        fields: { text: heading + piece, scope: EVERYTHING, pinned: false },
      };
    }
  }
}

/** Splits a text at paragraphs, and where these are longer than a note, anywhere. */
function splitNote(text: string, maxChars: number): string[] {
  const pieces: string[] = [];
  for (const paragraph of text.split(/\n{2,}/).map((one) => one.trim()).filter((one) => one !== "")) {
    const last = pieces.at(-1);
    if (last !== undefined && last.length + paragraph.length + 2 <= maxChars) {
      pieces[pieces.length - 1] = `${last}\n\n${paragraph}`;
    } else {
      for (let at = 0; at < paragraph.length; at += maxChars) pieces.push(paragraph.slice(at, at + maxChars));
    }
  }
  return pieces;
}

function* convertClaudeConversation(chat: JsonObject, source: string): Generator<ImportStep> {
  const list = listObjects(chat.chat_messages);
  const nodes = buildTree(list.map((message, index) => {
    const parent = asText(message.parent_message_uuid);
    return {
      id: asText(message.uuid) || `n${index}`,
      parentId: parent === CLAUDE_ROOT ? null : parent || undefined,
      message: convertClaudeMessage(message),
    };
  }));
  const files = list.reduce((sum, { files }) => sum + (Array.isArray(files) ? files.length : 0), 0);
  const edits = list.flatMap(({ content }) => listObjects(content)).filter(isArtifactEdit).length;
  const title = asText(chat.name);
  const key = asText(chat.uuid) || `${title} ${asText(chat.created_at)}`;
  const current = asText(chat.current_leaf_message_uuid) || asText(list.at(-1)?.uuid) || undefined;
  yield* convertChat({
    program: "claude",
    key,
    source,
    title,
    nodes,
    current,
    createdAt: toIsoTime(chat.created_at),
    updatedAt: toIsoTime(chat.updated_at),
    notes: [
      ...(files > 0 ? [{ ...createChangedNote(source, "files_not_in_export"), count: files }] : []),
      ...(edits > 0 ? [{ ...createChangedNote(source, "artifact_edits"), count: edits }] : []),
    ],
  });
}

function convertClaudeMessage(message: JsonObject): TreeNode["message"] {
  const role = getOwn(ROLES, asText(message.sender));
  const parts = listObjects(message.content);
  const texts = parts.length > 0
    ? parts.map((part) => part.type === "tool_use" ? artifactText(part) : part.type === "text" ? asText(part.text) : "")
    : [asText(message.text).replace(CLAUDE_PLACEHOLDER, "\n\n").trim()];
  const reasoningParts = parts.flatMap((part) => part.type === "thinking" ? [asText(part.thinking)] : []);
  const reasoning = reasoningParts.filter((text) => text !== "").join("\n\n");
  // The export contains the text of attachments, which the reply refers to.
  const attached = listObjects(message.attachments).flatMap(({ file_name, extracted_content }) =>
    asText(extracted_content) === "" ? [] : [`${asText(file_name)}:\n\n${asText(extracted_content)}`]
  );
  const content = [...texts, ...attached].filter((text) => text.trim() !== "").join("\n\n");
  if (role === undefined || content === "") return;
  return createTreeMessage({ role, content, reasoning, time: message.created_at });
}

/** An artifact, or a file that Claude wrote, is part of the reply but in the export the input of a tool. */
function artifactText({ name, input }: JsonObject): string {
  const { title, content, path, file_text } = asObject(input);
  const [heading, text] = name === "artifacts"
    ? [asText(title), asText(content)]
    : name === "create_file"
    ? [asText(path).split("/").at(-1)!, asText(file_text)]
    : ["", ""];
  if (text.trim() === "") return "";
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map(({ length }) => length));
  const fence = "`".repeat(longest + 1);
  return `${heading && `**${heading}**\n\n`}${fence}\n${text}\n${fence}`;
}

/** Edits name a text to replace; only whole artifacts are imported. */
function isArtifactEdit({ type, name, input }: JsonObject): boolean {
  return type === "tool_use" && (name === "artifacts" || name === "str_replace") && "old_str" in asObject(input);
}
