/** Goes through sealed conversations, newest first, until a page of hits is full. What a hit is, search_text.ts says. */
import type { Opener } from "../../crypto/sealer.ts";
import type { Reader } from "../../storage/database/reader.ts";
import { SMALLEST_GAP } from "../blocks/block_replacement.ts";
import type { ConversationSummary } from "../conversation.ts";
import { type Message, textOfContent } from "../message.ts";
import { LINE, readTree, ROOT_SEGMENT, type Stretch } from "../tree/conversation_tree.ts";
import { blockAad, summaryAad } from "../aad.ts";
import { createQuickTest, fold, holdsAll, snippetAround } from "./search_text.ts";

/** One message, or one title, that holds every term. */
export interface SearchHit {
  conversation_id: string;
  /** `null` where the title was found. */
  message_id: string | null;
  title: string;
  role: string | null;
  /** The text around the hit, about 160 characters. */
  snippet: string;
  /** When the message was written, or for a title the conversation begun; ISO 8601, UTC. */
  created_at: string;
}

/** Where a scan goes on: before the message `index` of the block at `position` of a conversation, then with older ones. */
export interface ScanCursor {
  updatedAtMs: number;
  conversationId: string;
  /** Segment of the block; the root where a title was searched last. */
  segment: number;
  position: number;
  index: number;
}

/** What is looked for, and where. */
export interface ScanRequest {
  /** Folded; all have to occur. */
  terms: string[];
  conversationId?: string;
  characterId?: string;
  from?: ScanCursor;
}

/** Hits in order, and where to go on for more. */
export interface ScanPage {
  items: SearchHit[];
  next?: ScanCursor;
  /** Conversations of which something couldn't be opened. */
  unreadable?: string[];
}

/** What a scan reads from. */
export interface ScanSource {
  reader: Pick<Reader, "all">;
  opener: Opener;
  /** What conversations say of themselves, as far as scans have read it; one search opens it for those that follow. */
  heads?: Map<string, ConversationAbout>;
}

/** A source, and the conversations found to be damaged. */
interface Scanned extends ScanSource {
  unreadable: Set<string>;
}

/** What a scan has to know of a conversation, at one revision. */
export interface ConversationAbout {
  revision: number;
  title: string;
  characterIds: string[];
}

/** Hits of one page. */
const PAGE_HITS = 20;
/** A page that has a hit is given once this much was opened for it, so that first hits need not wait for rare ones. */
const PAGE_BYTES = 8 * 1024 * 1024;
/** Conversations looked up at once. */
const CONVERSATIONS = 64;
/** Sealed bytes opened at once: some 2 ms of work, after which other searches and a cancel get their turn. */
const BATCH_BYTES = 512 * 1024;
/** Titles and blocks in one batch. */
const BATCH_STEPS = 128;
/** Blocks read by one query. */
const QUERY_BLOCKS = 16;
/** Messages, and blocks, that several short conversations have together where one query reads them. */
const GROUP_MESSAGES = 800;
const GROUP_BLOCKS = 64;
/** Conversations of which something is remembered: some 200 bytes each. */
const HEADS = 20_000;
/** A position behind every block's. */
const END = Number.MAX_SAFE_INTEGER;

interface ConversationRow {
  id: string;
  revision: number;
  created_at: number;
  updated_at: number;
  message_count: number;
  summary: Uint8Array;
}

interface BlockRow {
  conversation_id: string;
  id: number;
  version: number;
  segment: number;
  position: number;
  sealed: Uint8Array;
}

/** A conversation to go through, from its end or from where an earlier page stopped. */
interface Visit {
  row: ConversationRow;
  title: string;
  /** The stretches of its active path: what follows other versions isn't shown, so it isn't found either. */
  path: readonly Stretch[];
  from?: ScanCursor;
}

/** What one step opens: a block, or nothing when it is the turn of the title. */
interface Step {
  visit: Visit;
  block?: BlockRow;
}

/** Steps whose blocks are being opened all at once; what cannot be opened is `undefined`. */
interface Batch {
  steps: Step[];
  texts: Promise<(Uint8Array | undefined)[]>;
}

const decoder = new TextDecoder();

/**
 * Gives one page of hits. What cannot be opened is passed over, and its conversation named.
 *
 * The next blocks are being opened while the present ones are matched, where the runtime opens on threads of its own.
 *
 * @throws The signal's reason once it fires.
 */
