/** The state of the tailnet node, the same on every device. */
import type { ChangeEvent, TailnetStatus } from "../../api/types.ts";
import { signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { TailnetApi } from "../../api/server.ts";

/** The state that the panel shows. */
export class TailnetNode {
  readonly status = signal<TailnetStatus | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  readonly #api: TailnetApi;
  #lastRead = 0;

  constructor(api: TailnetApi) {
    this.#api = api;
  }

  /** Loads the state. Of concurrent calls, the last one counts. */
  async refresh(): Promise<void> {
    const number = ++this.#lastRead;
    try {
      const status = await this.#api.getTailnet();
      if (number !== this.#lastRead) return;
      this.status.value = status;
      this.error.value = undefined;
    } catch (thrown) {
      if (number === this.#lastRead) this.error.value = asApiError(thrown);
    }
  }

  /** Handles an event of the server; `undefined` if events may have been missed. */
  onChange(event: ChangeEvent | undefined): void {
    if (event === undefined || event.kind === "tailnet") void this.refresh();
  }

  /** Turns the node on, renames it, or restarts it. @throws {ApiError} */
  async enable(hostname?: string): Promise<void> {
    await this.#api.enableTailnet(hostname);
    await this.refresh();
  }

  /** @throws {ApiError} */
  async disable(): Promise<void> {
    await this.#api.disableTailnet();
    await this.refresh();
  }
}
