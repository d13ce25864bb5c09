/** Pictures decoded, reduced and encoded in Workers: hostile bytes never touch the serving thread, and no work of theirs holds it. */
import { AppError } from "../../errors.ts";
import { sniffImage } from "./image_type.ts";
import type { ImageOrder, ImageResult, ImageTask } from "./image_worker.ts";

/** Bounds of the pool. */
export interface ImageLimits {
  /** Most pixels that are decoded; a picture's header tells its number before. */
  maxPixels: number;
  /** Largest file that is read. */
  maxFileBytes: number;
  /** How long one picture may take. */
  timeoutMs: number;
  /** Most pictures that may wait, and most bytes of theirs. */
  maxQueued: number;
  maxQueuedBytes: number;
  /** How long a Worker is kept when there is nothing to do. */
  idleMs: number;
}

/** How to open the pool. */
export interface ImagePoolOptions {
  /** Workers at most; one less than the machine has processors, but no more than two, unless told. */
  workers?: number;
  limits?: Partial<ImageLimits>;
  /** Makes a Worker; by default image_worker.ts. */
  startWorker?: () => Worker;
}

/** Makes pictures of pictures. All methods throw the same errors, and copy what they are given. */
export interface ImagePool {
  /**
   * Gives a picture as PNG without any text in it; of a moving one the first frame.
   *
   * @param options.maxPx Most pixels of the longer side; a larger picture is made smaller.
   * @param options.mustBeWhole Refuses a file that is cut off, also where a decoder would show what there is.
   * @throws {AppError} `unprocessable` when it cannot be read or is too large, `not_available` when too many wait
   */
  toPng(bytes: Uint8Array, options?: { maxPx?: number; mustBeWhole?: boolean }): Promise<Uint8Array<ArrayBuffer>>;
  /** Gives a picture as JPEG, what is transparent laid over white. `quality` is 1 to 100, 85 unless told. */
  toJpeg(bytes: Uint8Array, options: { maxPx: number; quality?: number }): Promise<Uint8Array<ArrayBuffer>>;
  /** Gives a picture as PNG of exactly that width, its proportions kept; one that is no wider keeps its size. */
  resizePng(
    bytes: Uint8Array,
    options: { widthPx: number; mustBeWhole?: boolean },
  ): Promise<Uint8Array<ArrayBuffer>>;
  /** Fails what waits and ends the Workers. */
  close(): void;
}

const DEFAULT_LIMITS: ImageLimits = {
  // A decoded picture takes four bytes a pixel, up to three times at once: some 480 MB for this one.
  maxPixels: 40_000_000,
  maxFileBytes: 20 * 1024 * 1024,
  timeoutMs: 30_000,
  maxQueued: 256,
  maxQueuedBytes: 128 * 1024 * 1024,
  idleMs: 60_000,
};

/** Fine enough that no one sees it in a chat. */
const DEFAULT_JPEG_QUALITY = 85;

interface Job {
  task: ImageTask;
  resolve(file: Uint8Array<ArrayBuffer>): void;
  reject(error: AppError): void;
}

interface Place {
  worker: Worker;
  job?: Job;
  /** Ends the job that takes too long, or the Worker that has nothing to do. */
  timer?: ReturnType<typeof setTimeout>;
}

