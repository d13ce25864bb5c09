/** Images in content parts of messages: stored as attachments when a message is saved, and inlined when it's sent. */
import { yieldToEventLoop } from "../async/delay.ts";
import { Buffer } from "node:buffer";
import { AppError } from "../errors.ts";
import { createAttachmentUrl, parseAttachmentUrl, sniffRecording } from "./attachment_rows.ts";
import type { Attachments } from "./attachments.ts";
import type { ImagePool } from "./images/image_pool.ts";
import { sniffImage } from "./images/image_header.ts";
import { toWaveFile } from "../speech/wave_file.ts";

/** A content part in OpenAI's format. */
interface Part {
  type: string;
  [more: string]: unknown;
}

/** Text or parts. */
type Content = string | Part[];

/** Dependencies for images in messages. */
export interface ImagePartsDeps {
  attachments: Pick<Attachments, "storeInline" | "storeRecording" | "readAll">;
  images: Pick<ImagePool, "toJpeg">;
}

/** Longer side of an image sent to a model, in pixels (docs/protocols/llm.md#images-in-messages). */
const SENT_PX = 1568;

/** Maximum number of images sent per request. An image costs about as many tokens as a page of text. */
const MAX_SENT = 4;

/** Sample rate of PCM without a header, in Hz. @see https://platform.openai.com/docs/guides/audio */
const SOUND_HZ = 24_000;

const OMITTED_IMAGE = "[an earlier picture, not sent again]";
const MISSING_IMAGE = "[an image that no longer exists]";
const NO_IMAGE = "[a recording, not sent]";

/** Characters decoded per step; a multiple of four. */
const STEP_CHARS = 1024 * 1024;

/**
 * Stores the data URL images of a message as attachments and replaces them with URLs. Everything else is left
 * unchanged, including data URLs of unsupported formats.
 *
 * @throws {AppError} `too_large`, `storage_full`
 */
export async function storeInlineImages<T extends Content | null | undefined>(
  deps: ImagePartsDeps,
  content: T,
): Promise<T> {
  if (!Array.isArray(content) || !content.some((part) => getBase64(part) !== undefined)) return content;
  const moved: Part[] = [];
  for (const part of content as Part[]) {
    const bytes = await decodeDataUrl(part);
    if (bytes === undefined || sniffImage(bytes) === undefined) moved.push(part);
    else moved.push(withUrl(part, createAttachmentUrl((await deps.attachments.storeInline(bytes)).name)));
  }
  return moved as T;
}

/** Returns the names of the attachments that parts show. */
export function listAttachmentNames(parts: readonly { type: string }[]): string[] {
  return parts.map((part) => parseAttachmentUrl(getImageUrl(part as Part) ?? "")).filter((name) => name !== undefined);
}

/**
 * Stores the sound of a reply, and returns its URL.
 *
 * @param bytes A file, or PCM without a header, which is all that streams contain.
 * @throws {AppError} `too_large`, `storage_full`
 */
export async function storeSound({ attachments }: ImagePartsDeps, bytes: Uint8Array): Promise<string> {
  const file = sniffRecording(bytes) === undefined ? toWaveFile(bytes, SOUND_HZ) : bytes;
  return createAttachmentUrl((await attachments.storeRecording(file)).name);
}

/**
 * Inlines images for a model server: the last few as JPEG data URLs, earlier ones as a text note. Foreign URLs are left
 * unchanged.
 *
 * @throws {AppError} `unprocessable` if an image of the last message can't be read, `not_available`
 */
export async function inlineImages<T extends { content: Content | null }>(
  deps: ImagePartsDeps,
  messages: T[],
): Promise<T[]> {
  let sentCount = 0;
  const filled = [...messages];
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index]!;
    if (!Array.isArray(message.content) || !message.content.some(isStoredOrInline)) continue;
    const content = [...message.content];
    for (let at = content.length - 1; at >= 0; at--) {
      if (!isStoredOrInline(content[at]!)) continue;
      const isSent = sentCount++ < MAX_SENT;
      content[at] = isSent
        ? await toSentPart(deps, content[at]!, index === messages.length - 1)
        : createTextPart(OMITTED_IMAGE);
    }
    filled[index] = { ...message, content };
  }
  return filled;
}

async function toSentPart({ attachments, images }: ImagePartsDeps, part: Part, isNewest: boolean): Promise<Part> {
  try {
    const name = parseAttachmentUrl(getImageUrl(part)!);
    const bytes = name === undefined ? await decodeDataUrl(part) : await attachments.readAll(name);
    if (bytes === undefined || sniffImage(bytes) === undefined) {
      // Images in unsupported formats are passed on: the client intended them for its model server.
      return name === undefined ? part : createTextPart(NO_IMAGE);
    }
    const jpeg = await images.toJpeg(bytes, { maxPx: SENT_PX });
    // Servers don't know where a picture is from.
    const { origin: _, ...sent } = part;
    return withUrl(sent as Part, `data:image/jpeg;base64,${Buffer.from(jpeg.buffer).toString("base64")}`);
  } catch (error) {
    const isLost = error instanceof AppError && (error.code === "not_found" || error.code === "unprocessable");
    if (isLost && !isNewest) return createTextPart(MISSING_IMAGE);
    throw error;
  }
}

function isStoredOrInline(part: Part): boolean {
  const url = getImageUrl(part);
  return url !== undefined && (parseAttachmentUrl(url) !== undefined || getBase64(part) !== undefined);
}

/** Supports `image_url` as an object (OpenAI) and as a string (some clients). */
function getImageUrl(part: Part): string | undefined {
  if (part.type !== "image_url") return undefined;
  const image = part.image_url as string | { url?: unknown } | null | undefined;
  const url = typeof image === "string" ? image : image?.url;
  return typeof url === "string" ? url : undefined;
}

function withUrl(part: Part, url: string): Part {
  const image = part.image_url;
  return { ...part, image_url: typeof image === "string" ? url : { ...image as object, url } };
}

function createTextPart(text: string): Part {
  return { type: "text", text };
}

/** Returns the base64 text of an image data URL. */
function getBase64(part: Part): string | undefined {
  const url = getImageUrl(part);
  if (url === undefined || !/^data:image\//i.test(url.slice(0, 11))) return undefined;
  const comma = url.indexOf(",");
  return comma > 0 && /;base64$/i.test(url.slice(Math.max(0, comma - 7), comma)) ? url.slice(comma + 1) : undefined;
}

/** Decodes in steps, so that 20 MB don't block the event loop. */
async function decodeDataUrl(part: Part): Promise<Uint8Array | undefined> {
  const text = getBase64(part);
  if (text === undefined) return undefined;
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < text.length; at += STEP_CHARS) {
    pieces.push(Buffer.from(text.slice(at, at + STEP_CHARS), "base64"));
    if (text.length > STEP_CHARS) await yieldToEventLoop();
  }
  return Buffer.concat(pieces);
}
