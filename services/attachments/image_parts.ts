/** Pictures in the content parts of messages: moved out into attachments as they are stored, and back in as they are sent. */
import { yieldToEventLoop } from "../async/yield_to_event_loop.ts";
import { Buffer } from "node:buffer";
import { AppError } from "../errors.ts";
import { attachmentUrl, nameInUrl } from "./attachment_names.ts";
import type { Attachments } from "./attachments.ts";
import type { ImagePool } from "./images/image_pool.ts";
import { sniffImage } from "./images/image_type.ts";

/** A part of a message in OpenAI's form. */
interface Part {
  type: string;
  [more: string]: unknown;
}

/** Text, or parts. */
type Content = string | Part[];

/** What pictures are kept in and made with. */
export interface PictureParts {
  attachments: Pick<Attachments, "keep" | "bytes">;
  images: Pick<ImagePool, "toJpeg">;
}

/** Longer side of an image sent to a model, in pixels (docs/protocols/llm.md#images-in-messages). */
const SENT_PX = 1568;

/** Pictures that are sent again with every turn; a picture costs about as much as a page of text. */
const MAX_SENT = 4;

const EARLIER = "[an earlier picture, not sent again]";
const GONE = "[a picture that is no longer there]";

/** Text decoded at a time; a multiple of four. */
const STEP_CHARS = 1024 * 1024;

/**
 * Stores every data URL picture of a message and lets its part refer to what was stored. Anything else stays as it is,
 * also a data URL that is none of the pictures we take.
 *
 * @throws {AppError} `too_large`, `storage_full`
 */
export async function moveOut<T extends Content | null | undefined>(parts: PictureParts, content: T): Promise<T> {
  if (!Array.isArray(content) || !content.some((part) => dataUrlOf(part) !== undefined)) return content;
  const moved: Part[] = [];
  for (const part of content as Part[]) {
    const bytes = await decodedOf(part);
    if (bytes === undefined || sniffImage(bytes) === undefined) moved.push(part);
    else moved.push(withUrl(part, attachmentUrl((await parts.attachments.keep(bytes)).name)));
  }
  return moved as T;
}

/**
 * Puts pictures into messages as a model server takes them: the last few as JPEG in data URLs, a word in the place of
 * the others. Addresses that are not ours stay.
 *
 * @throws {AppError} `unprocessable` when a picture of the last message cannot be read, `not_available`
 */
export async function moveIn<T extends { content: Content }>(parts: PictureParts, messages: T[]): Promise<T[]> {
  let sentCount = 0;
  const filled = [...messages];
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index]!;
    if (!Array.isArray(message.content) || !message.content.some(isOurs)) continue;
    const content = [...message.content];
    for (let at = content.length - 1; at >= 0; at--) {
      if (!isOurs(content[at]!)) continue;
      const isSent = sentCount++ < MAX_SENT;
      content[at] = isSent ? await sentPart(parts, content[at]!, index === messages.length - 1) : textPart(EARLIER);
    }
    filled[index] = { ...message, content };
  }
  return filled;
}

async function sentPart({ attachments, images }: PictureParts, part: Part, isNewest: boolean): Promise<Part> {
  try {
    const name = nameInUrl(urlOf(part)!);
    const bytes = name === undefined ? await decodedOf(part) : await attachments.bytes(name);
    // What is no picture of ours was put there by the client for its own model server.
    if (bytes === undefined || sniffImage(bytes) === undefined) return part;
    const jpeg = await images.toJpeg(bytes, { maxPx: SENT_PX });
    return withUrl(part, `data:image/jpeg;base64,${Buffer.from(jpeg.buffer).toString("base64")}`);
  } catch (error) {
    const isLost = error instanceof AppError && (error.code === "not_found" || error.code === "unprocessable");
    if (isLost && !isNewest) return textPart(GONE);
    throw error;
  }
}

function isOurs(part: Part): boolean {
  const url = urlOf(part);
  return url !== undefined && (nameInUrl(url) !== undefined || dataUrlOf(part) !== undefined);
}

/** The address may stand in an object, as OpenAI has it, or by itself, as some clients write. */
function urlOf(part: Part): string | undefined {
  if (part.type !== "image_url") return undefined;
  const image = part.image_url as string | { url?: unknown } | null | undefined;
  const url = typeof image === "string" ? image : image?.url;
  return typeof url === "string" ? url : undefined;
}

function withUrl(part: Part, url: string): Part {
  const image = part.image_url;
  return { ...part, image_url: typeof image === "string" ? url : { ...image as object, url } };
}

function textPart(text: string): Part {
  return { type: "text", text };
}

/** Gives the base64 text of a picture's data URL. */
function dataUrlOf(part: Part): string | undefined {
  const url = urlOf(part);
  if (url === undefined || !/^data:image\//i.test(url.slice(0, 11))) return undefined;
  const comma = url.indexOf(",");
  return comma > 0 && /;base64$/i.test(url.slice(Math.max(0, comma - 7), comma)) ? url.slice(comma + 1) : undefined;
}

/** Decodes a piece at a time, so that twenty megabytes hold nobody up. */
async function decodedOf(part: Part): Promise<Uint8Array | undefined> {
  const text = dataUrlOf(part);
  if (text === undefined) return undefined;
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < text.length; at += STEP_CHARS) {
    pieces.push(Buffer.from(text.slice(at, at + STEP_CHARS), "base64"));
    if (text.length > STEP_CHARS) await yieldToEventLoop();
  }
  return Buffer.concat(pieces);
}