/** Opens a pool. No Worker starts before the first picture. */
export function openImagePool(options: ImagePoolOptions = {}): ImagePool {
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const maxWorkers = options.workers ?? Math.max(1, Math.min(2, navigator.hardwareConcurrency - 1));
  const startWorker = options.startWorker ??
    (() => new Worker(new URL("./image_worker.ts", import.meta.url), { type: "module" }));
  const places = new Set<Place>();
  const queue: Job[] = [];
  let queuedBytes = 0;
  let isClosed = false;

  function add(bytes: Uint8Array, order: ImageOrder): Promise<Uint8Array<ArrayBuffer>> {
    checkHeader(bytes, order, limits);
    if (isClosed) throw new AppError("not_available", "The server is shutting down");
    if (queue.length >= limits.maxQueued || queuedBytes + bytes.length > limits.maxQueuedBytes) {
      throw new AppError("not_available", `Cannot read another picture while ${queue.length} are waiting`, {
        retryAfterSeconds: 1,
      });
    }
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array<ArrayBuffer>>();
    queue.push({ task: { bytes, order, maxPixels: limits.maxPixels }, resolve, reject });
    queuedBytes += bytes.length;
    pump();
    return promise;
  }

  function pump(): void {
    while (queue.length > 0) {
      const place = freePlace();
      if (place === undefined) return;
      const job = queue.shift()!;
      queuedBytes -= job.task.bytes.length;
      start(place, job);
    }
  }

  function freePlace(): Place | undefined {
    for (const place of places) {
      if (place.job === undefined) return place;
    }
    return places.size < maxWorkers ? openPlace() : undefined;
  }

  function openPlace(): Place {
    const place: Place = { worker: startWorker() };
    place.worker.onmessage = ({ data }: MessageEvent<ImageResult>) => finish(place, data);
    place.worker.onerror = (event) => {
      event.preventDefault(); // else it would end the process
      lose(place, event.message);
    };
    place.worker.onmessageerror = () => lose(place, "its answer could not be read");
    places.add(place);
    return place;
  }

  function start(place: Place, job: Job): void {
    clearTimeout(place.timer);
    place.job = job;
    place.timer = setTimeout(() => lose(place, `no result after ${limits.timeoutMs} ms`), limits.timeoutMs);
    place.worker.postMessage(job.task);
  }

  function finish(place: Place, result: ImageResult): void {
    const job = place.job;
    clearTimeout(place.timer);
    place.job = undefined;
    place.timer = setTimeout(() => end(place), limits.idleMs);
    Deno.unrefTimer(place.timer);
    if ("file" in result) job?.resolve(result.file);
    else job?.reject(unreadable(result.fault));
    pump();
  }

  /** A Worker that hangs or died takes its one picture with it; the next picture starts another. */
  function lose(place: Place, reason: string): void {
    end(place);
    place.job?.reject(unreadable(reason));
    pump();
  }

  function end(place: Place): void {
    clearTimeout(place.timer);
    place.worker.terminate();
    places.delete(place);
  }

  // deno-lint-ignore require-await -- what add throws becomes a rejection
  const make = async (bytes: Uint8Array, order: ImageOrder) => add(bytes, order);
  return {
    toPng: (bytes, { maxPx, mustBeWhole } = {}) => make(bytes, { kind: "png", maxPx, mustBeWhole }),
    toJpeg: (bytes, { maxPx, quality = DEFAULT_JPEG_QUALITY }) => make(bytes, { kind: "jpeg", maxPx, quality }),
    resizePng: (bytes, { widthPx, mustBeWhole }) => make(bytes, { kind: "png_of_width", widthPx, mustBeWhole }),
    close() {
      isClosed = true;
      const waiting = [...queue.splice(0), ...[...places].flatMap(({ job }) => job ?? [])];
      for (const place of places) end(place);
      for (const { reject } of waiting) reject(new AppError("not_available", "The server is shutting down"));
    },
  };
}

/** Judges a picture by its header alone. A JPEG may be larger, since it is decoded smaller where that will do. */
function checkHeader(bytes: Uint8Array, order: ImageOrder, { maxPixels, maxFileBytes }: ImageLimits): void {
  if (bytes.length > maxFileBytes) throw unreadable(`${bytes.length} bytes, more than ${maxFileBytes}`);
  const facts = sniffImage(bytes);
  if (facts === undefined) throw unreadable("it is no PNG, JPEG, WebP or GIF");
  const isScaled = facts.type === "image/jpeg" && (order.kind === "png_of_width" || order.maxPx !== undefined);
  if (facts.widthPx * facts.heightPx > maxPixels * (isScaled ? MAX_JPEG_EXCESS : 1)) {
    throw unreadable(`${facts.widthPx} × ${facts.heightPx} pixels, more than ${maxPixels / 1e6} million`);
  }
}

/** A progressive JPEG keeps two bytes a sample for its whole area, however small it is decoded. */
const MAX_JPEG_EXCESS = 2;

function unreadable(reason: string): AppError {
  return new AppError("unprocessable", `Cannot read the picture: ${reason}`);
}
