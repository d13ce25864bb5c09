/** The messages of a conversation as a tree, and its change when the active path is replaced. conversation_tree.ts stores it. */
import type { Message } from "../message.ts";
import { type Continuation, ROOT_SEGMENT } from "./conversation_tree.ts";

/** All messages of a conversation, or of a part of it. */
export interface MessageTree {
  /** In order. Messages after a branch point follow the version that names this segment. */
  segments: Map<number, Message[]>;
  continuations: Continuation[];
}

/** A branch point and its location. */
interface Branch {
  segment: number;
  index: number;
  versions: Continuation[];
}

/** Returns the tree of a conversation without versions. */
export function createLinearTree(messages: Message[]): MessageTree {
  return { segments: new Map([[ROOT_SEGMENT, messages]]), continuations: [] };
}

/** Returns the active path that starts with a segment. */
export function pathOf(tree: MessageTree, segment = ROOT_SEGMENT): Message[] {
  const branches = branchesOf(tree);
  const path: Message[] = [];
  const seen = new Set<number>();
  for (let at: number | undefined = segment; at !== undefined && !seen.has(at);) {
    seen.add(at);
    const messages: Message[] = tree.segments.get(at) ?? [];
    at = undefined;
    for (const message of messages) {
      path.push(message);
      const branch = branches.get(message.id);
      const active = branch?.versions.find(({ isActive }) => isActive);
      if (branch === undefined || active?.segment === branch.segment) continue;
      at = active?.segment;
      break;
    }
  }
  return path;
}

/**
 * Returns the tree with other messages on its active path. Messages that stay keep their versions and continuations. Messages
 * that leave lose theirs.
 */
export function withPath(tree: MessageTree, messages: Message[]): MessageTree {
  if (tree.continuations.length === 0) return createLinearTree(messages);
  const branches = branchesOf(tree);
  const next: MessageTree = { segments: new Map(), continuations: [] };
  /** Copies the messages that follow an inactive version, with everything below them. */
  const keep = (from: number, index: number, into: number) => {
    const waiting = [{ from, index, into }];
    for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
      const kept = (tree.segments.get(one.from) ?? []).slice(one.index);
      listOf(next, one.into).push(...kept);
      for (const { id } of kept) {
        const branch = branches.get(id);
        for (const version of branch?.versions ?? []) {
          const isHere = version.segment === one.from;
          next.continuations.push(isHere ? { ...version, segment: one.into } : version);
          if (!isHere) waiting.push({ from: version.segment, index: 0, into: version.segment });
        }
      }
    }
  };
  let current = ROOT_SEGMENT;
  listOf(next, current);
  for (const message of messages) {
    listOf(next, current).push(message);
    const branch = branches.get(message.id);
    if (branch === undefined) continue;
    let following = current;
    for (const version of branch.versions) {
      const isHere = version.segment === branch.segment;
      const into = isHere ? current : version.segment;
      next.continuations.push({ ...version, segment: into });
      if (version.isActive) following = into;
      else keep(version.segment, isHere ? branch.index + 1 : 0, into);
    }
    current = following;
  }
  return next;
}

/** Returns the ids of all branch points. */
export function branchIds({ continuations }: Pick<MessageTree, "continuations">): Set<string> {
  return new Set(continuations.map(({ mid }) => mid));
}

function listOf({ segments }: MessageTree, segment: number): Message[] {
  let list = segments.get(segment);
  if (list === undefined) segments.set(segment, list = []);
  return list;
}

function branchesOf({ segments, continuations }: MessageTree): Map<string, Branch> {
  const versions = Map.groupBy(continuations, ({ mid }) => mid);
  const branches = new Map<string, Branch>();
  if (versions.size === 0) return branches;
  for (const [segment, messages] of segments) {
    messages.forEach(({ id }, index) => {
      const own = versions.get(id);
      if (own !== undefined) branches.set(id, { segment, index, versions: own });
    });
  }
  return branches;
}