export async function scan(source: ScanSource, request: ScanRequest, signal: AbortSignal): Promise<ScanPage> {
  const { terms } = request;
  const mayHold = createQuickTest(terms);
  const items: SearchHit[] = [];
  const unreadable = new Set<string>();
  const page = (next?: ScanCursor): ScanPage => ({
    items,
    ...(next && { next }),
    ...(unreadable.size > 0 && { unreadable: [...unreadable] }),
  });
  const batches = openBatches({ ...source, unreadable }, request);
  let openedBytes = 0;
  const advance = () => {
    const next = batches.next();
    next.catch(() => {}); // a page may be full, or given up, before anybody waits for it
    return next;
  };
  let coming = advance();
  for (;;) {
    const { done, value: batch } = await coming;
    signal.throwIfAborted();
    if (done) return page();
    coming = advance();
    const texts = await batch.texts;
    signal.throwIfAborted();
    for (const [n, { visit, block }] of batch.steps.entries()) {
      const opened = texts[n];
      if (block === undefined) {
        if (holdsAll(fold(visit.title), terms)) items.push(titleHit(visit, terms));
      } else if (opened !== undefined) {
        openedBytes += opened.length;
        const json = decoder.decode(opened);
        // As many bytes as UTF-16 units is ASCII alone.
        if (mayHold(json, json.length === opened.length)) {
          const stop = matchBlock(items, visit, block, json, terms);
          if (stop !== undefined) return page(placeOf(visit, block, stop));
        }
      } else unreadable.add(visit.row.id);
      const isEnough = items.length >= PAGE_HITS || (items.length > 0 && openedBytes >= PAGE_BYTES);
      if (isEnough) return page(placeOf(visit, block, 0));
    }
  }
}

/** Adds the hits of a block, newest first. Gives the index of the last one taken where they fill the page. */
function matchBlock(
  items: SearchHit[],
  visit: Visit,
  block: BlockRow,
  json: string,
  terms: string[],
): number | undefined {
  const messages = parsed(json);
  const { from } = visit;
  const isHere = from?.segment === block.segment && from.position === block.position;
  let index = isHere ? Math.min(from.index, messages.length) : messages.length;
  while (--index >= 0) {
    const message = messages[index]!;
    const text = textOfContent(message.content);
    if (!holdsAll(fold(text), terms)) continue;
    items.push({
      conversation_id: visit.row.id,
      message_id: message.id,
      title: visit.title,
      role: message.role,
      snippet: snippetAround(text, terms),
      created_at: message.created_at,
    });
    if (items.length >= PAGE_HITS) return index;
  }
  return undefined;
}

function titleHit({ row, title }: Visit, terms: string[]): SearchHit {
  return {
    conversation_id: row.id,
    message_id: null,
    title,
    role: null,
    snippet: snippetAround(title, terms),
    created_at: new Date(row.created_at).toISOString(),
  };
}

/** @param block The last one searched; without it the title was. */
function placeOf({ row, path }: Visit, block: BlockRow | undefined, index: number): ScanCursor {
  const { segment, position } = block ?? { segment: path.at(-1)!.segment, position: END };
  return { updatedAtMs: row.updated_at, conversationId: row.id, segment, position, index };
}

function parsed(json: string): Message[] {
  try {
    return JSON.parse(`[${json}]`);
  } catch {
    return []; // a block nobody can read holds nothing to be found
  }
}

/** Gives the steps of a scan in batches whose blocks are being opened all at once. */
async function* openBatches(source: Scanned, request: ScanRequest): AsyncGenerator<Batch, undefined> {
  for await (const visits of visitsOf(source, request)) {
    let steps: Step[] = [];
    let bytes = 0;
    for (const step of stepsOf(source, visits)) {
      steps.push(step);
      bytes += step.block?.sealed.length ?? 0;
      if (bytes < BATCH_BYTES && steps.length < BATCH_STEPS) continue;
      yield opening(source, steps);
      [steps, bytes] = [[], 0];
    }
    if (steps.length > 0) yield opening(source, steps);
  }
  return undefined;
}

function opening({ opener }: ScanSource, steps: Step[]): Batch {
  const texts = steps.map(({ visit, block }) =>
    block && opener.open(blockAad(visit.row.id, block), block.sealed).catch(() => undefined)
  );
  return { steps, texts: Promise.all(texts) };
}

