/** The composer's draft of one conversation and its copy on the server. */
import { computed, signal } from "@preact/signals";
import { ApiError } from "../../api/client.ts";
import type { Api } from "../../api/api.ts";

/** Pause in typing before the draft is saved, in milliseconds. */
const SAVE_AFTER_MS = 400;

/** Storage key of the draft of an unsaved chat, which the server can't store. */
const NEW_CHAT_KEY = "parlor.new_chat_draft";

/** A text that is shown, saved and never silently overwritten. */
export class Draft {
  readonly text = signal("");
  /** The text that another device saved while this one was edited; undefined without a conflict. */
  readonly clash = signal<string | undefined>(undefined);
  readonly hasClash = computed(() => this.clash.value !== undefined);
  #api: Api;
  #conversationId: string;
  #storage: Storage | undefined;
  #isNew: boolean;
  #savedText = "";
  #version: number | undefined;
  /** Texts of this page on their way: if the server has one of them, nobody else wrote it. */
  readonly #ownTexts = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #saving: Promise<void> = Promise.resolve();

  /** @param storage Stores the text of a new chat; undefined if the browser stores nothing. */
  constructor(api: Api, conversationId: string, isNew: boolean, storage: Storage | undefined) {
    this.#api = api;
    this.#conversationId = conversationId;
    this.#isNew = isNew;
    this.#storage = storage;
    if (isNew) this.text.value = this.#savedText = storage?.getItem(NEW_CHAT_KEY) ?? "";
  }

  /** The version of the server's draft; undefined while unknown. */
  get version(): number | undefined {
    return this.#version;
  }

  /** True if the shown text differs from the server's. */
  get isDirty(): boolean {
    return this.text.value !== this.#savedText;
  }

  /** Handles the server's draft: shows it if nothing was typed since, else keeps both. An empty one never conflicts. */
  receive(text: string, version: number): void {
    if (this.#isNew || (this.#version !== undefined && version <= this.#version)) return;
    const wasDirty = this.isDirty;
    this.#version = version;
    this.#savedText = text;
    if (!wasDirty) this.text.value = text;
    else if (text !== "" && text !== this.text.value && !this.#ownTexts.has(text)) this.clash.value = text;
  }

  /**
   * Shows a text of an earlier visit that the server doesn't have yet.
   *
   * @param condition `If-Match` of its request: another version since then was written elsewhere.
   */
  restore(text: string, condition: string | undefined): void {
    const theirs = this.#savedText;
    const isSame = condition === undefined || condition === `"${this.#version}"`;
    this.text.value = text;
    if (!isSame && theirs !== "" && theirs !== text) this.clash.value = theirs;
  }

  /** The outbox has sent a text of this browser. The event that follows has its version. */
  onSaved(text: string): void {
    this.#ownTexts.add(text);
  }

  /** Handles typing. */
  type(text: string): void {
    this.text.value = text;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.save(), SAVE_AFTER_MS);
  }

  /** Resolves a conflict with the text that the user chose. */
  settle(choice: "mine" | "theirs"): void {
    const theirs = this.clash.value;
    this.clash.value = undefined;
    if (choice === "theirs" && theirs !== undefined) this.text.value = theirs;
    this.save();
  }

  /** Empties the composer after sending. The server's copy is cleared when the message is accepted. */
  take(): string {
    clearTimeout(this.#timer);
    const text = this.text.value;
    this.text.value = "";
    return text;
  }

  /** Restores a text that could not be sent, unless something new was typed. */
  putBack(text: string): void {
    if (this.text.value.trim() === "") this.type(text);
  }

  /** The conversation now exists on the server. */
  becomeStored(): void {
    if (!this.#isNew) return;
    this.#isNew = false;
    this.#savedText = "";
    this.#storage?.removeItem(NEW_CHAT_KEY);
  }

  /** True for an event about a version that this page does not know. */
  isNews(version: number | undefined): boolean {
    return !this.#isNew && (version === undefined || this.#version === undefined || version > this.#version);
  }

  /** Resolves when no save is in flight. */
  settled(): Promise<void> {
    return this.#saving;
  }

  /** Saves unsaved changes now; with `keepalive` also while the page closes. */
  save(options: { keepalive?: boolean } = {}): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#isNew) {
      this.#savedText = this.text.value;
      if (this.text.value === "") this.#storage?.removeItem(NEW_CHAT_KEY);
      else this.#storage?.setItem(NEW_CHAT_KEY, this.text.value);
      return Promise.resolve();
    }
    if (options.keepalive) return this.#saveOnce(true);
    this.#saving = this.#saving.then(() => this.#saveOnce(false));
    return this.#saving;
  }

  async #saveOnce(keepalive: boolean): Promise<void> {
    const text = this.text.value;
    if (text === this.#savedText || this.hasClash.value) return;
    this.#ownTexts.add(text);
    try {
      const version = await this.#api.saveDraft(this.#conversationId, text, this.#version, { keepalive });
      if (this.#version === undefined || version > this.#version) this.#version = version;
      this.#savedText = text;
      this.#ownTexts.clear();
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      // Otherwise it waits in the outbox; without one, it's saved with the next key, or on leaving.
      if (thrown.status === 412 && await this.#readTheirs()) await this.#saveOnce(keepalive);
    }
  }

  /** Returns true if the version there is an earlier one of this page. */
  async #readTheirs(): Promise<boolean> {
    try {
      const { draft, draft_version } = await this.#api.getHead(this.#conversationId);
      const isOwn = this.#ownTexts.has(draft) && draft !== this.text.value;
      const isNews = this.isNews(draft_version);
      this.receive(draft, draft_version);
      return isOwn && isNews;
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      return false;
    }
  }
}
