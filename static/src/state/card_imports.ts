/** Card files on their way into the gallery, one after another. */
import { signal } from "@preact/signals";
import { type ApiError, asApiError } from "../api/client.ts";
import type { Character } from "../api/character_types.ts";
import type { Api } from "../api/endpoints.ts";

/** A file that could not be taken in. */
export interface FailedImport {
  name: string;
  error: ApiError;
}

/** The imports of one gallery. */
export class CardImports {
  /** How many of how many are done; undefined while none is on its way. */
  readonly progress = signal<{ done: number; total: number } | undefined>(undefined);
  readonly failures = signal<FailedImport[]>([]);
  readonly #api: Api;
  readonly #onDone: (imported: Character[]) => void;
  #waiting: File[] = [];

  /** @param onDone Called when all files that were waiting are done, with those that came in. */
  constructor(api: Api, onDone: (imported: Character[]) => void) {
    this.#api = api;
    this.#onDone = onDone;
  }

  /** Takes files in; those that come while others are on their way wait for them. */
  async add(files: readonly File[]): Promise<void> {
    if (files.length === 0) return;
    this.#waiting.push(...files);
    const before = this.progress.peek();
    this.progress.value = { done: before?.done ?? 0, total: (before?.total ?? 0) + files.length };
    if (before) return;
    this.failures.value = [];
    const imported: Character[] = [];
    for (let file = this.#waiting.shift(); file; file = this.#waiting.shift()) {
      try {
        imported.push(await this.#api.importCharacter(file));
      } catch (thrown) {
        this.failures.value = [...this.failures.peek(), { name: file.name, error: asApiError(thrown) }];
      }
      const { done, total } = this.progress.peek()!;
      this.progress.value = { done: done + 1, total };
    }
    this.progress.value = undefined;
    this.#onDone(imported);
  }

  /** Takes note that the failures were read. */
  forgetFailures(): void {
    this.failures.value = [];
  }
}
