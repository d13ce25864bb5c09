/** Recovers the replies of a killed process: reads their text from the journal and saves them as `interrupted`. */
import type { PurposeSealer } from "../../crypto/sealer.ts";
import { getErrorTrace } from "../../errors.ts";
import type { Log } from "../../log.ts";
import type { Database, Statement } from "../../storage/database/database.ts";
import { settleAttempt } from "../reply_saver.ts";
import type { ConversationWriter } from "../../conversations/conversation_writer.ts";
import type { ConversationStore } from "../../conversations/conversation_store.ts";
import {
  createRecordAad,
  getJournalPath,
  type JournalBatch,
  type JournalEntry,
  type JournalKey,
  LENGTH_BYTES,
  listJournalNumbers,
  removeJournal,
  type ReplyPlan,
} from "./journal.ts";
import type { StatefulChatRequest } from "../chat_service.ts";
import { readFileIfExists } from "../../storage/atomic_file.ts";
import { getContentText, type Message } from "../../conversations/message.ts";
import {
  createEndStatement,
  deleteResumeRow,
  findResumeRow,
  findUnendedReplies,
  type ReplyRow,
} from "../../conversations/live_replies.ts";
import type { BlockStore } from "../../conversations/blocks/block_store.ts";
import { createUuidV7 } from "../../crypto/random.ts";
import { isJsonObject } from "../../json/type_guards.ts";
import { ToolCallStore } from "../../tools/tool_call_store.ts";
import {
  closeCall,
  createResultMessage,
  type OpenCall,
  toMessageCall,
  toRoundGeneration,
} from "../tools/tool_messages.ts";
import { findMedia, splitContinued, withMedia } from "../reply.ts";
import { INTERRUPTED } from "../replies.ts";
import type { VariantStore } from "../../conversations/variants.ts";

/** Dependencies of the recovery. */
export interface RecoveryDeps {
  db: Database;
  store: ConversationStore;
  conversationWriter: ConversationWriter;
  variants: VariantStore;
  blocks: BlockStore;
  /** Decrypts tool calls. */
  sealer: PurposeSealer;
  journalFolder: string;
  journalSealer: PurposeSealer;
  log: Log;
  now(): number;
}

/** A reply that was running when the process ended, and can go on. */
export interface UnfinishedReply {
  row: ReplyRow;
  /** What it wrote in this run, and its plan. */
  written: JournalBatch & { plan: ReplyPlan & { request: StatefulChatRequest } };
  /** Number of rounds of tool calls before. All calls have results. */
  rounds: number;
}

/** The replies that can go on. */
export interface UnfinishedReplies {
  replies: UnfinishedReply[];
  /** Whether the journal has text of other replies, which couldn't be saved. */
  isJournalNeeded: boolean;
}

/** How often one reply goes on. A reply that keeps ending the server must not do so forever. */
const MAX_RESTARTS = 100;

/**
 * Recovers the replies of a killed process. Those that can't go on are saved as interrupted. Call it once, before any reply
 * starts. If one can't be recovered, the journal stays, and the others aren't affected.
 *
 * @returns The replies that can go on. Their text stays in the journal.
 */
