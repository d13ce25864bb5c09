/** What a client hands in as the messages of a whole conversation, and what becomes of it. */
import { type ImagePartsDeps, storeInlineImages } from "../attachments/image_parts.ts";
import { uuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import { isId } from "../storage/ids.ts";
import { yieldIfTickUsedUp } from "../async/yield_to_event_loop.ts";
import { getInputVariants, type InputTexts, type VariantInput, withInputTexts } from "./input_variants.ts";
import { completeMessage, type Message, type MessageInput } from "./message.ts";

/** Messages between two looks at the clock. */
const AT_ONCE = 200;

/** Messages as a client sent them, each with the id it is to have, their pictures stored. */
export interface InputMessages {
  mids: string[];
  inputs: MessageInput[];
}

/**
 * Takes messages in.
 *
 * @throws {AppError} `invalid_request` for an id that occurs twice; as `storeInlineImages` does
 */
export async function prepareMessages(pictures: ImagePartsDeps, given: MessageInput[]): Promise<InputMessages> {
  const mids = given.map((message) => getInputId(message) ?? uuidV7());
  refuseDuplicates(mids);
  const inputs: MessageInput[] = [];
  for (const [index, message] of given.entries()) {
    if (index % AT_ONCE === 0) await yieldIfTickUsedUp();
    const mayHavePictures = Array.isArray(message.content) || getInputVariants(message) !== undefined;
    inputs.push(mayHavePictures ? await withStoredPictures(pictures, message) : message);
  }
  return { mids, inputs };
}

/**
 * Makes whole messages, a piece at a time so that nobody is held up.
 *
 * @param stored The messages as they stand, by id.
 * @param runningId The message that a reply writes; it stays as it stands.
 * @param now ISO 8601, UTC.
 * @returns The messages, and those among them that came with all their texts.
 */
export async function completeMessages(
  { mids, inputs }: InputMessages,
  { stored, branches, runningId, now }: {
    stored: Map<string, Message>;
    /** Messages whose versions have continuations of their own. */
    branches: ReadonlySet<string>;
    runningId?: string;
    now: string;
  },
): Promise<{ messages: Message[]; withTexts: InputTexts[] }> {
  const messages: Message[] = [];
  const withTexts: InputTexts[] = [];
  for (const [index, input] of inputs.entries()) {
    const mid = mids[index]!;
    if (index % AT_ONCE === 0) await yieldIfTickUsedUp();
    if (mid === runningId) {
      messages.push(stored.get(mid)!);
      continue;
    }
    const message = completeMessage(input, mid, now, stored.get(mid));
    const texts = getInputVariants(input);
    if (texts === undefined) messages.push(message);
    else {
      if (branches.has(mid)) refuseOtherVersions(stored.get(mid)!, input, texts.length, index);
      const whole = withInputTexts(message, input, texts, now);
      withTexts.push(whole);
      messages.push(whole.message);
    }
  }
  return { messages, withTexts };
}

/** A list of messages is one path: it can't say what would follow other versions. @throws {AppError} `invalid_request` */
function refuseOtherVersions(stored: Message, input: MessageInput, count: number, index: number): void {
  if (count === stored.variant_count && (input.active_variant ?? 0) === stored.active_variant) return;
  const message = `Message "${stored.id}" has ${stored.variant_count} versions with continuations of their own, and ` +
    `number ${stored.active_variant} is active; use PATCH to switch and POST /api/chat to add one`;
  throw new AppError("invalid_request", message, { issues: [{ path: `messages.${index}.variants`, message }] });
}

/** Returns the ID of a client's message, `id` or `mid`. */
export function getInputId({ id, mid }: MessageInput): string | undefined {
  return id ?? (typeof mid === "string" && isId(mid) ? mid : undefined);
}

async function withStoredPictures(pictures: ImagePartsDeps, message: MessageInput): Promise<MessageInput> {
  const texts = getInputVariants(message);
  const variants: VariantInput[] = [];
  for (const text of texts ?? []) variants.push({ ...text, content: await storeInlineImages(pictures, text.content) });
  return { ...message, content: await storeInlineImages(pictures, message.content), ...(texts && { variants }) };
}

function refuseDuplicates(mids: string[]): void {
  const seen = new Set<string>();
  mids.forEach((mid, index) => {
    if (seen.has(mid)) {
      const message = `Message id "${mid}" occurs twice`;
      throw new AppError("invalid_request", message, { issues: [{ path: `messages.${index}.id`, message }] });
    }
    seen.add(mid);
  });
}