/** Titles and blocks in the order in which they are searched. Short queries, since a long one would hold up the log's emptying. */
function* stepsOf({ reader, unreadable }: Scanned, visits: Visit[]): Generator<Step> {
  for (let at = 0; at < visits.length;) {
    const group = shortOnes(visits, at);
    const blocks = group.length > 1 ? blocksOfAll(reader, group) : undefined;
    if (blocks === undefined) yield* stepsOfOne(reader, visits[at++]!, unreadable);
    else {
      for (const visit of group) {
        yield { visit };
        for (const block of blocks.get(visit.row.id) ?? []) yield { visit, block };
      }
      at += group.length;
    }
  }
}

/** Gives the visits from a place on whose blocks one query can read: a query each would be a tenth of the whole work. */
function shortOnes(visits: Visit[], at: number): Visit[] {
  let messages = 0;
  let end = at;
  while (end < visits.length && visits[end]!.from === undefined && visits[end]!.path.length === 1) {
    messages += visits[end]!.row.message_count;
    if (messages > GROUP_MESSAGES) break;
    end++;
  }
  return visits.slice(at, end);
}

/** Gives the blocks of some conversations, newest first; nothing where they are too many to hold. */
function blocksOfAll(reader: ScanSource["reader"], visits: Visit[]): Map<string, BlockRow[]> | undefined {
  let rows: BlockRow[];
  try {
    rows = reader.all<BlockRow>(
      `SELECT conversation_id, id, version, segment, position, sealed FROM block
       WHERE conversation_id IN (SELECT value FROM json_each(?)) AND segment = ? AND live = 1 LIMIT ?`,
      JSON.stringify(visits.map(({ row }) => row.id)),
      ROOT_SEGMENT,
      GROUP_BLOCKS,
    );
  } catch {
    return undefined; // one of them is on a damaged page; by itself it holds up no other
  }
  // Sorted here: SQLite would put every text through its sorter.
  rows.sort((a, b) => b.position - a.position);
  return rows.length < GROUP_BLOCKS ? Map.groupBy(rows, (row) => row.conversation_id) : undefined;
}

function* stepsOfOne(reader: ScanSource["reader"], visit: Visit, unreadable: Set<string>): Generator<Step> {
  const { row, from } = visit;
  if (from === undefined) yield { visit };
  const { path } = visit;
  const last = from === undefined ? path.length - 1 : path.findIndex(({ segment }) => segment === from.segment);
  for (let at = last; at >= 0; at--) {
    // The block where an earlier page stopped is read again: its older messages are not searched yet.
    const end = from === undefined || at < last ? undefined : from.index > 0 ? nextUp(from.position) : from.position;
    let before = end ?? END;
    for (;;) {
      const places = blocksBefore(reader, row.id, path[at]!, before);
      for (const { block } of places) {
        if (block === undefined) unreadable.add(row.id);
        else yield { visit, block };
      }
      if (places.length < QUERY_BLOCKS) break;
      before = places.at(-1)!.position;
    }
  }
}

/** Gives the next older blocks of a stretch; one on a damaged page of the file has its place alone. */
function blocksBefore(
  reader: ScanSource["reader"],
  id: string,
  { segment, after, upTo }: Stretch,
  before: number,
): { position: number; block?: BlockRow }[] {
  const columns = "conversation_id, id, version, segment, position, sealed";
  const rest = `FROM block WHERE conversation_id = ? AND segment = ? AND live = 1
    AND position > ? AND position <= ? AND position < ? ORDER BY position DESC LIMIT ?`;
  const params = [id, segment, after, upTo, before, QUERY_BLOCKS] as const;
  try {
    return reader.all<BlockRow>(`SELECT ${columns} ${rest}`, ...params)
      .map((block) => ({ position: block.position, block }));
  } catch {
    // The index alone says where blocks are, so each can be tried by itself.
    return reader.all<{ rowid: number; position: number }>(`SELECT rowid, position ${rest}`, ...params)
      .map(({ rowid, position }) => {
        try {
          return { position, block: reader.all<BlockRow>(`SELECT ${columns} FROM block WHERE rowid = ?`, rowid)[0] };
        } catch {
          return { position };
        }
      });
  }
}

