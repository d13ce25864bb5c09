/**
 * New messages that aren't written by a reply: those of a conversation sent by a client, and greetings of characters.
 */
import { yieldIfTickUsedUp } from "../async/delay.ts";
import { type ImagePartsDeps, storeInlineImages } from "../attachments/image_parts.ts";
import { createUuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import type { Statement } from "../storage/database/database.ts";
import { isId } from "../storage/ids.ts";
import {
  completeMessage,
  hasSameJson,
  type Message,
  type MessageContent,
  type MessageInput,
  parseIsoTime,
} from "./message.ts";
import type { VariantRecord, VariantStore, VariantText } from "./variants.ts";
import type { ConversationHead } from "./conversation.ts";

/** Number of messages processed between two checks of the clock. */
const STEP_MESSAGES = 200;

/** Messages of a client, with IDs and stored images. */
interface InputMessages {
  mids: string[];
  inputs: MessageInput[];
}

/**
 * Assigns ids to messages and stores their images.
 *
 * @throws {AppError} `invalid_request` for duplicate ids, and like `storeInlineImages`.
 */
export async function prepareMessages(images: ImagePartsDeps, messages: MessageInput[]): Promise<InputMessages> {
  const mids = messages.map((message) => getInputId(message) ?? createUuidV7());
  refuseDuplicates(mids);
  const inputs: MessageInput[] = [];
  for (const [index, message] of messages.entries()) {
    if (index % STEP_MESSAGES === 0) await yieldIfTickUsedUp();
    const mayHaveImages = Array.isArray(message.content) || getInputVariants(message) !== undefined;
    inputs.push(mayHaveImages ? await storeImages(images, message) : message);
  }
  return { mids, inputs };
}

/**
 * Creates the messages to store. Yields between steps, so that other requests can run.
 *
 * @param stored The stored messages by id.
 * @param runningId The message that a reply is writing. It doesn't change.
 * @param now ISO 8601, UTC.
 * @returns The messages, and those that were sent with all their versions. An unchanged message is the stored object, so
 *   that its block isn't written or compared.
 */
export async function completeMessages(
  { mids, inputs }: InputMessages,
  { stored, branches, runningId, now }: {
    stored: Map<string, Message>;
    /** Messages whose versions have continuations. */
    branches: ReadonlySet<string>;
    runningId?: string;
    now: string;
  },
): Promise<{ messages: Message[]; withTexts: InputTexts[] }> {
  const messages: Message[] = [];
  const withTexts: InputTexts[] = [];
  for (const [index, input] of inputs.entries()) {
    const mid = mids[index]!;
    if (index % STEP_MESSAGES === 0) await yieldIfTickUsedUp();
    if (mid === runningId) {
      messages.push(stored.get(mid)!);
      continue;
    }
    const before = stored.get(mid);
    const message = completeMessage(input, mid, now, before);
    const texts = getInputVariants(input);
    if (texts === undefined) messages.push(before !== undefined && hasSameJson(message, before) ? before : message);
    else {
      if (branches.has(mid)) refuseOtherVersions(before!, input, texts.length, index);
      const whole = withInputTexts(message, input, texts, now);
      withTexts.push(whole);
      messages.push(whole.message);
    }
  }
  return { messages, withTexts };
}

/**
 * Rejects other versions of a branch point: a list of messages can't say what follows them.
 *
 * @throws {AppError} `invalid_request`
 */
function refuseOtherVersions(stored: Message, input: MessageInput, count: number, index: number): void {
  if (count === stored.variant_count && (input.active_variant ?? 0) === stored.active_variant) return;
  const message = `Message "${stored.id}" has ${stored.variant_count} versions with continuations, and ` +
    `number ${stored.active_variant} is active. Use PATCH to switch versions and POST /api/chat to add one`;
  throw new AppError("invalid_request", message, { issues: [{ path: `messages.${index}.variants`, message }] });
}

/** Returns the id of a client's message, which is in `id` or `mid`. */
export function getInputId({ id, mid }: MessageInput): string | undefined {
  return id ?? (typeof mid === "string" && isId(mid) ? mid : undefined);
}

async function storeImages(images: ImagePartsDeps, message: MessageInput): Promise<MessageInput> {
  const texts = getInputVariants(message);
  const variants: VariantInput[] = [];
  for (const text of texts ?? []) variants.push({ ...text, content: await storeInlineImages(images, text.content) });
  return { ...message, content: await storeInlineImages(images, message.content), ...(texts && { variants }) };
}

function refuseDuplicates(mids: string[]): void {
  const seen = new Set<string>();
  mids.forEach((mid, index) => {
    if (seen.has(mid)) {
      const message = `The message ID "${mid}" occurs twice`;
      throw new AppError("invalid_request", message, { issues: [{ path: `messages.${index}.id`, message }] });
    }
    seen.add(mid);
  });
}

/** A version sent by a client. Its index is its number. */
interface VariantInput {
  content: MessageContent;
  reasoning?: string | null;
  model?: string | null;
  connection_id?: string | null;
  created_at?: string | null;
}

/** A message with its new versions. */
interface InputTexts {
  message: Message;
  /** All versions except the active one. */
  others: VariantText[];
}

/** A change of the rows of versions. */
export interface TextChange {
  statements: Statement[];
  /** Messages whose versions change. */
  mids: string[];
  /** All rows that the statements replace, to store them in the revision. */
  replaced: VariantText[];
}

/** No change. */
export const NO_TEXT_CHANGE: TextChange = { statements: [], mids: [], replaced: [] };

/** Returns the versions of a client's message, if it has any. */
function getInputVariants({ variants }: MessageInput): VariantInput[] | undefined {
  return Array.isArray(variants) ? variants as VariantInput[] : undefined;
}

/**
 * Adds the versions of a client's message. `content` takes precedence over the text of the active version.
 *
 * @param message The message without versions.
 * @param now ISO 8601, UTC.
 * @throws {AppError} `invalid_request` if `active_variant` isn't one of them.
 */
function withInputTexts(
  message: Message,
  input: MessageInput,
  texts: VariantInput[],
  now: string,
): InputTexts {
  const active = typeof input.active_variant === "number" ? input.active_variant : 0;
  const shown = texts[active];
  if (shown === undefined) {
    const reason = `Message "${message.id}" has ${texts.length} variants, so active_variant can't be ${active}`;
    throw new AppError("invalid_request", reason);
  }
  const { content, reasoning, model, connection_id } = shown;
  return {
    message: {
      ...message,
      content: input.content ?? content,
      ...(input.content == null && reasoning != null && { reasoning }),
      ...(input.content == null && model != null && { model }),
      ...(input.content == null && connection_id != null && { connection_id }),
      variant_count: texts.length,
      active_variant: active,
    },
    others: texts.flatMap((text, n) => n === active ? [] : [{ mid: message.id, n, record: toRecord(text, now) }]),
  };
}

/** Returns the change from the stored versions to the client's. Equal versions retain their other fields. */
export async function changeTexts(store: VariantStore, id: string, inputs: InputTexts[]): Promise<TextChange> {
  if (inputs.length === 0) return NO_TEXT_CHANGE;
  const rows = await store.openMany(store.listRowsOf(id, inputs.map(({ message }) => message.id)));
  const stored = Map.groupBy(rows, ({ mid }) => mid);
  const change: TextChange = { statements: [], mids: [], replaced: [] };
  for (const { message, others } of inputs) {
    const before = stored.get(message.id) ?? [];
    const records = new Map(before.map(({ n, record }) => [n, record]));
    const changed = others.filter(({ n, record }) => !isSame(records.get(n), record));
    const isShorter = before.some(({ n }) => n >= message.variant_count);
    if (changed.length === 0 && !isShorter) continue;
    change.mids.push(message.id);
    change.replaced.push(...before);
    change.statements.push(store.removeFrom(id, message.id, message.variant_count), ...store.restore(id, changed));
  }
  return change;
}

function toRecord(input: VariantInput, now: string): VariantRecord {
  const { content, reasoning, model, connection_id, created_at } = input;
  return {
    content,
    ...(reasoning != null && { reasoning }),
    ...(model != null && { model }),
    ...(connection_id != null && { connection_id }),
    status: "complete",
    updated_at: parseIsoTime(created_at) ?? now,
  };
}

/** Returns whether two versions look the same in a list. */
function isSame(stored: VariantRecord | undefined, input: VariantRecord): boolean {
  const getText = (record: VariantRecord) => [record.content, record.reasoning, record.model, record.updated_at];
  // Clients without support for connections send versions without one.
  if (input.connection_id !== undefined && input.connection_id !== stored?.connection_id) return false;
  return stored !== undefined && JSON.stringify(getText(stored)) === JSON.stringify(getText(input));
}

/** The greetings of a character. One starts a conversation; the others become versions of its message. */
interface Greetings {
  characterId: string;
  /** Texts by number, with macros expanded; `""` for a number without a greeting. */
  texts: string[];
  /** Number of the first greeting for groups. Other conversations can't use greetings from this number on. */
  groupOnlyFrom: number;
}

/** The character whose greetings are wanted, and the conversation they're for. */
interface GreetingQuestion {
  characterId: string;
  personaId?: string;
  /** Whether the conversation is a group. */
  isGroup: boolean;
}

/** Returns the greetings of a character; `undefined` if it has none. */
export type GreetingSource = (question: GreetingQuestion) => Promise<Greetings | undefined>;

/** Returns the question for the greetings of a participant. */
export function createGreetingQuestion(head: ConversationHead, characterId: string): GreetingQuestion {
  const isGroup = head.participants.length > 1;
  return { characterId, personaId: head.persona_id as string | undefined, isGroup };
}

/** A message with a greeting. */
interface GreetingMessage {
  message: Message;
  /** Returns the statements that save the other greetings as versions. */
  createStatements(conversationId: string): Statement[];
}

/**
 * Creates a message with a greeting.
 *
 * @param requestedIndex Number of the greeting. If it's empty, the first one that isn't. Defaults to the first one for
 *   groups in a group, otherwise to the first one.
 * @param now ISO 8601, UTC.
 * @returns `undefined` if the character has no greeting.
 * @throws {AppError} `invalid_request` if the number is higher than that of the last greeting.
 */
export function createGreeting(
  { characterId, texts, groupOnlyFrom }: Greetings,
  requestedIndex: number | undefined,
  now: string,
  variants: VariantStore,
): GreetingMessage | undefined {
  const greeting = requestedIndex ?? Math.max(0, texts.findIndex((text, n) => n >= groupOnlyFrom && text !== ""));
  const requestedText = texts[greeting];
  if (requestedText === undefined && greeting > 0) {
    throw new AppError("invalid_request", `Character "${characterId}" has no greeting ${greeting}`);
  }
  const greetings = texts.filter((text) => text !== "");
  const content = requestedText || greetings[0];
  if (content === undefined) return undefined;
  // By number, because greetings may have the same text.
  const active = requestedText ? texts.slice(0, greeting).filter((text) => text !== "").length : 0;
  const mid = createUuidV7();
  const message = {
    ...completeMessage({ role: "assistant", content, character_id: characterId }, mid, now),
    variant_count: greetings.length,
    active_variant: active,
  };
  const others = greetings.flatMap((text, n) =>
    n === active ? [] : [{ mid, n, record: { content: text, status: "complete" as const, updated_at: now } }]
  );
  return { message, createStatements: (conversationId) => variants.restore(conversationId, others) };
}
