/** Scans encrypted conversations, newest first, until a page of hits is full. search_text.ts matches the texts. */
import type { Opener } from "../../crypto/sealer.ts";
import { isJsonObject } from "../../json/type_guards.ts";
import type { Reader } from "../../storage/database/database.ts";
import { createBlockAad, createSummaryAad, SMALLEST_GAP } from "../stored_form.ts";
import type { ConversationSummary } from "../conversation.ts";
import { getContentText, type Message } from "../message.ts";
import { type BlockRange, LINEAR_TREE, readTree, ROOT_SEGMENT } from "../conversation_tree.ts";
import { containsAllTerms, foldForSearch } from "../../json/search_fold.ts";
import { createQuickTest, type FoldedBlock, type FoldedTexts, listJsonParts, truncateSnippet } from "./search_text.ts";

/** A message or a title that contains all terms. */
export interface SearchHit {
  conversation_id: string;
  /** `null` if the hit is the title. */
  message_id: string | null;
  title: string;
  role: string | null;
  /** The text around the hit, about 160 characters. */
  snippet: string;
  /** When the message was written, or the conversation created for a title; ISO 8601, UTC. */
  created_at: string;
}

/** Where a scan continues: before message `index` of the block at `position`, then with older conversations. */
export interface ScanCursor {
  updatedAtMs: number;
  conversationId: string;
  /** Segment of the block; the root segment after a title. */
  segment: number;
  position: number;
  index: number;
}

/** What to search for, and where. */
export interface ScanRequest {
  /** Folded terms. All of them must occur. */
  terms: string[];
  conversationId?: string;
  characterId?: string;
  excludedId?: string;
  /** Only messages with this role. */
  role?: string;
  /** Only messages made at this time or later, and before the other; milliseconds since 1970. */
  sinceMs?: number;
  untilMs?: number;
  from?: ScanCursor;
}

/** Hits in order, and where to continue. */
export interface ScanPage {
  items: SearchHit[];
  next?: ScanCursor;
  /** Conversations with parts that couldn't be decrypted. */
  unreadable?: string[];
}

/** The database and key of a scan. */
export interface ScanSource {
  reader: Pick<Reader, "all">;
  opener: Opener;
  /** Decrypted heads, cached for later searches. */
  heads?: Map<string, ConversationTitle>;
  /** Decrypted texts, cached for later searches. */
  folded?: FoldedTexts;
}

/** A source, and the damaged conversations that the scan found. */
interface Scanned extends ScanSource {
  unreadable: Set<string>;
}

/** What a scan needs to know about a conversation, at one revision. */
export interface ConversationTitle {
  revision: number;
  title: string;
  characterIds: string[];
}

/** Maximum number of hits per page. */
export const PAGE_HITS = 20;
/**
 * Number of decrypted bytes after which a page with at least one hit is returned, so that first hits don't wait for
 * rare ones.
 */
const PAGE_BYTES = 8 * 1024 * 1024;
/** Number of conversations read per query. */
const CONVERSATIONS = 64;
/** Number of sealed bytes decrypted together: about 2 ms of work, after which other searches and cancellations run. */
const BATCH_BYTES = 512 * 1024;
/** Maximum number of titles and blocks per batch. */
const BATCH_STEPS = 128;
/** Number of blocks read per query. */
const QUERY_BLOCKS = 16;
/** Maximum number of messages, and of blocks, that one query reads from several short conversations. */
const GROUP_MESSAGES = 800;
const GROUP_BLOCKS = 64;
/** Maximum number of cached heads, with about 200 bytes each. */
const HEADS = 20_000;
/** A position after every block. */
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

/** A conversation to scan, from its end or from the position at which an earlier page stopped. */
interface Visit {
  row: ConversationRow;
  title: string;
  /** The ranges of its active path. Messages off the path aren't visible, so they aren't searched. */
  path: readonly BlockRange[];
  from?: ScanCursor;
  /** Whether an earlier search decrypted all its blocks. */
  isFolded: boolean;
}