/** Gives the conversations to go through, with their titles. */
async function* visitsOf(source: Scanned, request: ScanRequest): AsyncGenerator<Visit[]> {
  const { conversationId, from } = request;
  if (conversationId !== undefined || from !== undefined) {
    // By its id: a conversation that was written to since lies elsewhere in the order, and is searched to its end.
    const rows = rowOf(source, conversationId ?? from!.conversationId);
    const own = from?.conversationId === rows[0]?.id ? from : undefined;
    const visits = await visitsFrom(source, request, rows);
    yield visits.map((visit) => ({
      ...visit,
      row: own ? { ...visit.row, updated_at: own.updatedAtMs } : visit.row,
      from: own,
    }));
    if (conversationId !== undefined) return;
  }
  let [updatedAtMs, id] = [from?.updatedAtMs ?? END, from?.conversationId ?? ""];
  for (;;) {
    const rows = rowsAfter(source, updatedAtMs, id);
    yield await visitsFrom(source, request, rows);
    if (rows.length < CONVERSATIONS) return;
    [updatedAtMs, id] = [rows.at(-1)!.updated_at, rows.at(-1)!.id];
  }
}

const CONVERSATION_COLUMNS = "id, revision, created_at, updated_at, message_count, summary";

/** Gives a conversation, or nothing where it is gone or on a damaged page. */
function rowOf({ reader, unreadable }: Scanned, id: string): ConversationRow[] {
  try {
    return reader.all<ConversationRow>(
      `SELECT ${CONVERSATION_COLUMNS} FROM conversation WHERE id = ? AND deleted_at IS NULL`,
      id,
    );
  } catch {
    unreadable.add(id);
    return [];
  }
}

/** Gives the next older conversations. */
function rowsAfter(source: Scanned, updatedAtMs: number, id: string): ConversationRow[] {
  const { reader } = source;
  try {
    return reader.all<ConversationRow>(
      `SELECT ${CONVERSATION_COLUMNS} FROM conversation
       WHERE deleted_at IS NULL AND (updated_at < ?1 OR (updated_at = ?1 AND id > ?2)) ORDER BY updated_at DESC, id LIMIT ?3`,
      updatedAtMs,
      id,
      CONVERSATIONS,
    );
  } catch {
    const ids = reader.all<{ id: string }>("SELECT id FROM conversation INDEXED BY sqlite_autoindex_conversation_1");
    return ids.flatMap((one) => rowOf(source, one.id))
      .filter((row) => row.updated_at < updatedAtMs || (row.updated_at === updatedAtMs && row.id > id))
      .sort((one, other) => other.updated_at - one.updated_at || (one.id < other.id ? -1 : 1))
      .slice(0, CONVERSATIONS);
  }
}

async function visitsFrom(source: Scanned, request: ScanRequest, rows: ConversationRow[]): Promise<Visit[]> {
  const paths = pathsOf(source.reader, rows);
  const visits = await Promise.all(rows.map(async (row): Promise<Visit | undefined> => {
    try {
      const { title, characterIds } = await about(source, row);
      const isWanted = request.characterId === undefined || characterIds.includes(request.characterId);
      return isWanted ? { row, title, path: paths.get(row.id)! } : undefined;
    } catch {
      // Whose conversation it is cannot be told; its blocks may still be whole.
      source.unreadable.add(row.id);
      return request.characterId === undefined ? { row, title: "", path: paths.get(row.id)! } : undefined;
    }
  }));
  return visits.filter((visit) => visit !== undefined);
}

/** Reads the active path of each conversation; one query finds the few that have versions. */
function pathsOf(reader: ScanSource["reader"], rows: ConversationRow[]): Map<string, readonly Stretch[]> {
  const branched = new Set(
    reader.all<{ id: string }>(
      `SELECT DISTINCT conversation_id AS id FROM continuation
       WHERE conversation_id IN (SELECT value FROM json_each(?))`,
      JSON.stringify(rows.map(({ id }) => id)),
    ).map(({ id }) => id),
  );
  return new Map(rows.map(({ id }) => [id, branched.has(id) ? readTree(reader, id).path : LINE.path]));
}

async function about({ opener, heads }: ScanSource, row: ConversationRow): Promise<ConversationAbout> {
  const known = heads?.get(row.id);
  if (known?.revision === row.revision) return known;
  const opened = await opener.open(summaryAad(row.id, row.revision), row.summary);
  const { title, character_ids: characterIds }: ConversationSummary = JSON.parse(decoder.decode(opened));
  const found = { revision: row.revision, title, characterIds };
  if (heads !== undefined) {
    if (heads.size >= HEADS) heads.clear();
    heads.set(row.id, found);
  }
  return found;
}

/** Gives a number above a position and below the next block's, so that "below it" takes the position in. */
function nextUp(position: number): number {
  return position + Math.max(SMALLEST_GAP / 10, Math.abs(position) * Number.EPSILON);
}
