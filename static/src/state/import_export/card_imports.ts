/** Imports files of cards or personas, one after another. */
import { signal } from "@preact/signals";
import { asApiError } from "../../api/client.ts";

/** A file that could not be imported. */
export interface FailedImport {
  name: string;
  reason: string;
  /** Whether it belongs on the Import page. */
  isExport?: boolean;
}

/** The imports of one screen. */
export class CardImports<T> {
  /** Progress of the queue; undefined when idle. */
  readonly progress = signal<{ done: number; total: number } | undefined>(undefined);
  readonly failures = signal<FailedImport[]>([]);
  readonly #import: (file: File) => Promise<T>;
  readonly #onDone: (imported: T[]) => void;
  readonly #isExport: (file: File) => Promise<boolean>;
  #waiting: File[] = [];

  /**
   * @param take Imports one file.
   * @param onDone Called when all queued files are done, with the imported items.
   * @param isExport Reports whether a file that couldn't be imported is another program's export.
   */
  constructor(
    take: (file: File) => Promise<T>,
    onDone: (imported: T[]) => void,
    isExport: (file: File) => Promise<boolean> = () => Promise.resolve(false),
  ) {
    this.#import = take;
    this.#onDone = onDone;
    this.#isExport = isExport;
  }

  /**
   * Queues files.
   *
   * @param refused Files of the same selection that are not tried.
   */
  async add(files: readonly File[], refused: readonly FailedImport[] = []): Promise<void> {
    const isFirst = this.progress.peek() === undefined;
    this.failures.value = isFirst ? [...refused] : [...this.failures.peek(), ...refused];
    if (files.length === 0) return;
    this.#waiting.push(...files);
    const before = this.progress.peek();
    this.progress.value = { done: before?.done ?? 0, total: (before?.total ?? 0) + files.length };
    if (before) return;
    const imported: T[] = [];
    for (let file = this.#waiting.shift(); file; file = this.#waiting.shift()) {
      try {
        imported.push(await this.#import(file));
      } catch (thrown) {
        this.failures.value = [...this.failures.peek(), {
          name: file.name,
          reason: asApiError(thrown).message,
          isExport: await this.#isExport(file),
        }];
      }
      const { done, total } = this.progress.peek()!;
      this.progress.value = { done: done + 1, total };
    }
    this.progress.value = undefined;
    this.#onDone(imported);
  }

  /** Dismisses the failures. */
  forgetFailures(): void {
    this.failures.value = [];
  }
}