/** One step of a scan: a block, or the title if `block` is absent. */
interface Step {
  visit: Visit;
  block?: BlockRow;
  /** Text of the block if an earlier search decrypted it. The step has no sealed bytes then. */
  folded?: string;
}

/** A conversation whose blocks are all decrypted by this scan, so that its text can be cached. */
interface Collection {
  visit: Visit;
  blocks: FoldedBlock[];
}

/** Steps whose blocks are decrypted together. An unreadable one is `undefined`. */
interface Batch {
  steps: Step[];
  texts: Promise<(Uint8Array | typeof SKIPPED | undefined)[]>;
}

/** Placeholder for a block that wasn't decrypted because it can't contain a hit. */
const SKIPPED = Symbol();

const decoder = new TextDecoder();
const NOT_READ = new Uint8Array();

/**
 * Returns one page of hits. Skips unreadable parts and lists their conversations.
 *
 * The next blocks are decrypted on other threads while the current ones are matched.
 *
 * @throws The signal's reason once it fires.
 */
export async function scan(source: ScanSource, request: ScanRequest, signal: AbortSignal): Promise<ScanPage> {
  const { terms, role } = request;
  const isInTime = createTimeTest(request);
  const mayHold = createQuickTest(terms);
  const items: SearchHit[] = [];
  const unreadable = new Set<string>();
  const createPage = (next?: ScanCursor): ScanPage => ({
    items,
    ...(next && { next }),
    ...(unreadable.size > 0 && { unreadable: [...unreadable] }),
  });
  const batches = openBatches({ ...source, unreadable }, request);
  let openedBytes = 0;
  let collection: Collection | undefined;
  const storeCollection = () => {
    if (collection !== undefined && !unreadable.has(collection.visit.row.id)) {
      source.folded?.add(collection.visit.row, collection.blocks);
    }
    collection = undefined;
  };
  const advance = () => {
    const next = batches.next();
    next.catch(() => {}); // The page may be full, or the search cancelled, before this is awaited.
    return next;
  };
  let coming = advance();
  for (;;) {
    const { done, value: batch } = await coming;
    signal.throwIfAborted();
    if (done) {
      storeCollection();
      return createPage();
    }
    coming = advance();
    const texts = await batch.texts;
    signal.throwIfAborted();
    for (const [n, { visit, block, folded }] of batch.steps.entries()) {
      const opened = texts[n];
      if (opened === SKIPPED) continue;
      if (block === undefined) {
        storeCollection();
        if (source.folded !== undefined && !visit.isFolded) collection = { visit, blocks: [] };
        const isWanted = role === undefined && isInTime(visit.row.created_at);
        if (isWanted && containsAllTerms(foldForSearch(visit.title), terms)) items.push(createTitleHit(visit, terms));
      } else if (opened !== undefined) {
        openedBytes += opened.length;
        const json = decoder.decode(opened);
        // If the number of bytes equals the number of UTF-16 units, the text is ASCII.
        const isAscii = json.length === opened.length;
        if (collection?.visit === visit) {
          const { id, version, segment, position } = block;
          const text = isAscii ? json.toLowerCase() : foldForSearch(json);
          const sizeBytes = isAscii ? text.length : text.length * 2;
          collection.blocks.push({ id, version, segment, position, text, sizeBytes });
        }
        if (folded !== undefined || mayHold(json, isAscii)) {
          const stop = matchBlock(items, visit, block, json, {
            terms,
            isWanted: (message) =>
              (role === undefined || message.role === role) && isInTime(Date.parse(message.created_at)),
          });
          if (stop !== undefined) return createPage(createCursor(visit, block, stop));
        }
      } else unreadable.add(visit.row.id);
      const isEnough = items.length >= PAGE_HITS || (items.length > 0 && openedBytes >= PAGE_BYTES);
      if (isEnough) return createPage(createCursor(visit, block, 0));
    }
  }
}

/** Returns a test whether a time, in milliseconds, is in the range of a request. */
function createTimeTest({ sinceMs, untilMs }: ScanRequest): (timeMs: number) => boolean {
  if (sinceMs === undefined && untilMs === undefined) return () => true;
  return (timeMs) => timeMs >= (sinceMs ?? -Infinity) && timeMs < (untilMs ?? Infinity);
}