export async function recoverReplies(deps: RecoveryDeps): Promise<UnfinishedReplies> {
  const { db, store, conversationWriter, variants, journalFolder, journalSealer, log, now } = deps;
  const calls = new ToolCallStore(db, deps.sealer);
  const find = (row: ReplyRow) => {
    try {
      return findTools(deps, calls, row);
    } catch (error) {
      log("error", "Can't read the tool calls of an interrupted reply", { error: getErrorTrace(error) });
      return undefined;
    }
  };
  const unended = findUnendedReplies(db).map((row) => ({ ...row, tools: find(row) })).filter(({ tools }) =>
    tools?.isWaiting !== true
  );
  const runs = unended.map(({ mid, generation, tools }) => ({
    messageId: mid,
    generation: tools === undefined ? generation : toRoundGeneration(generation, tools.rounds),
  }));
  let journalled: Map<string, JournalBatch>;
  try {
    journalled = await readJournal(journalFolder, journalSealer, runs);
  } catch (error) {
    // Without the journal, the saved replies would lack text that users have seen. The next start may be able to read
    // it.
    log("error", "Can't recover the interrupted replies", { error: getErrorTrace(error) });
    return { replies: [], isJournalNeeded: true };
  }
  const replies: UnfinishedReply[] = [];
  let areAllSettled = true;
  let recovered = 0;
  for (const [index, { mid, conversation_id: id, previous_variant: previous, tools }] of unended.entries()) {
    try {
      if (store.find(id) !== undefined) {
        const batch = journalled.get(runs[index]!.generation)!;
        if (canGoOn(batch, tools)) {
          replies.push({ row: unended[index]!, written: batch, rounds: tools?.rounds ?? 0 });
          continue;
        }
        const ended = (tools?.open ?? []).map((open) => endCall(open, mid, now()));
        const extraStatements: Statement[] = [
          createEndStatement(id, mid, now()),
          deleteResumeRow(id, mid),
          ...ended.map(({ record }) => calls.save(record)),
        ];
        await conversationWriter.editMessage(id, mid, (before) => {
          const attempt = interrupted(withEndedCalls(before, ended), batch, now());
          const { message, statements } = settleAttempt(variants, id, attempt, previous, attempt.updated_at);
          extraStatements.push(...statements);
          return message;
        }, { byReply: true, withRounds: true, extraStatements: () => extraStatements });
        recovered++;
      }
    } catch (error) {
      areAllSettled = false;
      log("error", "Can't recover an interrupted reply", { error: getErrorTrace(error) });
    }
  }
  if (recovered > 0) log("info", "Recovered interrupted replies", { count: recovered });
  if (areAllSettled && replies.length === 0) await removeJournals(journalFolder);
  return { replies, isJournalNeeded: !areAllSettled };
}

/** Whether a reply can go on: its request is known, and no tool was running. */
function canGoOn(written: JournalBatch, tools: RecoveredTools | undefined): written is UnfinishedReply["written"] {
  const { plan } = written;
  if (plan?.request === undefined || (tools?.open.length ?? 0) > 0) return false;
  const hasWay = plan.stream != null || plan.isRepeated !== true;
  return hasWay && (plan.restarts ?? 0) < MAX_RESTARTS;
}

/** The tool calls of an interrupted reply. */
interface RecoveredTools {
  /** Number of rounds before the current text. */
  rounds: number;
  /** Calls without a result. */
  open: OpenCall[];
  /** True if the reply only waits for the owner, so that it can continue. */
  isWaiting: boolean;
}

/** Finds the tool calls of an interrupted reply. Returns `undefined` if it had no rounds. */
function findTools(
  { db, store, blocks }: RecoveryDeps,
  calls: ToolCallStore,
  row: ReplyRow,
): RecoveredTools | undefined {
  const { conversation_id: id, mid } = row;
  if (findResumeRow(db, id, mid) === undefined || store.find(id) === undefined) return undefined;
  if (blocks.findLiveRow(id, mid) === undefined) return undefined;
  const messages = blocks.getRounds(id, mid);
  const last = messages.findLast(({ role }) => role === "assistant");
  const stored = Array.isArray(last?.tool_calls) ? last.tool_calls.filter(isJsonObject) : [];
  const records = last === undefined ? [] : calls.listByMessage(id, last.id);
  const open = records.filter(({ state }) => state === "pending" || state === "running").map((record) => ({
    record,
    extra: stored.find((call) => call.id === record.id) ?? {},
  }));
  const states = open.map(({ record }) => record.state);
  return {
    rounds: messages.filter(({ role }) => role === "assistant").length,
    open,
    isWaiting: states.includes("pending") && !states.includes("running"),
  };
}

function endCall(open: OpenCall, replyId: string, now: number): OpenCall {
  const ended = { ...open } satisfies OpenCall;
  closeCall(ended, now, ({ content, text }) => {
    ended.record = { ...ended.record, result: text };
    const ids = { replyId, id: createUuidV7(), now: new Date(now).toISOString() };
    ended.result = createResultMessage(ended.record.id, content, ids);
  });
  return ended;
}

