/** Loads the page again when the server has another build of it: at a moment when nothing is lost or interrupted. */
import type { OpenChat } from "../chat/open_chat.ts";
import type { Store } from "../store.ts";
import { announceReload } from "./browser_parts.ts";

/** Builds for which this tab was loaded again. */
const NAME = "parlor.updated_to";

/** Silence of keyboard and pointer after which nobody is about to do something, in milliseconds. */
const QUIET_MS = 30_000;
const TRY_EVERY_MS = 1000;

/** The composer saves what is typed. */
const COMPOSER = ".composer";
/** What a reload would close or move: an open dialog, a dictation, and a chat that is read further up. */
const IN_USE = "dialog[open], .dictation, .jump";
/** Screens that show nothing but stored things. Others may show, for example, a new token, once. */
const SAFE_SCREENS = ["home", "chat", "new_chat"];

/** The update of one tab. Follows what the user does, as long as the page lives. */
export class PageUpdate {
  readonly #store: Store;
  readonly #window: Window;
  readonly #own: string | undefined;
  #newer: string | undefined;
  #usedAtMs = 0;
  /** Fields besides the composer in which something was typed. */
  #typed = new Set<HTMLInputElement>();
  #isSaving = false;

  constructor(store: Store, window: Window) {
    this.#store = store;
    this.#window = window;
    this.#own = window.document.querySelector<HTMLMetaElement>('meta[name="build"]')?.content;
    this.#follow();
  }

  #follow(): void {
    const { document } = this.#window;
    const onUse = (event: Event) => {
      this.#usedAtMs = Date.now();
      const field = event.target as HTMLInputElement;
      if (event.type === "input" && field.closest?.(COMPOSER) === null) this.#typed.add(field);
    };
    for (const kind of ["keydown", "input", "pointerdown", "wheel", "touchmove"]) {
      document.addEventListener(kind, onUse, { capture: true, passive: true });
    }
    setInterval(() => this.#newer && void this.#tryNow(), TRY_EVERY_MS);
  }

  /** The server has this build. */
  onBuild(build: string): void {
    const tried = this.#readBuilds();
    // A proxy or a cache may still respond with the old page: another attempt would do the same.
    const isNewer = this.#own && build !== this.#own && tried && !tried.includes(build);
    this.#newer = isNewer ? build : undefined;
    if (this.#newer) void this.#tryNow();
  }

  async #tryNow(): Promise<void> {
    if (this.#isSaving || !this.#isIdle()) return;
    this.#isSaving = true;
    const draft = this.#store.chat.peek()?.draft;
    await draft?.save().catch(() => {});
    await announceReload(this.#window);
    this.#isSaving = false;
    const builds = this.#readBuilds();
    if (!this.#newer || !builds || draft?.isDirty || !this.#isIdle()) return;
    try {
      this.#window.sessionStorage.setItem(NAME, [...builds, this.#newer].slice(-20).join());
    } catch {
      return;
    }
    this.#newer = undefined;
    this.#window.location.reload();
  }

  /** Returns undefined if the browser stores nothing, so that nothing could end a loop. */
  #readBuilds(): string[] | undefined {
    try {
      return (this.#window.sessionStorage.getItem(NAME) ?? "").split(",");
    } catch {
      return undefined;
    }
  }

  #isIdle(): boolean {
    const { chat, outbox, router, speaking, toasts } = this.#store;
    const { document } = this.#window;
    for (const field of this.#typed) if (!field.isConnected || field.value === "") this.#typed.delete(field);
    const isUsed = document.visibilityState === "visible" &&
      (Date.now() - this.#usedAtMs < QUIET_MS || document.getSelection()?.isCollapsed === false);
    const isPlaying = [...document.querySelectorAll("audio, video")].some((media) =>
      !(media as HTMLMediaElement).paused
    );
    return !isUsed && !isPlaying && this.#typed.size === 0 && !document.querySelector(IN_USE) &&
      SAFE_SCREENS.includes(router.screen.peek().name) && !speaking.now.peek() &&
      !outbox.entries.peek().some(({ problem }) => !problem) && outbox.queued.peek().length === 0 &&
      !toasts.items.peek().some(({ action }) => action) &&
      isLeavable(chat.peek()) &&
      // Whatever makes the browser ask before the page is left, such as an upload.
      this.#window.dispatchEvent(new Event("beforeunload", { cancelable: true }));
  }
}

/** Whether a chat looks the same in a page that is loaded again: nothing is being written, attached or only here. */
function isLeavable(chat: OpenChat | undefined): boolean {
  if (chat === undefined) return true;
  const { documents, draft, images, isNew, isTemporary, recordings, replies } = chat;
  const attached = [images, documents, recordings].some(({ items }) => items.peek().length > 0);
  const isOnlyHere = isNew && (!chat.isEmpty.peek() || Object.keys(chat.options.peek()).length > 0);
  return !replies.isRunning.peek() && !replies.impersonation.peek() && !attached && !isOnlyHere &&
    !draft.hasClash.peek() && !(isTemporary && draft.text.peek() !== "");
}