/** Adds the hits of a block, newest first. Returns the index of the last one if the page is full. */
function matchBlock(
  items: SearchHit[],
  visit: Visit,
  block: BlockRow,
  json: string,
  { terms, isWanted }: { terms: string[]; isWanted: (message: Message) => boolean },
): number | undefined {
  const messages = parseMessages(json);
  const { from } = visit;
  const isHere = from?.segment === block.segment && from.position === block.position;
  let index = isHere ? Math.min(from.index, messages.length) : messages.length;
  while (--index >= 0) {
    const message = messages[index]!;
    if (!isWanted(message)) continue;
    const text = toSearchText(message);
    if (!containsAllTerms(foldForSearch(text), terms)) continue;
    items.push({
      conversation_id: visit.row.id,
      message_id: message.id,
      title: visit.title,
      role: message.role,
      snippet: truncateSnippet(text, terms),
      created_at: message.created_at,
    });
    if (items.length >= PAGE_HITS) return index;
  }
  return undefined;
}

/** Returns the searchable text of a message: its content, and the arguments of its tool calls. */
function toSearchText({ content, tool_calls: calls }: Message): string {
  const text = getContentText(content);
  if (!Array.isArray(calls)) return text;
  const called = calls.filter(isJsonObject).map((call) => isJsonObject(call.function) ? call.function : {}).map((one) =>
    [one.name, one.arguments].filter((part) => typeof part === "string").join(" ")
  );
  return [text, ...called].filter((part) => part !== "").join("\n");
}

function createTitleHit({ row, title }: Visit, terms: string[]): SearchHit {
  return {
    conversation_id: row.id,
    message_id: null,
    title,
    role: null,
    snippet: truncateSnippet(title, terms),
    created_at: new Date(row.created_at).toISOString(),
  };
}

/** Returns the position of a scan. @param block The last searched block; without it, the title was searched. */
function createCursor({ row, path }: Visit, block: BlockRow | undefined, index: number): ScanCursor {
  const { segment, position } = block ?? { segment: path.at(-1)!.segment, position: END };
  return { updatedAtMs: row.updated_at, conversationId: row.id, segment, position, index };
}

function parseMessages(json: string): Message[] {
  try {
    return JSON.parse(`[${json}]`);
  } catch {
    return []; // An unreadable block has no hits.
  }
}

/** Yields the steps of a scan in batches whose blocks are decrypted together. */
async function* openBatches(source: Scanned, request: ScanRequest): AsyncGenerator<Batch, undefined> {
  const parts = listJsonParts(request.terms);
  for await (const visits of listVisits(source, request)) {
    let steps: Step[] = [];
    let bytes = 0;
    for (const step of listSteps(source, visits)) {
      steps.push(step);
      bytes += step.block?.sealed.length ?? 0;
      if (bytes < BATCH_BYTES && steps.length < BATCH_STEPS) continue;
      yield openBatch(source, steps, parts);
      [steps, bytes] = [[], 0];
    }
    if (steps.length > 0) yield openBatch(source, steps, parts);
  }
  return undefined;
}

/** Decrypts the blocks of some steps. @param parts Strings that the folded text of a block must contain. */
function openBatch({ opener, reader }: ScanSource, steps: Step[], parts: string[]): Batch {
  const texts = steps.map(({ visit, block, folded }) => {
    if (block === undefined) return undefined;
    if (folded !== undefined && !containsAllTerms(folded, parts)) return SKIPPED;
    try {
      const sealed = folded === undefined ? block.sealed : findSealed(reader, block);
      return sealed === undefined
        ? SKIPPED
        : opener.open(createBlockAad(visit.row.id, block), sealed).catch(() => undefined);
    } catch {
      return undefined; // On a damaged page
    }
  });
  return { steps, texts: Promise.all(texts) };
}

