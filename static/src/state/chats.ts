/** The list of conversations, and which of them are being answered. */
import { computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../api/client.ts";
import type { Api } from "../api/endpoints.ts";
import type { ConversationSummary, RunningReply } from "../api/types.ts";

/** Changes often come in bursts; one request answers all of a burst. */
const REFRESH_AFTER_MS = 200;

/** All conversations as the sidebar shows them, newest first. */
export class Chats {
  readonly items = signal<ConversationSummary[]>([]);
  readonly state = signal<"loading" | "ready" | "failed">("loading");
  readonly error = signal<ApiError | undefined>(undefined);
  readonly nextCursor = signal<string | null>(null);
  readonly replies = signal<RunningReply[]>([]);
  readonly answering = computed(() => new Set(this.replies.value.map((reply) => reply.conversation_id)));
  /** Conversations that are hidden while their deletion can be undone. */
  readonly hiddenIds = signal<ReadonlySet<string>>(new Set());
  readonly shown = computed(() => this.items.value.filter((item) => !this.hiddenIds.value.has(item.id)));
  #api: Api;
  #refreshTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(api: Api) {
    this.#api = api;
  }

  /** Reads the newest page again; older pages that were read stay. */
  async refresh(): Promise<void> {
    clearTimeout(this.#refreshTimer);
    this.#refreshTimer = undefined;
    try {
      const page = await this.#api.listConversations();
      const isFirst = this.state.value !== "ready";
      const fresh = new Set(page.items.map((item) => item.id));
      const oldest = page.items.at(-1)?.updated_at ?? "";
      const isWhole = page.next_cursor === null;
      // What is newer than the page's end and not on it was deleted elsewhere.
      const older = isWhole ? [] : this.items.value.filter((item) => !fresh.has(item.id) && item.updated_at < oldest);
      this.items.value = [...page.items, ...older];
      if (isFirst || older.length === 0) this.nextCursor.value = page.next_cursor;
      this.state.value = "ready";
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
      if (this.state.value !== "ready") this.state.value = "failed";
    }
  }

  /** Reads again once a burst of changes is over. */
  refreshSoon(): void {
    this.#refreshTimer ??= setTimeout(() => this.refresh(), REFRESH_AFTER_MS);
  }

  /** Reads the next older page. */
  async more(): Promise<void> {
    const cursor = this.nextCursor.value;
    if (cursor === null) return;
    try {
      const page = await this.#api.listConversations(cursor);
      if (this.nextCursor.value !== cursor) return;
      const known = new Set(this.items.value.map((item) => item.id));
      this.items.value = [...this.items.value, ...page.items.filter((item) => !known.has(item.id))];
      this.nextCursor.value = page.next_cursor;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
    }
  }

  /** Reads which replies run; keeps the last answer when that fails. */
  async refreshReplies(): Promise<RunningReply[]> {
    try {
      this.replies.value = await this.#api.listReplies();
    } catch {
      // Shown only as dots beside titles; the next change asks again.
    }
    return this.replies.value;
  }

  /** Hides a conversation; the deletion itself comes with `remove`. */
  hide(id: string, isHidden: boolean): void {
    const ids = new Set(this.hiddenIds.value);
    if (isHidden) ids.add(id);
    else ids.delete(id);
    this.hiddenIds.value = ids;
  }

  /** Deletes a conversation for good. @throws {ApiError} */
  async remove(id: string, keepalive: boolean): Promise<void> {
    try {
      await this.#api.deleteConversation(id, { keepalive });
      this.items.value = this.items.value.filter((item) => item.id !== id);
    } finally {
      this.hide(id, false);
    }
  }
}
