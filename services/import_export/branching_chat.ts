/**
 * Converts message trees, like those of ChatGPT and Open WebUI. Sibling user messages become versions of one message,
 * each with its continuation. Sibling replies become variants of one reply; if another variant was continued, that
 * branch becomes a separate conversation.
 */
import { deriveStableId, hashContent } from "./import_source.ts";
import type {
  ImportedContinuation,
  ImportedConversation,
  ImportedMessage,
  ImportedText,
  ImportStep,
} from "./import_item.ts";
import { createRefusedNote } from "./import_report.ts";

/** A node of a message tree. */
export interface TreeNode {
  id: string;
  parent?: string;
  children: string[];
  /** Absent for a hidden node: its children follow its parent's message. */
  message?: TreeMessage;
}

/** The message of a node. */
export interface TreeMessage extends ImportedText {
  role: string;
  created_at?: string;
  /** Earlier texts that aren't nodes. */
  others?: ImportedText[];
  [field: string]: unknown;
}

/** A conversation created from a tree. */
export interface TreeChat extends Pick<ImportedConversation, "id" | "messages" | "continuations"> {
  forkedFrom?: { conversation_id: string; message_id: string };
}

/** A message of a list, with its position in the tree. */
export interface ListedMessage {
  id: string;
  /** By default, the message follows the one before it. `null` for a message that follows none. */
  parentId?: string | null;
  /** Absent for messages that aren't shown, such as tool calls. */
  message: TreeMessage | undefined;
}

/** A chat of another program. */
export interface ProgramChat {
  program: string;
  /** Identifies the chat in the program, even in the next export. */
  key: string;
  /** Where the chat was found. */
  source: string;
  title: string;
  nodes: ReadonlyMap<string, TreeNode>;
  /** Id of the last active node; if unknown, the newest leaf. */
  current?: string;
  /** System prompt; `undefined` for a program without one. */
  system?: string;
  createdAt?: string;
  updatedAt?: string;
  /** Notes about the chat, reported before its conversations. */
  notes?: ImportStep[];
  /** Name of the chat in the report if it isn't imported, instead of `source`. */
  refusedAs?: string;
}

/** A node with a message. */
interface ShownMessages {
  id: string;
  message: TreeMessage;
  parent?: ShownMessages;
  children: ShownMessages[];
}

/** A conversation to create: a copy of the path to a node, and the branches there. */
interface Branch extends Pick<TreeChat, "id" | "forkedFrom"> {
  parent?: ShownMessages;
  group: ShownMessages[];
}

/**
 * Builds a tree from messages that name their parent, wherever it is in the list, or only follow one another. A repeated
 * ID is left out.
 */
export function buildTree(list: Iterable<ListedMessage>): Map<string, TreeNode> {
  const nodes = new Map<string, TreeNode>();
  const named = new Map<string, ListedMessage>();
  for (const one of list) if (one.id !== "" && !named.has(one.id)) named.set(one.id, one);
  let previous: string | undefined;
  for (const { id, parentId, message } of named.values()) {
    const parent = parentId === null ? undefined : parentId !== undefined && named.has(parentId) ? parentId : previous;
    nodes.set(id, { id, parent, children: [], message });
    previous = id;
  }
  for (const { id, parent } of nodes.values()) if (parent !== undefined) nodes.get(parent)!.children.push(id);
  return nodes;
}

/** Yields the conversations of a chat without participants, or a note that it has no messages. */
export function* convertChat(chat: ProgramChat): Generator<ImportStep> {
  const { program, key, source, title, nodes, current, system, createdAt, updatedAt, notes = [] } = chat;
  if (![...nodes.values()].some(({ message }) => message !== undefined)) {
    return yield createRefusedNote(chat.refusedAs ?? source, "no_messages");
  }
  yield* notes;
  const deriveId = (node?: string) => deriveStableId(program, key, ...(node === undefined ? [] : [node]));
  for (const { forkedFrom, ...one } of splitTree(nodes, current, deriveId)) {
    yield {
      what: "conversation",
      source,
      name: title,
      hash: hashTree(one, system),
      ...one,
      head: {
        title,
        participants: [],
        ...(system && { system_prompt: system }),
        ...(forkedFrom && { forked_from: forkedFrom }),
      },
      createdAt,
      updatedAt,
    };
  }
}

/**
 * Yields the conversations of a tree: first the active one, then those that branch off at replies.
 *
 * @param current Id of the last active node; if unknown, the newest leaf.
 * @param deriveId Returns the id of the conversation that starts with a node, or of the first one.
 */
export function* splitTree(
  nodes: ReadonlyMap<string, TreeNode>,
  current: string | undefined,
  deriveId: (nodeId?: string) => string,
): Generator<TreeChat> {
  const { roots, path } = listShown(nodes, current);
  const branches: Branch[] = [{ id: deriveId(), group: roots }];
  for (let branch = branches.shift(); branch !== undefined; branch = branches.shift()) {
    const { chat, further } = createChat(branch, path);
    yield chat;
    branches.push(...further.map((one) => ({ ...one, id: deriveId(one.group[0]!.id) })));
  }
}

/** Returns a hash that is the same each time the same conversation is read. */
export function hashTree({ messages, continuations }: TreeChat, more?: unknown): string {
  const content = more === undefined ? messages : [more, messages];
  return hashContent(continuations === undefined ? content : [content, continuations]);
}