/** Reads a block whose text is cached. Returns `undefined` if it has changed since. */
function findSealed(reader: ScanSource["reader"], { id, version }: BlockRow): Uint8Array | undefined {
  const sql = "SELECT sealed FROM block WHERE id = ? AND version = ? AND live = 1";
  return reader.all<{ sealed: Uint8Array }>(sql, id, version)[0]?.sealed;
}

/** Yields titles and blocks in the order of the search. Queries are short, because a long one would delay the WAL checkpoint. */
function* listSteps({ reader, unreadable, folded }: Scanned, visits: Visit[]): Generator<Step> {
  for (let at = 0; at < visits.length;) {
    const visit = visits[at]!;
    const known = visit.isFolded ? folded?.find(visit.row) : undefined;
    if (known !== undefined) {
      yield { visit };
      for (const { text, sizeBytes: _, ...location } of known) {
        yield { visit, block: { ...location, conversation_id: visit.row.id, sealed: NOT_READ }, folded: text };
      }
      at++;
      continue;
    }
    const group = takeShort(visits, at);
    const blocks = group.length > 1 ? readAllBlocks(reader, group) : undefined;
    if (blocks === undefined) {
      at++;
      yield* listStepsOfOne(reader, visit, unreadable);
    } else {
      for (const visit of group) {
        yield { visit };
        for (const block of blocks.get(visit.row.id) ?? []) yield { visit, block };
      }
      at += group.length;
    }
  }
}

/**
 * Returns the next visits whose blocks one query can read. One query per visit would take a tenth of the scan's time.
 */
function takeShort(visits: Visit[], at: number): Visit[] {
  let messages = 0;
  let end = at;
  while (end < visits.length && isShort(visits[end]!)) {
    messages += visits[end]!.row.message_count;
    if (messages > GROUP_MESSAGES) break;
    end++;
  }
  return visits.slice(at, end);
}

function isShort({ from, path, isFolded }: Visit): boolean {
  return from === undefined && path.length === 1 && !isFolded;
}

/** Returns the blocks of some conversations, newest first; `undefined` if there are too many. */
function readAllBlocks(reader: ScanSource["reader"], visits: Visit[]): Map<string, BlockRow[]> | undefined {
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
    return undefined; // One is on a damaged page, so they're read one by one.
  }
  // Sorted here, because SQLite would copy all texts through its sorter.
  rows.sort((a, b) => b.position - a.position);
  return rows.length < GROUP_BLOCKS ? Map.groupBy(rows, (row) => row.conversation_id) : undefined;
}

function* listStepsOfOne(reader: ScanSource["reader"], visit: Visit, unreadable: Set<string>): Generator<Step> {
  const { row, from } = visit;
  if (from === undefined) yield { visit };
  const { path } = visit;
  const last = from === undefined ? path.length - 1 : path.findIndex(({ segment }) => segment === from.segment);
  for (let at = last; at >= 0; at--) {
    // The block in which an earlier page stopped is read again for its older messages.
    const end = from === undefined || at < last ? undefined : from.index > 0 ? nextUp(from.position) : from.position;
    let before = end ?? END;
    for (;;) {
      const earlierBlocks = readBlocksBefore(reader, row.id, path[at]!, before);
      for (const { block } of earlierBlocks) {
        if (block === undefined) unreadable.add(row.id);
        else yield { visit, block };
      }
      if (earlierBlocks.length < QUERY_BLOCKS) break;
      before = earlierBlocks.at(-1)!.position;
    }
  }
}

