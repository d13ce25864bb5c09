/** Turns the messages that a client sends with a whole conversation into stored ones. */
import { type ImagePartsDeps, storeInlineImages } from "../attachments/image_parts.ts";
import { uuidV7 } from "../crypto/random.ts";
import { AppError } from "../errors.ts";
import { isId } from "../storage/ids.ts";
import { yieldIfTickUsedUp } from "../async/yield_to_event_loop.ts";
import { getInputVariants, type InputTexts, type VariantInput, withInputTexts } from "./input_variants.ts";
import { completeMessage, type Message, type MessageInput } from "./message.ts";

/** Messages processed between two checks of the clock. */
const STEP_MESSAGES = 200;

/** Messages of a client with their ids. Their images are stored. */
export interface InputMessages {
  mids: string[];
  inputs: MessageInput[];
}

/**
 * Assigns ids to messages and stores their images.
 *
 * @throws {AppError} `invalid_request` for duplicate ids, and as `storeInlineImages`.
 */
export async function prepareMessages(images: ImagePartsDeps, messages: MessageInput[]): Promise<InputMessages> {
  const mids = messages.map((message) => getInputId(message) ?? uuidV7());
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
 * Creates the messages to store, a few at a time so that other requests run in between.
 *
 * @param stored The stored messages by id.
 * @param runningId The message that a reply is writing. It stays unchanged.
 * @param now ISO 8601, UTC.
 * @returns The messages, and those among them that were sent with all their versions.
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

/** Refuses other versions of a branch point: a list of messages can't say what follows them. @throws {AppError} `invalid_request` */
function refuseOtherVersions(stored: Message, input: MessageInput, count: number, index: number): void {
  if (count === stored.variant_count && (input.active_variant ?? 0) === stored.active_variant) return;
  const message = `Message "${stored.id}" has ${stored.variant_count} versions with continuations of their own, and ` +
    `number ${stored.active_variant} is active; use PATCH to switch and POST /api/chat to add one`;
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
      const message = `Message id "${mid}" occurs twice`;
      throw new AppError("invalid_request", message, { issues: [{ path: `messages.${index}.id`, message }] });
    }
    seen.add(mid);
  });
}
