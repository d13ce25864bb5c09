/** What was removed in the last days and can be had back. */
import type { TrashItem } from "../../api/types.ts";
import { signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { Api } from "../../api/api.ts";

/** The trash, read while somebody looks at it. */
export class Trash {
  readonly items = signal<TrashItem[]>([]);
  readonly state = signal<"unread" | "loading" | "ready" | "failed">("unread");
  readonly error = signal<ApiError | undefined>(undefined);
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Reads what is in it; what is shown stays when that fails. */
  async refresh(): Promise<void> {
    if (this.state.value === "unread") this.state.value = "loading";
    try {
      this.items.value = await this.#api.listTrash();
      this.state.value = "ready";
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
      if (this.state.value !== "ready") this.state.value = "failed";
    }
  }

  /** Reads again what has been read before. */
  refreshIfOpen(): void {
    if (this.state.peek() !== "unread") void this.refresh();
  }

  /** Brings one thing back. @throws {ApiError} `conflict` when its place is gone or taken. */
  async restore(id: string): Promise<void> {
    await this.#api.restoreFromTrash(id);
    this.items.value = this.items.value.filter((item) => item.id !== id);
  }

  /** Removes everything for good. @throws {ApiError} */
  async empty(): Promise<void> {
    await this.#api.emptyTrash();
    this.items.value = [];
  }
}
