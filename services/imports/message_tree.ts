/** Conversations that are trees, as ChatGPT and Open WebUI keep them: one path is the chat, what lies beside it its other texts. */
import type { ImportedMessage, ImportedText } from "./import_item.ts";

/** One message of a tree. */
export interface TreeNode {
  id: string;
  parent?: string;
  children: string[];
  /** Absent for a node that shows nothing: it stands for its children. */
  message?: TreeMessage;
}

/** The message of a node. */
export interface TreeMessage extends ImportedText {
  role: string;
  created_at?: string;
  /** Texts that it had before and that are no nodes. */
  others?: ImportedText[];
  [field: string]: unknown;
}

/** What became of a tree. */
export interface TreeChat {
  messages: ImportedMessage[];
  /** Messages that lie on other branches, below another text than the active one. */
  beside: number;
}

/**
 * Gives the path that ends at a node; alternatives of the same role become variants.
 *
 * @param current The last message shown; the newest leaf where it is none of the nodes.
 * @param id Gives the id of the n-th message.
 */
export function chatOfTree(
  nodes: ReadonlyMap<string, TreeNode>,
  current: string | undefined,
  id: (index: number) => string,
): TreeChat {
  const path = pathTo(nodes, current);
  const messages: ImportedMessage[] = [];
  let shown = 0;
  for (const node of path) {
    if (node.message === undefined) continue;
    const texts = siblingsOf(nodes, node).filter(({ message }) => message?.role === node.message!.role);
    const { others = [], ...message } = node.message;
    const variants = [...texts.map(({ message }) => textOf(message!)), ...others];
    const active = texts.indexOf(node);
    messages.push({
      ...{ ...message, id: id(messages.length) },
      ...(variants.length > 1 && { variants, active_variant: active }),
    });
    shown += Math.max(1, variants.length);
  }
  const total = [...nodes.values()].reduce(
    (sum, { message }) => message === undefined ? sum : sum + 1 + (message.others?.length ?? 0),
    0,
  );
  return { messages, beside: Math.max(0, total - shown) };
}

function pathTo(nodes: ReadonlyMap<string, TreeNode>, current: string | undefined): TreeNode[] {
  const path: TreeNode[] = [];
  const seen = new Set<string>();
  let node = nodes.get(current ?? "") ?? [...nodes.values()].findLast(({ children }) => children.length === 0);
  // A file may say that a message is its own ancestor.
  while (node !== undefined && !seen.has(node.id)) {
    seen.add(node.id);
    path.unshift(node);
    node = node.parent === undefined ? undefined : nodes.get(node.parent);
  }
  return path;
}

function siblingsOf(nodes: ReadonlyMap<string, TreeNode>, node: TreeNode): TreeNode[] {
  const parent = node.parent === undefined ? undefined : nodes.get(node.parent);
  const siblings = (parent?.children ?? []).map((id) => nodes.get(id)).filter((one) => one !== undefined);
  return siblings.includes(node) ? [...new Set(siblings)] : [node];
}

function textOf({ content, reasoning, model, created_at }: TreeMessage): ImportedText {
  return {
    content,
    ...(reasoning !== undefined && { reasoning }),
    ...(model !== undefined && { model }),
    ...(created_at !== undefined && { updated_at: created_at }),
  };
}
