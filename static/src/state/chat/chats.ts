/** The list of conversations, and which have a running reply. */
import type {
  ConversationPatch,
  ConversationSummary,
  Page,
  RecentConversation,
  RunningReply,
} from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { Api } from "../../api/api.ts";
import { ChangeQueue } from "../app/change_queue.ts";
import { LatestRead } from "../app/latest_read.ts";
import { Selection } from "../app/selection.ts";
import { PAGE } from "./message_pages.ts";

/** Changes come in bursts; one request answers all. In milliseconds. */
const REFRESH_AFTER_MS = 200;

/** A change of a conversation that a response of the server may not include yet. */
interface Edit {
  id: string;
  apply(item: ConversationSummary): ConversationSummary;
  /** How many pages had been requested when the server accepted it; undefined while it is in flight. */
  takenAt?: number;
}

/** Default fields of an entry that the server can't read. */
const UNREADABLE = { title: "", snippet: "", character_ids: [] };

/** All conversations as the sidebar shows them. */
export class Chats {
  /** The most recently changed first. */
  readonly items = signal<ConversationSummary[]>([]);
  readonly state = signal<"loading" | "ready" | "failed">("loading");
  readonly error = signal<ApiError | undefined>(undefined);
  readonly replies = signal<RunningReply[]>([]);
  readonly replyingIds = computed(() => new Set(this.replies.value.map((reply) => reply.conversation_id)));
  /** Conversations that are hidden while their deletion can be undone. */
  readonly hiddenIds = signal<ReadonlySet<string>>(new Set());
  /** Those with the newest messages first. */
  readonly shown = computed(() =>
    this.items.value.filter((item) => !this.hiddenIds.value.has(item.id)).sort(({ last_message_at: a = "" }, b) =>
      a < (b.last_message_at ?? "") ? 1 : a === (b.last_message_at ?? "") ? 0 : -1
    )
  );
  /** Names of the folders, in the order of the language. */
  readonly folders = computed(() => {
    const names = new Set(this.shown.value.map((item) => item.folder).filter((name) => name !== undefined));
    return [...names].sort((a, b) => a.localeCompare(b));
  });
  readonly selection = new Selection();
  #api: Api;
  #refreshTimer: ReturnType<typeof setTimeout> | undefined;
  /** Number of the last load of older pages; an outdated one stops. */
  #filling = 0;
  /** Counts requested pages, those in flight, and the last newest page that counted. */
  #asked = 0;
  readonly #underWay = new Set<number>();
  #newest = 0;
  #edits: Edit[] = [];
  readonly #changes = new ChangeQueue();
  readonly #replyReads = new LatestRead();

  constructor(api: Api) {
    this.#api = api;
  }

