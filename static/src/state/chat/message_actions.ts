/** Actions on the messages of the open chat: edit, switch version, hide, delete, branch. */
import type { Branches, Message } from "../../api/types.ts";
import { signal } from "@preact/signals";
import { ApiError, asApiError } from "../../api/client.ts";
import type { ConversationApi } from "../../api/conversations.ts";
import type { MessageStore } from "./message_store.ts";
import { getContentText, withText } from "./message_text.ts";
import type { OpenChat } from "./open_chat.ts";

/** A message in the editor. */
export interface Editing {
  messageId: string;
  /** Its text when editing started. */
  base: string;
  /** The text that another device saved since; saving is refused until the user has chosen. */
  theirs: string | undefined;
  /** Initial text of the form, if not `base`: a text that couldn't be sent. */
  text?: string;
}

/** Changes the messages of one chat. A failure is set as `chat.problem` and changes nothing. */
export class MessageActions {
  /** The own message that was tapped, on touch screens: its actions are shown. */
  readonly tapped = signal<string | undefined>(undefined);
  readonly editing = signal<Editing | undefined>(undefined);
  readonly branches = signal<Branches>({ origin: null, forks: [] });
  #chat: OpenChat;
  #store: MessageStore;
  #api: ConversationApi;

  constructor(chat: OpenChat, store: MessageStore, api: ConversationApi) {
    this.#chat = chat;
    this.#store = store;
    this.#api = api;
  }

  /** Starts editing a message in place. */
  startEdit(messageId: string): void {
    const message = this.#chat.pages.find(messageId);
    if (message && message.status !== "streaming") {
      this.editing.value = { messageId, base: getContentText(message.content), theirs: undefined };
    }
  }

  /** Starts editing a message with a text that wasn't saved. */
  editText(messageId: string, text: string): void {
    this.startEdit(messageId);
    const editing = this.editing.peek();
    if (editing?.messageId === messageId) this.editing.value = { ...editing, text };
  }

  /** Starts editing the user's last message. Returns false if there is none. */
  startEditOfLastTurn(): boolean {
    const turn = this.#chat.pages.items.peek().findLast((message) => message.role === "user");
    if (!turn || this.#chat.replies.isRunning.peek()) return false;
    this.#chat.window.toEnd();
    this.startEdit(turn.id);
    return true;
  }

  /** Ends editing without a change. */
  cancelEdit(): void {
    this.editing.value = undefined;
  }

  /**
   * Saves the edit in place. A text that another device changed is not overwritten: it is shown first, and only saving
   * again replaces it.
   */
  async saveEdit(text: string): Promise<void> {
    const editing = this.editing.peek();
    const message = editing && this.#chat.pages.find(editing.messageId);
    if (!editing || !message) return;
    if (text === editing.base || await this.#saveText(editing, message, text)) this.editing.value = undefined;
  }

  /**
   * Sends the edit as a new version of the message and asks for its reply. The previous version keeps its text and
   * everything that followed it.
   *
   * @param onSent Called when the server has it, with a function that switches back to the previous version.
   */
  sendEdit(text: string, onSent: (undo: () => Promise<void>) => void): void {
    const editing = this.editing.peek();
    const message = editing && this.#chat.pages.find(editing.messageId);
    if (!message || this.#chat.replies.isRunning.peek()) return;
    const { id, active_variant: before = 0 } = message;
    const items = this.#chat.pages.items.peek();
    this.editing.value = undefined;
    this.#store.showNewVersion(id, withText(message.content, text));
    const undo = async () => {
      await this.#chat.replies.stop();
      await this.#chat.replies.replyEnded();
      await this.#switchTo(id, before);
    };
    void this.#chat.replies.askForVersion(id, () => onSent(undo)).then((isAccepted) => {
      const run = this.#chat.replies.last;
      if (isAccepted || this.#chat.isClosed) return;
      // The server doesn't have this version: what was shown before returns, and the text isn't lost.
      this.#chat.pages.items.value = items;
      if (!run?.isDiscarded) this.editing.value = { ...editing, text };
    });
  }

  /**
   * Shows another version of a message. A user message comes with what followed it.
   *
   * @param step How many versions later; negative for earlier.
   */
  async switchVariant(messageId: string, step: number): Promise<void> {
    const message = this.#chat.pages.find(messageId);
    const version = (message?.active_variant ?? 0) + step;
    if (!message || version < 0 || version >= (message.variant_count ?? 1) || this.#chat.replies.isRunning.peek()) {
      return;
    }
    await this.#switchTo(messageId, version);
  }

  async #switchTo(messageId: string, version: number): Promise<void> {
    await this.#try(() => this.#store.switchVersion(messageId, version));
    if (this.#chat.pages.find(messageId)?.role === "user") await this.#chat.reload();
  }

  /** Hides a message from the model, or shows it again. */
  async setHidden(messageId: string, isHidden: boolean): Promise<void> {
    await this.#try(() => this.#store.change(messageId, { hidden: isHidden }));
  }

  /** Keeps a message in the prompt when the history is trimmed, or no longer. */
  async setPinned(messageId: string, isPinned: boolean): Promise<void> {
    await this.#try(() => this.#store.change(messageId, { pinned: isPinned }));
  }

  /** Deletes a message, or it and all after it. Returns a function that restores them; undefined on failure. */
  async remove(messageId: string, isFollowing: boolean): Promise<(() => Promise<void>) | undefined> {
    const restore = await this.#try(() => this.#store.remove(messageId, isFollowing));
    return restore && (() => this.#try(restore).then(() => {}));
  }

  /** Copies the chat up to a message and returns the copy's id. */
  async fork(messageId: string): Promise<string | undefined> {
    return (await this.#try(() => this.#api.forkConversation(this.#chat.id, messageId)))?.id;
  }

  /** Loads the chats that share their first messages with this one. A failure shows none. */
  async readBranches(): Promise<void> {
    if (this.#chat.isNew) return;
    try {
      this.branches.value = await this.#api.getBranches(this.#chat.id);
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
    }
  }

  async #saveText(editing: Editing, message: Message, text: string): Promise<boolean> {
    if (this.#clashes(editing, message)) return false;
    const changes = { content: withText(message.content, text) } satisfies Partial<Message>;
    try {
      await this.#store.change(message.id, changes, this.#chat.pages.revision);
      return true;
    } catch (thrown) {
      const error = asApiError(thrown);
      // It is shown as not sent yet.
      if (error.isQueued) return true;
      if (error.status !== 412) {
        this.#chat.problem.value = error;
        return false;
      }
    }
    // The conversation changed. If this message did not, saving loses nothing.
    await this.#chat.reload();
    const now = this.#chat.pages.find(message.id);
    if (!now || this.#clashes(editing, now)) return false;
    return await this.#try(() => this.#store.change(message.id, changes).then(() => true)) ?? false;
  }

  /** Records a text that differs from the one that editing started with, once: the next save knows about it. */
  #clashes(editing: Editing, message: Message): boolean {
    const theirs = getContentText(message.content);
    if (theirs === editing.base || theirs === editing.theirs) return false;
    this.editing.value = { ...editing, theirs };
    return true;
  }

  async #try<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      this.#chat.problem.value = undefined;
      return await work();
    } catch (thrown) {
      const error = asApiError(thrown);
      // What waits is shown as not sent yet.
      if (!error.isQueued) this.#chat.problem.value = error;
      return undefined;
    }
  }
}
