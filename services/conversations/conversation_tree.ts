/**
 * The tree of a conversation: the messages whose versions have continuations, and the active path.
 *
 * A segment is a list of blocks ordered by position. A message whose versions have continuations (a "branch point") is
 * always the last of its block. Each of its versions refers to the segment with the messages that follow: the branch
 * point's segment (the blocks after it) or another one. So the active path enters each segment at most once, at its
 * start, and leaves it at a branch point whose active version continues elsewhere. Switching versions changes which row
 * is active; no block moves. See docs/decisions/0031-conversation-tree.md.
 */
import type { Reader } from "../storage/database/database.ts";

/** The segment where every conversation starts. */
export const ROOT_SEGMENT = 0;
/** Positions before and after every block. */
const START = -Number.MAX_VALUE;
const END = Number.MAX_VALUE;

/** One version of a message and the segment that follows it. */
export interface Continuation {
  mid: string;
  /** Number of the version, from 0. */
  n: number;
  segment: number;
  isActive: boolean;
}

/** The location of a block. */
export interface Location {
  segment: number;
  position: number;
}

/** Part of a segment: the blocks after `after`, up to and including the one at `upTo`. */
export interface BlockRange {
  segment: number;
  after: number;
  upTo: number;
}

/** A message whose versions have continuations. */
export interface BranchPoint extends Location {
  mid: string;
  blockId: number;
  /** The segment that follows each version, by version number. Versions without an entry have no continuation. */
  segments: Map<number, number>;
  active: number;
}

interface Row {
  mid: string;
  n: number;
  target: number;
  is_active: number;
  block_id: number;
  segment: number;
  position: number;
}

/** Returns the range of a whole segment. */
export function toSegmentRange(segment: number): BlockRange {
  return { segment, after: START, upTo: END };
}

/** The branch points of one conversation. */
export class ConversationTree {
  /** The active path in order. */
  readonly path: BlockRange[];
  readonly #points = new Map<string, BranchPoint>();
  readonly #blocks = new Set<number>();
  /** Branch points by segment, ordered by position. */
  readonly #bySegment = new Map<number, BranchPoint[]>();
  readonly #onPath = new Map<number, number>();