/** Writes the states of ended calls into the last round, and adds their results after it. */
function withEndedCalls(message: Message, ended: readonly OpenCall[]): Message {
  const { tool_rounds: rounds = [] } = message;
  if (ended.length === 0) return message;
  const byId = new Map(ended.map((open) => [open.record.id, open]));
  const changed = rounds.map((round) => {
    if (!Array.isArray(round.tool_calls)) return round;
    const toolCalls = round.tool_calls.map((call) => {
      const open = isJsonObject(call) ? byId.get(String(call.id)) : undefined;
      return open === undefined ? call : toMessageCall(open);
    });
    return { ...round, tool_calls: toolCalls };
  });
  return { ...message, tool_rounds: [...changed, ...ended.flatMap(({ result }) => result ?? [])] };
}

function interrupted(message: Message, { text, reasoning, media = [] }: JournalBatch, now: number): Message {
  const base = { text: getContentText(message.content), reasoning: message.reasoning ?? "" };
  const split = reasoning === "" ? splitContinued(base, base.text + text) : undefined;
  return {
    ...message,
    content: text === "" && media.length === 0
      ? message.content
      : withMedia(split?.text ?? base.text + text, [...findMedia(message.content), ...media]),
    ...(reasoning === "" ? {} : { reasoning: base.reasoning + reasoning }),
    ...(split && { reasoning: split.reasoning, split_reasoning: true }),
    status: "interrupted",
    error: INTERRUPTED,
    updated_at: new Date(now).toISOString(),
  };
}

const decoder = new TextDecoder();

/**
 * Reads the journaled text of some replies, by the generation of their run, which is unique.
 *
 * A truncated or damaged record ends its file. Batches of a reply after a gap are ignored, so that its text has no
 * holes.
 */
export async function readJournal(
  folder: string,
  sealer: PurposeSealer,
  keys: JournalKey[],
): Promise<Map<string, JournalBatch>> {
  const found = new Map<string, JournalBatch>(
    keys.map(({ generation }) => [generation, { after: 0, seq: 0, text: "", reasoning: "" }]),
  );
  const messageIds = new Map(keys.map(({ messageId, generation }) => [generation, messageId]));
  if (keys.length === 0) return found;
  for (const number of await listJournalNumbers(folder)) {
    for await (
      const [mid, generation, after, seq, text, reasoning, media, plan] of readEntries(folder, sealer, number)
    ) {
      const whole = found.get(generation);
      if (whole === undefined || messageIds.get(generation) !== mid || whole.seq !== after) continue;
      whole.seq = seq;
      whole.text += text;
      whole.reasoning += reasoning;
      if (media && media.length > 0) whole.media = [...whole.media ?? [], ...media];
      if (plan !== undefined) whole.plan = { ...whole.plan, ...plan };
    }
  }
  return found;
}

/** Deletes all files. Call it once all interrupted replies are saved. */
export async function removeJournals(folder: string): Promise<void> {
  for (const number of await listJournalNumbers(folder)) await removeJournal(folder, number);
}

async function* readEntries(folder: string, sealer: PurposeSealer, number: number): AsyncGenerator<JournalEntry> {
  const bytes = await readFileIfExists(getJournalPath(folder, number));
  if (bytes === undefined) return;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0, index = 0; at + LENGTH_BYTES <= bytes.length; index++) {
    const begin = at + LENGTH_BYTES;
    const end = begin + view.getUint32(at);
    const entries = end > bytes.length
      ? undefined
      : openRecord(sealer, createRecordAad(number, index), bytes.subarray(begin, end));
    if (entries === undefined) return;
    yield* entries;
    at = end;
  }
}

function openRecord(
  sealer: PurposeSealer,
  aad: ReturnType<typeof createRecordAad>,
  sealed: Uint8Array,
): JournalEntry[] | undefined {
  try {
    return JSON.parse(decoder.decode(sealer.openNow(aad, sealed)));
  } catch {
    return undefined; // Truncated by a power failure, or not a journal record.
  }
}