  /**
   * Reloads the newest page and keeps older ones. The first time, the rest follows automatically.
   *
   * @param isAll Also reloads the rest: after an outage, deletions are unknown.
   */
  async refresh(isAll = false): Promise<void> {
    clearTimeout(this.#refreshTimer);
    this.#refreshTimer = undefined;
    try {
      const page = await this.#list();
      if (page.n < this.#newest) return;
      this.#newest = page.n;
      const isFirst = this.state.value !== "ready";
      const fresh = new Set(page.items.map((item) => item.id));
      const oldest = page.items.at(-1)?.updated_at ?? "";
      const isWhole = page.next_cursor === null;
      // Chats that are newer than the last one of the page but not on it were deleted elsewhere.
      const older = isWhole || isAll
        ? []
        : this.items.value.filter((item) => !fresh.has(item.id) && item.updated_at < oldest);
      this.items.value = [...page.items, ...older];
      this.state.value = "ready";
      this.error.value = undefined;
      if (isFirst || older.length === 0) void this.#fill(page.next_cursor);
    } catch (thrown) {
      this.error.value = asApiError(thrown);
      if (this.state.value !== "ready") this.state.value = "failed";
    }
  }

  /** Reloads after a burst of changes. */
  refreshSoon(): void {
    this.#refreshTimer ??= setTimeout(() => this.refresh(), REFRESH_AFTER_MS);
  }

  /** Handles the deletion of a conversation. */
  forget(id: string): void {
    this.items.value = this.items.value.filter((item) => item.id !== id);
  }

  /** Loads the running replies. A failure keeps the last list. */
  async refreshReplies(): Promise<RunningReply[]> {
    try {
      await this.#replyReads.run(() => this.#api.listReplies(), (replies) => this.replies.value = replies);
    } catch {
      // Only shown as dots next to titles; the next change asks again.
    }
    return this.replies.value;
  }

  /** Renames, pins or files a conversation: shown at once, reverted if the server refuses. @throws {ApiError} */
  async change(id: string, changes: ConversationPatch): Promise<void> {
    const before = this.items.peek().find((item) => item.id === id);
    const { title, pinned, folder } = changes;
    const edit = (item: ConversationSummary): ConversationSummary => ({
      ...item,
      ...(title == null ? {} : { title }),
      ...(pinned === undefined ? {} : { pinned: pinned ?? undefined }),
      ...(folder === undefined ? {} : { folder: folder ?? undefined }),
    });
    const added: Edit = { id, apply: edit };
    this.#edits.push(added);
    this.#replace(id, edit);
    try {
      await this.#changes.run(() => this.#api.changeConversation(id, changes));
      added.takenAt = this.#asked;
      this.#tidy();
    } catch (thrown) {
      // It's shown until the next visit, and sent later.
      if (asApiError(thrown).isQueued) throw thrown;
      this.#edits = this.#edits.filter((edit) => edit !== added);
      if (before) this.#replace(id, () => before);
      throw thrown;
    }
  }

  /** Marks a conversation as read on all devices. After a failure, the next list shows it as unread. */
  async markRead(id: string): Promise<void> {
    const added: Edit = { id, apply: (item) => ({ ...item, unread: false }) };
    this.#edits.push(added);
    this.#replace(id, added.apply);
    try {
      await this.#api.markRead(id);
      added.takenAt = this.#asked;
      this.#tidy();
    } catch {
      this.#edits = this.#edits.filter((edit) => edit !== added);
    }
  }

  /** Hides conversations; `remove` deletes one. */
  hide(ids: readonly string[], isHidden: boolean): void {
    const hidden = new Set(this.hiddenIds.value);
    for (const id of ids) {
      if (isHidden) hidden.add(id);
      else hidden.delete(id);
    }
    this.hiddenIds.value = hidden;
  }

  /** Moves a conversation to the trash. @throws {ApiError} */
  async remove(id: string, keepalive: boolean): Promise<void> {
    try {
      await this.#api.deleteConversation(id, { keepalive });
      this.forget(id);
      this.hide([id], false);
    } catch (thrown) {
      if (!asApiError(thrown).isQueued) this.hide([id], false);
      throw thrown;
    }
  }

  /** Loads a page and applies changes that the server may have listed it without. */
  async #list(cursor?: string): Promise<Page<ConversationSummary> & { n: number }> {
    const n = ++this.#asked;
    this.#underWay.add(n);
    try {
      const page = await this.#api.listConversations(cursor);
      const edits = this.#edits.filter(({ takenAt = n }) => takenAt >= n);
      const items = page.items.map((item) =>
        edits.reduce((known, { id, apply }) => id === item.id ? apply(known) : known, { ...UNREADABLE, ...item })
      );
      return { ...page, items, n };
    } finally {
      this.#underWay.delete(n);
      this.#tidy();
    }
  }

  /** Drops changes that every later page includes. */
  #tidy(): void {
    const first = Math.min(...this.#underWay);
    this.#edits = this.#edits.filter(({ takenAt }) => takenAt === undefined || takenAt >= first);
  }

  #replace(id: string, edit: (item: ConversationSummary) => ConversationSummary): void {
    this.items.value = this.items.value.map((item) => item.id === id ? edit(item) : item);
  }

  /** Loads page after page to the end: pinned chats and folders may hold the oldest. */
  async #fill(first: string | null): Promise<void> {
    const own = ++this.#filling;
    try {
      for (let cursor = first; cursor !== null;) {
        const page = await this.#list(cursor);
        if (own !== this.#filling) return;
        const known = new Set(this.items.value.map((item) => item.id));
        this.items.value = [...this.items.value, ...page.items.filter((item) => !known.has(item.id))];
        cursor = page.next_cursor;
      }
    } catch (thrown) {
      this.error.value = asApiError(thrown);
    }
  }
}

/** Age at which a prefetched conversation is stale, in milliseconds. */
const FRESH_MS = 5000;

/** Holds one prefetched conversation. */
export class ChatPrefetch {
  #api: Pick<Api, "getRecent">;
  #now: () => number;
  #begun: { id: string; atMs: number; reading: Promise<RecentConversation> } | undefined;

  constructor(api: Pick<Api, "getRecent">, now: () => number = () => performance.now()) {
    this.#api = api;
    this.#now = now;
  }

  /** Prefetches a conversation, unless that was done just now. */
  begin(id: string): void {
    if (this.#fresh(id)) return;
    const reading = this.#api.getRecent(id, PAGE);
    this.#begun = { id, atMs: this.#now(), reading };
    // Opening it asks again, and shows the error.
    reading.catch(() => this.forget(id));
  }

  /** Returns a prefetched conversation once; undefined if there is none or it is stale. */
  take(id: string): Promise<RecentConversation> | undefined {
    const begun = this.#fresh(id);
    if (begun) this.#begun = undefined;
    return begun?.reading;
  }

  /** Drops a prefetched conversation that has changed. */
  forget(id: string): void {
    if (this.#begun?.id === id) this.#begun = undefined;
  }

  #fresh(id: string) {
    const begun = this.#begun;
    return begun?.id === id && this.#now() - begun.atMs < FRESH_MS ? begun : undefined;
  }
}