  constructor(rows: readonly Row[]) {
    for (const { mid, n, target, is_active, block_id, segment, position } of rows) {
      let point = this.#points.get(mid);
      if (point === undefined) {
        point = { mid, blockId: block_id, segment, position, segments: new Map(), active: 0 };
        this.#points.set(mid, point);
        this.#blocks.add(block_id);
        const others = this.#bySegment.get(segment);
        if (others === undefined) this.#bySegment.set(segment, [point]);
        else others.push(point);
      }
      point.segments.set(n, target);
      if (is_active) point.active = n;
    }
    for (const points of this.#bySegment.values()) points.sort((a, b) => a.position - b.position);
    this.path = this.listRangesFrom({ segment: ROOT_SEGMENT, position: START });
    this.path.forEach(({ segment }, index) => this.#onPath.set(segment, index));
  }

  /** Whether there are no branch points. */
  get isLine(): boolean {
    return this.#points.size === 0;
  }

  /** Returns the index of the path's range that contains a block; `undefined` for a block off the path. */
  findRangeIndex({ segment, position }: Location): number | undefined {
    const index = this.#onPath.get(segment);
    return index !== undefined && position <= this.path[index]!.upTo ? index : undefined;
  }

  /** Returns whether a block ends with a branch point, so that no message can be added to it. */
  endsInBranch(blockId: number): boolean {
    return this.#blocks.has(blockId);
  }

  find(mid: string): BranchPoint | undefined {
    return this.#points.get(mid);
  }

  /** Returns all branch points. */
  listPoints(): BranchPoint[] {
    return [...this.#points.values()];
  }

  /** Returns the branch points of a segment from a position on, in order. */
  listPointsFrom({ segment, position }: Location): BranchPoint[] {
    return (this.#bySegment.get(segment) ?? []).filter((point) => point.position >= position);
  }

  /** Returns the start of the blocks that follow a version; `undefined` if nothing can follow it. */
  findStart(point: BranchPoint, n: number): Location | undefined {
    const segment = point.segments.get(n);
    if (segment === undefined) return undefined;
    return { segment, position: segment === point.segment ? point.position : START };
  }

  /** Returns the ranges of the active path after one of its blocks. */
  listRangesAfter(row: Location): BlockRange[] {
    const point = this.listPointsFrom(row).find(({ position }) => position === row.position);
    const from = point === undefined ? row : this.findStart(point, point.active);
    return from === undefined ? [] : this.listRangesFrom(from);
  }

  /** Returns the ranges after a location, along the active versions, to the end. */
  listRangesFrom(from: Location): BlockRange[] {
    const ranges: BlockRange[] = [];
    const seen = new Set<number>();
    let at: Location | undefined = from;
    while (at !== undefined && !seen.has(at.segment)) {
      const { segment, position } = at as Location;
      seen.add(segment);
      const leaving: BranchPoint | undefined = (this.#bySegment.get(segment) ?? []).find((point) =>
        point.position > position && point.segments.get(point.active) !== segment
      );
      ranges.push({ segment, after: position, upTo: leaving?.position ?? END });
      at = leaving && this.findStart(leaving, leaving.active);
    }
    return ranges;
  }

  /** Returns the stored rows. */
  listRows(): Continuation[] {
    return this.listPoints().flatMap(({ mid, segments, active }) =>
      [...segments].map(([n, segment]) => ({ mid, n, segment, isActive: n === active }))
    );
  }
}

/** The tree of a conversation without versions. */
export const LINEAR_TREE = new ConversationTree([]);

/** Reads the tree of a conversation. */
export function readTree(db: Pick<Reader, "all">, conversationId: string): ConversationTree {
  let rows: Row[];
  try {
    rows = db.all<Row>(
      `SELECT c.mid, c.n, c.segment AS target, c.is_active, b.id AS block_id, b.segment, b.position FROM continuation c
       JOIN message m ON m.conversation_id = c.conversation_id AND m.mid = c.mid
       JOIN block b ON b.id = m.block_id AND b.live = 1
       WHERE c.conversation_id = ? ORDER BY c.mid, c.n`,
      conversationId,
    );
  } catch {
    rows = readRowsByIndexes(db, conversationId);
  }
  return rows.length === 0 ? LINEAR_TREE : new ConversationTree(rows);
}

/** Reads the data for `readTree` from indexes only, because a block may be on a damaged page of the database file. */
function readRowsByIndexes(db: Pick<Reader, "all">, conversationId: string): Row[] {
  const rows = db.all<Omit<Row, "segment" | "position">>(
    `SELECT c.mid, c.n, c.segment AS target, c.is_active, m.block_id FROM continuation c
     JOIN message m ON m.conversation_id = c.conversation_id AND m.mid = c.mid
     WHERE c.conversation_id = ? ORDER BY c.mid, c.n`,
    conversationId,
  );
  const locations = db.all<Location & { rowid: number }>(
    `SELECT rowid, segment, position FROM block INDEXED BY block_by_position WHERE conversation_id = ? AND live = 1`,
    conversationId,
  );
  const byRow = new Map(locations.map((location) => [location.rowid, location]));
  const versions = db.all<{ rowid: number; id: number }>(
    `SELECT rowid, id FROM block INDEXED BY sqlite_autoindex_block_1 WHERE id IN (SELECT value FROM json_each(?))`,
    JSON.stringify(rows.map((row) => row.block_id)),
  );
  const located = new Map(versions.flatMap(({ id, rowid }) => {
    const position = byRow.get(rowid);
    return position === undefined ? [] : [[id, position] as const];
  }));
  return rows.flatMap((row) => {
    const location = located.get(row.block_id);
    return location === undefined ? [] : [{ ...row, segment: location.segment, position: location.position }];
  });
}

/** Maximum number of cached trees. */
const TREES = 64;

/** Reads trees and caches them until the database changes. */
export class TreeReader {
  readonly #db: Pick<Reader, "all" | "get">;
  readonly #trees = new Map<string, ConversationTree>();
  #dataVersion = -1;
  /**
   * Whether the database was checked in the current microtask: a change of a conversation needs its tree several times.
   */
  #isChecked = false;

  constructor(db: Pick<Reader, "all" | "get">) {
    this.#db = db;
  }

  load(conversationId: string): ConversationTree {
    if (!this.#isChecked) this.#dropStale();
    let tree = this.#trees.get(conversationId);
    if (tree === undefined) {
      tree = readTree(this.#db, conversationId);
      this.#trees.set(conversationId, tree);
    }
    return tree;
  }

  #dropStale(): void {
    // Changes with each commit of another connection, and all writes use one.
    const version = this.#db.get<{ data_version: number }>("PRAGMA data_version")!.data_version;
    if (version !== this.#dataVersion || this.#trees.size >= TREES) this.#trees.clear();
    this.#dataVersion = version;
    this.#isChecked = true;
    queueMicrotask(() => this.#isChecked = false);
  }
}

/** Returns the statements that add continuations. */
export function insertContinuations(conversationId: string, rows: readonly Continuation[]) {
  if (rows.length === 0) return [];
  return [{
    sql: `INSERT INTO continuation (conversation_id, mid, n, segment, is_active)
          SELECT ?, value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?)`,
    params: [
      conversationId,
      JSON.stringify(rows.map(({ mid, n, segment, isActive }) => [mid, n, segment, Number(isActive)])),
    ],
  }];
}

/** Returns the statement that removes the continuations of messages. */
export function removeContinuations(conversationId: string, mids: readonly string[]) {
  return {
    sql: "DELETE FROM continuation WHERE conversation_id = ? AND mid IN (SELECT value FROM json_each(?))",
    params: [conversationId, JSON.stringify(mids)],
  };
}
