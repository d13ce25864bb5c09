/** Decodes, resizes and encodes images in the sandbox. */
import { Semaphore } from "../../async/locks.ts";
import { AppError } from "../../errors.ts";
import { type Sandbox, SandboxFault, type SandboxKind } from "../../platform/sandbox/sandbox.ts";
import type { ImageJobTask, ImageOperation } from "./image_child.ts";
import { sniffImage } from "./image_header.ts";

/** Limits of the pool. */
export interface ImageLimits {
  /** Maximum number of decoded pixels; checked from the image header. */
  maxPixels: number;
  /** Maximum file size. */
  maxFileBytes: number;
  /** Processor time per image. */
  timeoutMs: number;
  /** Maximum number and total size of queued images. */
  maxQueued: number;
  maxQueuedBytes: number;
}

/** Converts images. All methods throw the same errors. Their input mustn't change until they resolve. */
export interface ImagePool {
  /**
   * Converts an image, or the first frame of an animation, to PNG without text chunks.
   *
   * @param options.maxPx Maximum length of the longer side. Larger images are scaled down.
   * @param options.mustBeComplete Rejects truncated files, even if a decoder could show a part.
   * @throws {AppError} `unprocessable` if it can't be read or is too large, `not_available` if too many images are
   *   queued
   */
  toPng(bytes: Uint8Array, options?: { maxPx?: number; mustBeComplete?: boolean }): Promise<Uint8Array<ArrayBuffer>>;
  /** Converts an image to JPEG on a white background. @param options.quality 1 to 100; 85 by default. */
  toJpeg(bytes: Uint8Array, options: { maxPx: number; quality?: number }): Promise<Uint8Array<ArrayBuffer>>;
  /** Converts an image to a PNG of exactly this width. Images that aren't wider keep their size. */
  resizePng(
    bytes: Uint8Array,
    options: { widthPx: number; mustBeComplete?: boolean },
  ): Promise<Uint8Array<ArrayBuffer>>;
}

const DEFAULT_LIMITS: ImageLimits = {
  // A decoded image takes four bytes per pixel, up to three times at once: about 480 MB for this one.
  maxPixels: 40_000_000,
  maxFileBytes: 20 * 1024 * 1024,
  timeoutMs: 30_000,
  maxQueued: 256,
  maxQueuedBytes: 128 * 1024 * 1024,
};

const MIB = 1024 * 1024;
const KIND: SandboxKind = {
  url: new URL("./image_child.ts", import.meta.url),
  readsPackages: true,
  maxChildren: Math.max(1, Math.min(2, navigator.hardwareConcurrency - 1)),
  maxCpuMs: DEFAULT_LIMITS.timeoutMs,
  // Twice what the largest image takes.
  maxResidentBytes: 1024 * MIB,
  // A PNG of the largest image, without any compression.
  maxMessageBytes: 192 * MIB,
};

/** No visible loss in a chat. */
const DEFAULT_JPEG_QUALITY = 85;

/** Creates a pool. Children start with the first image. */
export function openImagePool(
  sandbox: Sandbox,
  options: { limits?: Partial<ImageLimits>; kind?: Partial<SandboxKind> } = {},
): ImagePool {
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const kind: SandboxKind = { ...KIND, ...options.kind };
  const semaphore = new Semaphore(kind.maxChildren);
  const queued = { count: 0, bytes: 0 };

  async function make(bytes: Uint8Array, operation: ImageOperation): Promise<Uint8Array<ArrayBuffer>> {
    checkHeader(bytes, operation, limits);
    const release = await enter(bytes.length);
    try {
      const task: ImageJobTask = { operation, maxPixels: limits.maxPixels };
      const result = await sandbox.run(kind, { value: task, bytes: [bytes], maxCpuMs: limits.timeoutMs });
      const [file] = result.bytes;
      if (file === undefined) throw createUnreadableError("the result isn't an image");
      return file;
    } catch (error) {
      throw error instanceof SandboxFault ? createUnreadableError(error.message) : error;
    } finally {
      release();
    }
  }

  /** Waits for a free child. @throws {AppError} `not_available` if too many wait already. */
  async function enter(sizeBytes: number): Promise<() => void> {
    if (!semaphore.isFull) return await semaphore.acquire();
    if (queued.count >= limits.maxQueued || queued.bytes + sizeBytes > limits.maxQueuedBytes) {
      const message = `Can't process the image: ${queued.count} images are already queued. Try again later`;
      throw new AppError("not_available", message, { retryAfterSeconds: 1 });
    }
    queued.count++;
    queued.bytes += sizeBytes;
    try {
      return await semaphore.acquire();
    } finally {
      queued.count--;
      queued.bytes -= sizeBytes;
    }
  }

  return {
    toPng: (bytes, { maxPx, mustBeComplete } = {}) => make(bytes, { kind: "png", maxPx, mustBeComplete }),
    toJpeg: (bytes, { maxPx, quality = DEFAULT_JPEG_QUALITY }) => make(bytes, { kind: "jpeg", maxPx, quality }),
    resizePng: (bytes, { widthPx, mustBeComplete }) => make(bytes, { kind: "png_of_width", widthPx, mustBeComplete }),
  };
}

/** Checks an image by its header. A JPEG may be larger, since it can be decoded at a fraction of its size. */
function checkHeader(bytes: Uint8Array, order: ImageOperation, { maxPixels, maxFileBytes }: ImageLimits): void {
  if (bytes.length > maxFileBytes) throw createUnreadableError(`${bytes.length} bytes; the limit is ${maxFileBytes}`);
  const facts = sniffImage(bytes);
  if (facts === undefined) throw createUnreadableError("it isn't a PNG, JPEG, WebP or GIF");
  const isScaled = facts.type === "image/jpeg" && (order.kind === "png_of_width" || order.maxPx !== undefined);
  if (facts.widthPx * facts.heightPx > maxPixels * (isScaled ? MAX_JPEG_EXCESS : 1)) {
    throw createUnreadableError(`${facts.widthPx} × ${facts.heightPx} pixels; the limit is ${maxPixels / 1e6} million`);
  }
}

/** Progressive JPEGs need two bytes per sample of the full size, even if decoded smaller. */
const MAX_JPEG_EXCESS = 2;

function createUnreadableError(reason: string): AppError {
  return new AppError("unprocessable", `Can't read the image: ${reason}`);
}
