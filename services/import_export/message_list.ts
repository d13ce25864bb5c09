/** Builds a message tree from messages that name their parent, or only follow one another. */
import type { TreeMessage, TreeNode } from "./branching_chat.ts";

/** A message with its place. */
export interface ListedMessage {
  id: string;
  /** If it's unknown, the message follows the one before it. `null` for a message that follows nothing. */
  parentId?: string | null;
  /** Absent for what isn't shown, such as calls of tools. */
  message: TreeMessage | undefined;
}

/** Builds the tree. A message whose id occurred before is left out. */
export function buildTree(list: Iterable<ListedMessage>): Map<string, TreeNode> {
  const nodes = new Map<string, TreeNode>();
  let previous: string | undefined;
  for (const { id, parentId, message } of list) {
    if (id === "" || nodes.has(id)) continue;
    const parent = parentId === null ? undefined : parentId !== undefined && nodes.has(parentId) ? parentId : previous;
    nodes.set(id, { id, parent, children: [], message });
    if (parent !== undefined) nodes.get(parent)!.children.push(id);
    previous = id;
  }
  return nodes;
}
