/**
 * Files of the server as object URLs: images, which the server forbids browsers to cache, and on a device that signs in
 * with a token whatever elements would load without it.
 */
import type { ApiClient } from "../../api/client.ts";

/** Bytes to cache while nothing shows them: about 600 images at the size of a gallery card. */
const MAX_UNUSED_BYTES = 40_000_000;

interface LoadedFile {
  users: number;
  abort: AbortController;
  /** Undefined if the file can't be loaded. */
  url: Promise<string | undefined>;
  /** The object URL, once it is loaded. */
  loadedUrl?: string;
  sizeBytes: number;
}

/** Loaded files by key. Those that nothing uses stay until others need their space. */
export class FileUrls {
  readonly #client: ApiClient;
  readonly #maxUnusedBytes: number;
  /** The most recently released file is last. */
  readonly #files = new Map<string, LoadedFile>();
  #unusedBytes = 0;

  constructor(client: ApiClient, maxUnusedBytes = MAX_UNUSED_BYTES) {
    this.#client = client;
    this.#maxUnusedBytes = maxUnusedBytes;
  }

  /** Returns the URL of a loaded file. */
  find(key: string): string | undefined {
    return this.#files.get(key)?.loadedUrl;
  }

  /**
   * Loads a file unless it is loaded; concurrent callers share the request.
   *
   * @param key The path, or more if the file at the path may change.
   * @returns Its object URL, undefined on failure; and a function that releases it.
   */
  use(key: string, path: string): { url: Promise<string | undefined>; leave: () => void } {
    const file = this.#files.get(key) ?? this.#load(key, path);
    if (file.users++ === 0) this.#unusedBytes -= file.sizeBytes;
    return { url: file.url, leave: () => this.#leave(key, file) };
  }

  #load(key: string, path: string): LoadedFile {
    const abort = new AbortController();
    const file: LoadedFile = { users: 0, abort, sizeBytes: 0, url: this.#read(key, path, abort.signal) };
    this.#files.set(key, file);
    return file;
  }

  async #read(key: string, path: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      const blob = await (await this.#client.send("GET", path, { signal })).blob();
      signal.throwIfAborted();
      const file = this.#files.get(key)!;
      file.sizeBytes = blob.size;
      return file.loadedUrl = URL.createObjectURL(blob);
    } catch {
      // The element that shows the file reports the failure, and the next use retries. A canceled file is already removed.
      if (!signal.aborted) this.#files.delete(key);
      return undefined;
    }
  }

  #leave(key: string, file: LoadedFile): void {
    if (--file.users > 0 || this.#files.get(key) !== file) return;
    this.#files.delete(key);
    if (file.loadedUrl === undefined) return file.abort.abort();
    this.#files.set(key, file);
    this.#unusedBytes += file.sizeBytes;
    for (const [oldKey, old] of this.#files) {
      if (this.#unusedBytes <= this.#maxUnusedBytes) return;
      if (old.users > 0) continue;
      URL.revokeObjectURL(old.loadedUrl!);
      this.#files.delete(oldKey);
      this.#unusedBytes -= old.sizeBytes;
    }
  }
}