/** Returns the next older blocks of a range. A block on a damaged page only has a position. */
function readBlocksBefore(
  reader: ScanSource["reader"],
  id: string,
  { segment, after, upTo }: BlockRange,
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
    // The index lists the blocks, so each can be read separately.
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

/** Yields the conversations to scan, with their titles. */
async function* listVisits(source: Scanned, request: ScanRequest): AsyncGenerator<Visit[]> {
  const { conversationId, from } = request;
  if (conversationId !== undefined || from !== undefined) {
    // By ID: a conversation that has changed since has another position in the list, but is still searched to its end.
    const rows = readRow(source, conversationId ?? from!.conversationId);
    const own = from?.conversationId === rows[0]?.id ? from : undefined;
    const visits = await openVisits(source, request, rows);
    yield visits.map((visit) => ({
      ...visit,
      row: own ? { ...visit.row, updated_at: own.updatedAtMs } : visit.row,
      from: own,
      isFolded: visit.isFolded && own === undefined,
    }));
    if (conversationId !== undefined) return;
  }
  let [updatedAtMs, id] = [from?.updatedAtMs ?? END, from?.conversationId ?? ""];
  for (;;) {
    const rows = readRowsAfter(source, updatedAtMs, id);
    yield await openVisits(source, request, rows);
    if (rows.length < CONVERSATIONS) return;
    [updatedAtMs, id] = [rows.at(-1)!.updated_at, rows.at(-1)!.id];
  }
}

const CONVERSATION_COLUMNS = "id, revision, created_at, updated_at, message_count, summary";

/** Returns a conversation; `undefined` if it doesn't exist or is on a damaged page. */
function readRow({ reader, unreadable }: Scanned, id: string): ConversationRow[] {
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

/** Returns the next older conversations. */
function readRowsAfter(source: Scanned, updatedAtMs: number, id: string): ConversationRow[] {
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
    return ids.flatMap((one) => readRow(source, one.id))
      .filter((row) => row.updated_at < updatedAtMs || (row.updated_at === updatedAtMs && row.id > id))
      .sort((one, other) => other.updated_at - one.updated_at || (one.id < other.id ? -1 : 1))
      .slice(0, CONVERSATIONS);
  }
}

async function openVisits(source: Scanned, request: ScanRequest, rows: ConversationRow[]): Promise<Visit[]> {
  const paths = readPaths(source.reader, rows);
  const isFolded = (row: ConversationRow) => source.folded?.find(row) !== undefined;
  const searched = rows.filter(({ id }) => id !== request.excludedId);
  const visits = await Promise.all(searched.map(async (row): Promise<Visit | undefined> => {
    try {
      const { title, characterIds } = await openHead(source, row);
      const isMatch = request.characterId === undefined || characterIds.includes(request.characterId);
      return isMatch ? { row, title, path: paths.get(row.id)!, isFolded: isFolded(row) } : undefined;
    } catch {
      // Its character is unknown, but its blocks may be readable.
      source.unreadable.add(row.id);
      return request.characterId === undefined
        ? { row, title: "", path: paths.get(row.id)!, isFolded: false }
        : undefined;
    }
  }));
  return visits.filter((visit) => visit !== undefined);
}

/** Reads the active path of each conversation. One query finds the few that have branch points. */
function readPaths(reader: ScanSource["reader"], rows: ConversationRow[]): Map<string, readonly BlockRange[]> {
  const branched = new Set(
    reader.all<{ id: string }>(
      `SELECT DISTINCT conversation_id AS id FROM continuation
       WHERE conversation_id IN (SELECT value FROM json_each(?))`,
      JSON.stringify(rows.map(({ id }) => id)),
    ).map(({ id }) => id),
  );
  return new Map(rows.map(({ id }) => [id, branched.has(id) ? readTree(reader, id).path : LINEAR_TREE.path]));
}

async function openHead({ opener, heads }: ScanSource, row: ConversationRow): Promise<ConversationTitle> {
  const known = heads?.get(row.id);
  if (known?.revision === row.revision) return known;
  const opened = await opener.open(createSummaryAad(row.id, row.revision), row.summary);
  const { title, character_ids: characterIds }: ConversationSummary = JSON.parse(decoder.decode(opened));
  const found = { revision: row.revision, title, characterIds };
  if (heads !== undefined) {
    if (heads.size >= HEADS) heads.clear();
    heads.set(row.id, found);
  }
  return found;
}

/** Returns a number just above a position, so that "below it" includes the position. */
function nextUp(position: number): number {
  return position + Math.max(SMALLEST_GAP / 10, Math.abs(position) * Number.EPSILON);
}
