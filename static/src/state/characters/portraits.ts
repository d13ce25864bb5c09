/**
 * Cache of portraits. The server forbids browsers to cache them, so the page does, keyed by the time of the last
 * change, so that a new image is never mistaken for the old one.
 */
import type { Api } from "../../api/api.ts";

/** Size of the cache; at the size of a gallery card about 40 MB. */
const KEPT = 600;

/** Requested widths in pixels: few, so that the server resizes few. */
const WIDTHS = [96, 192, 384, 768, 1536];

interface Load {
  users: number;
  abort: AbortController;
  url: Promise<string | undefined>;
}

/** Images by path. */
export class Portraits {
  readonly #api: Api;
  readonly #urls = new Map<string, string>();
  readonly #loads = new Map<string, Load>();

  constructor(api: Api) {
    this.#api = api;
  }

  /** Returns the URL of a loaded image. */
  find(key: string): string | undefined {
    const url = this.#urls.get(key);
    if (url !== undefined) {
      // The most recently used entry is last.
      this.#urls.delete(key);
      this.#urls.set(key, url);
    }
    return url;
  }

  /**
   * Loads an image; concurrent callers share the request.
   *
   * @returns Its object URL, undefined on failure; and a function that releases it.
   */
  load(key: string, path: string): { url: Promise<string | undefined>; leave: () => void } {
    const load = this.#loads.get(key) ?? this.#start(key, path);
    load.users++;
    const leave = () => {
      if (--load.users > 0) return;
      load.abort.abort();
      if (this.#loads.get(key) === load) this.#loads.delete(key);
    };
    return { url: load.url, leave };
  }

  #start(key: string, path: string): Load {
    const abort = new AbortController();
    const load = { users: 0, abort, url: this.#read(key, path, abort.signal) };
    this.#loads.set(key, load);
    return load;
  }

  async #read(key: string, path: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      const url = URL.createObjectURL(await this.#api.loadImage(path, signal));
      this.#urls.set(key, url);
      this.#forgetOldest();
      return url;
    } catch {
      // A missing image is not a failure of its screen, which shows the first letter of the name.
      return undefined;
    } finally {
      if (!signal.aborted) this.#loads.delete(key);
    }
  }

  /** An image element keeps showing a revoked URL. */
  #forgetOldest(): void {
    for (const [key, url] of this.#urls) {
      if (this.#urls.size <= KEPT) return;
      URL.revokeObjectURL(url);
      this.#urls.delete(key);
    }
  }
}

/** Returns the width to request for a layout width and the device pixel ratio. */
export function chooseImageWidth(placeWidthPx: number, pixelRatio: number): number {
  const wanted = placeWidthPx * Math.min(pixelRatio, 2);
  return WIDTHS.find((width) => width >= wanted) ?? WIDTHS.at(-1)!;
}
