/**
 * Portraits that were shown lately. The server lets no browser keep them, so the page does: by the time of the last change,
 * so that a new picture is never mistaken for the old one.
 */
import type { Api } from "../../api/api.ts";

/** How many are kept; at the size of a gallery's card that is about 40 MB. */
const KEPT = 600;

/** Widths that are asked for, in pixels: few, so that the server makes few. */
const WIDTHS = [96, 192, 384, 768, 1536];

interface Load {
  users: number;
  abort: AbortController;
  url: Promise<string | undefined>;
}

/** Pictures by what they are of. */
export class Portraits {
  readonly #api: Api;
  readonly #urls = new Map<string, string>();
  readonly #loads = new Map<string, Load>();

  constructor(api: Api) {
    this.#api = api;
  }

  /** Gives the address of a picture that is here. */
  find(key: string): string | undefined {
    const url = this.#urls.get(key);
    if (url !== undefined) {
      // The last used one goes last.
      this.#urls.delete(key);
      this.#urls.set(key, url);
    }
    return url;
  }

  /**
   * Loads a picture; those who ask for the same one share the request.
   *
   * @returns Its address here, undefined when there is none to be had; and what says that it is no longer wanted.
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
      // No picture is no failure of the screen it belongs to: its place shows the first letter of the name.
      return undefined;
    } finally {
      if (!signal.aborted) this.#loads.delete(key);
    }
  }

  /** An image that shows an address goes on showing it when the address goes. */
  #forgetOldest(): void {
    for (const [key, url] of this.#urls) {
      if (this.#urls.size <= KEPT) return;
      URL.revokeObjectURL(url);
      this.#urls.delete(key);
    }
  }
}

/** Gives the width to ask for, for a place so wide on a screen of so many pixels to one of the style sheet's. */
export function chooseImageWidth(placeWidthPx: number, pixelRatio: number): number {
  const wanted = placeWidthPx * Math.min(pixelRatio, 2);
  return WIDTHS.find((width) => width >= wanted) ?? WIDTHS.at(-1)!;
}