function createChat(
  { id, forkedFrom, parent, group }: Branch,
  path: ReadonlySet<ShownMessages>,
): { chat: TreeChat; further: Omit<Branch, "id">[] } {
  let count = 0;
  const createId = () => `${id}-${count++}`;
  const messages: ImportedMessage[] = [];
  const continuations: ImportedContinuation[] = [];
  const further: Omit<Branch, "id">[] = [];
  for (const { message } of findPath(parent)) messages.push(toMessage(message, createId(), [message], 0));
  const waiting = [{ messages, parent, group, before: messages.at(-1)?.id }];
  for (let list = waiting.shift(); list !== undefined; list = waiting.shift()) {
    let { parent, group, before } = list;
    while (group.length > 0) {
      const shown = group.find((one) => path.has(one)) ?? group.at(-1)!;
      const versions = group.filter(({ message }) => message.role === shown.message.role);
      const mid = createId();
      const variants = versions.map(({ message }) => message);
      list.messages.push(toMessage(shown.message, mid, variants, versions.indexOf(shown)));
      const origin = { conversation_id: id, message_id: before ?? mid };
      for (const [n, version] of versions.entries()) {
        if (version === shown || version.children.length === 0) continue;
        if (shown.message.role === "user") {
          const continuation = { message_id: mid, n, messages: [] };
          continuations.push(continuation);
          waiting.push({ messages: continuation.messages, parent: version, group: version.children, before: mid });
        } else further.push({ parent, group: [version], forkedFrom: origin });
      }
      const others = group.filter((one) => !versions.includes(one));
      for (const [, ofRole] of Map.groupBy(others, ({ message }) => message.role)) {
        further.push({ parent, group: ofRole, forkedFrom: origin });
      }
      [parent, group, before] = [shown, shown.children, mid];
    }
  }
  const chat = {
    id,
    messages,
    ...(continuations.length > 0 && { continuations }),
    ...(forkedFrom && { forkedFrom }),
  } satisfies TreeChat;
  return { chat, further };
}

/** Creates a message whose variants are the texts of sibling nodes. */
function toMessage(
  { others: _, ...message }: TreeMessage,
  id: string,
  versions: TreeMessage[],
  active: number,
): ImportedMessage {
  const variants = [...versions.map(toText), ...versions.flatMap(({ others = [] }) => others)];
  return { ...message, id, ...(variants.length > 1 && { variants, active_variant: active }) };
}

/** Returns the messages of a tree without hidden nodes, and those on the active path. */
function listShown(
  nodes: ReadonlyMap<string, TreeNode>,
  current: string | undefined,
): { roots: ShownMessages[]; path: ReadonlySet<ShownMessages> } {
  const children = listChildren(nodes);
  const last = nodes.get(current ?? "") ?? [...nodes.values()].findLast(({ id }) => !children.get(id)?.length);
  const roots: ShownMessages[] = [];
  const shown = new Map<string, ShownMessages>();
  const seen = new Set<string>();
  const walk = (root: TreeNode) => {
    const waiting: { node: TreeNode; parent?: ShownMessages }[] = [{ node: root }];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { node, parent } = next;
      if (seen.has(node.id)) continue;
      seen.add(node.id);
      let own = parent;
      if (node.message !== undefined) {
        own = { id: node.id, message: node.message, parent, children: [] };
        (parent?.children ?? roots).push(own);
      }
      if (own !== undefined) shown.set(node.id, own);
      for (const child of (children.get(node.id) ?? []).toReversed()) waiting.push({ node: child, parent: own });
    }
  };
  // In a damaged file, a message can be its own ancestor. Nodes without a path from a root start at their oldest node.
  for (const node of nodes.values()) if (nodes.get(node.parent ?? "") === undefined) walk(node);
  for (const node of [...(last ? [last] : []), ...nodes.values()]) {
    if (!seen.has(node.id)) walk(findOldest(nodes, node));
  }
  const path = new Set<ShownMessages>();
  let end = last && shown.get(last.id);
  while (end !== undefined && end.children.length > 0) end = end.children.at(-1);
  for (const one of findPath(end)) path.add(one);
  return { roots, path };
}

/** Returns the children of each node in order. */
function listChildren(nodes: ReadonlyMap<string, TreeNode>): Map<string, TreeNode[]> {
  const children = new Map<string, TreeNode[]>();
  const byParent = Map.groupBy(nodes.values(), ({ parent }) => parent ?? "");
  for (const node of nodes.values()) {
    const listed = node.children.map((id) => nodes.get(id)).filter((child) => child?.parent === node.id);
    const own = new Set(listed.filter((child) => child !== undefined));
    for (const child of byParent.get(node.id) ?? []) own.add(child);
    children.set(node.id, [...own]);
  }
  return children;
}

function findOldest(nodes: ReadonlyMap<string, TreeNode>, node: TreeNode): TreeNode {
  const seen = new Set<TreeNode>();
  let oldest = node;
  for (let at: TreeNode | undefined = node; at !== undefined && !seen.has(at); at = nodes.get(at.parent ?? "")) {
    seen.add(at);
    oldest = at;
  }
  return oldest;
}

function findPath(end: ShownMessages | undefined): ShownMessages[] {
  const way: ShownMessages[] = [];
  for (let at = end; at !== undefined; at = at.parent) way.push(at);
  return way.reverse();
}

function toText({ content, reasoning, model, created_at }: TreeMessage): ImportedText {
  return {
    content,
    ...(reasoning !== undefined && { reasoning }),
    ...(model !== undefined && { model }),
    ...(created_at !== undefined && { updated_at: created_at }),
  };
}
