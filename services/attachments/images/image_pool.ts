/** Decodes, resizes and encodes images in Workers, so that hostile files and slow work never affect the main thread. */
import { AppError } from "../../errors.ts";
import { sniffImage } from "./image_header.ts";
import type { ImageJobTask, ImageOperation, ImageResult } from "./image_worker.ts";
import { openWorker } from "../../process/worker.ts";

/** Limits of the pool. */
export interface ImageLimits {
  /** Maximum number of decoded pixels; checked from the image header. */
  maxPixels: number;
  /** Maximum file size. */
  maxFileBytes: number;
  /** Time limit per image. */
  timeoutMs: number;
  /** Maximum number and total size of queued images. */
  maxQueued: number;
  maxQueuedBytes: number;
  /** How long an idle Worker stays alive. */
  idleMs: number;
}

/** Options of the pool. */
export interface ImagePoolOptions {
  /** Maximum number of Workers; by default one less than processors, but at most two. */
  workers?: number;
  limits?: Partial<ImageLimits>;
  /** Creates a Worker; by default image_worker.ts. */
  startWorker?: () => Worker;
}

/** Converts images. All methods throw the same errors and copy their input. */
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
  /** Rejects queued work and terminates the Workers. */
  close(): void;
}

const DEFAULT_LIMITS: ImageLimits = {
  // A decoded image takes four bytes per pixel, up to three times at once: about 480 MB for this one.
  maxPixels: 40_000_000,
  maxFileBytes: 20 * 1024 * 1024,
  timeoutMs: 30_000,
  maxQueued: 256,
  maxQueuedBytes: 128 * 1024 * 1024,
  idleMs: 60_000,
};

/** No visible loss in a chat. */
const DEFAULT_JPEG_QUALITY = 85;

interface Job {
  task: ImageJobTask;
  resolve(file: Uint8Array<ArrayBuffer>): void;
  reject(error: AppError): void;
}

interface WorkerSlot {
  worker: Worker;
  job?: Job;
  /** Time limit of the job, or idle time of the Worker. */
  timer?: ReturnType<typeof setTimeout>;
}

/** Opens a pool. Workers start with the first image. */
export function openImagePool(options: ImagePoolOptions = {}): ImagePool {
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const maxWorkers = options.workers ?? Math.max(1, Math.min(2, navigator.hardwareConcurrency - 1));
  const startWorker = options.startWorker ??
    (() => openWorker(new URL("./image_worker.ts", import.meta.url)));
  const slots = new Set<WorkerSlot>();
  const queue: Job[] = [];
  let queuedBytes = 0;
  let isClosed = false;

  function add(bytes: Uint8Array, order: ImageOperation): Promise<Uint8Array<ArrayBuffer>> {
    checkHeader(bytes, order, limits);
    if (isClosed) throw new AppError("not_available", "The server is shutting down");
    if (queue.length >= limits.maxQueued || queuedBytes + bytes.length > limits.maxQueuedBytes) {
      throw new AppError(
        "not_available",
        `Can't process the image: ${queue.length} images are already queued. Try again later`,
        {
          retryAfterSeconds: 1,
        },
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array<ArrayBuffer>>();
    queue.push({ task: { bytes, operation: order, maxPixels: limits.maxPixels }, resolve, reject });
    queuedBytes += bytes.length;
    startQueued();
    return promise;
  }

  function startQueued(): void {
    while (queue.length > 0) {
      const slot = findFreeSlot();
      if (slot === undefined) return;
      const job = queue.shift()!;
      queuedBytes -= job.task.bytes.length;
      start(slot, job);
    }
  }

  function findFreeSlot(): WorkerSlot | undefined {
    for (const slot of slots) {
      if (slot.job === undefined) return slot;
    }
    return slots.size < maxWorkers ? openSlot() : undefined;
  }

  function openSlot(): WorkerSlot {
    const slot: WorkerSlot = { worker: startWorker() };
    slot.worker.onmessage = ({ data }: MessageEvent<ImageResult>) => finish(slot, data);
    slot.worker.onerror = (event) => {
      event.preventDefault(); // Otherwise it would end the process.
      fail(slot, event.message);
    };
    slot.worker.onmessageerror = () => fail(slot, "the image Worker sent an unreadable result");
    slots.add(slot);
    return slot;
  }

  function start(slot: WorkerSlot, job: Job): void {
    clearTimeout(slot.timer);
    slot.job = job;
    slot.timer = setTimeout(() => fail(slot, `no result after ${limits.timeoutMs} ms`), limits.timeoutMs);
    slot.worker.postMessage(job.task);
  }

  function finish(slot: WorkerSlot, result: ImageResult): void {
    const job = slot.job;
    clearTimeout(slot.timer);
    slot.job = undefined;
    slot.timer = setTimeout(() => retire(slot), limits.idleMs);
    Deno.unrefTimer(slot.timer);
    if ("file" in result) job?.resolve(result.file);
    else job?.reject(createUnreadableError(result.fault));
    startQueued();
  }

  /** A Worker that hangs or crashes fails its one image. The next image starts a new Worker. */
  function fail(slot: WorkerSlot, reason: string): void {
    retire(slot);
    slot.job?.reject(createUnreadableError(reason));
    startQueued();
  }

  function retire(slot: WorkerSlot): void {
    clearTimeout(slot.timer);
    slot.worker.terminate();
    slots.delete(slot);
  }

  // deno-lint-ignore require-await -- what add throws becomes a rejection
  const make = async (bytes: Uint8Array, order: ImageOperation) => add(bytes, order);
  return {
    toPng: (bytes, { maxPx, mustBeComplete } = {}) => make(bytes, { kind: "png", maxPx, mustBeComplete }),
    toJpeg: (bytes, { maxPx, quality = DEFAULT_JPEG_QUALITY }) => make(bytes, { kind: "jpeg", maxPx, quality }),
    resizePng: (bytes, { widthPx, mustBeComplete }) => make(bytes, { kind: "png_of_width", widthPx, mustBeComplete }),
    close() {
      isClosed = true;
      const waiting = [...queue.splice(0), ...[...slots].flatMap(({ job }) => job ?? [])];
      for (const slot of slots) retire(slot);
      for (const { reject } of waiting) reject(new AppError("not_available", "The server is shutting down"));
    },
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
