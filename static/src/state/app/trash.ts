/** The trash: items that were deleted in the last days. */
import type { TrashItem } from "../../api/types.ts";
import { signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { Api } from "../../api/api.ts";
import { LatestRead } from "./latest_read.ts";

/** The trash, loaded while its page is open. */
export class Trash {
  readonly items = signal<TrashItem[]>([]);
  readonly state = signal<"unread" | "loading" | "ready" | "failed">("unread");
  readonly error = signal<ApiError | undefined>(undefined);
  readonly #api: Api;
  readonly #reads = new LatestRead();

  constructor(api: Api) {
    this.#api = api;
  }

  /** Loads the list. A failure keeps what is shown. */
  async refresh(): Promise<void> {
    if (this.state.value === "unread") this.state.value = "loading";
    try {
      await this.#reads.run(() => this.#api.listTrash(), (items) => this.items.value = items);
      this.state.value = "ready";
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
      if (this.state.value !== "ready") this.state.value = "failed";
    }
  }

  /** Reloads the list if it was loaded before. */
  refreshIfOpen(): void {
    if (this.state.peek() !== "unread") void this.refresh();
  }

  /** Restores an item. @throws {ApiError} `conflict` if its place is gone or taken. */
  async restore(id: string): Promise<void> {
    await this.#api.restoreFromTrash(id);
    this.items.value = this.items.value.filter((item) => item.id !== id);
  }

  /** Deletes everything permanently. @throws {ApiError} */
  async empty(): Promise<void> {
    await this.#api.emptyTrash();
    this.items.value = [];
  }
}
