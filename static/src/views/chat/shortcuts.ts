/** Keys of the open chat: Ctrl or ⌘ F, Alt R, Alt C, Alt ← →, Escape. */
import { useEffect } from "preact/hooks";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { useStore } from "../../state/store.ts";

/** Listens while the chat is shown. */
export function useShortcuts(chat: OpenChat): void {
  const { speaking } = useStore();
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
      if (isFind(event) ? openSearch(chat) : event.altKey && onAlt(event, chat)) event.preventDefault();
      else if (event.key === "Escape" && chat.search.isOpen.peek()) chat.search.close();
      else if (event.key === "Escape" && chat.replies.isRunning.peek()) void chat.replies.stop();
      else if (event.key === "Escape") speaking.stop();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [chat]);
}

function isFind(event: KeyboardEvent): boolean {
  return (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "f";
}

/** False if the browser's search is meant: ours is open already, or there is nothing to search. */
function openSearch(chat: OpenChat): boolean {
  if (chat.search.isOpen.peek() || chat.isNew || chat.isTemporary || chat.load.peek().kind !== "ready") return false;
  return chat.search.isOpen.value = true;
}

/** Handles a key with Alt and returns whether it did. */
function onAlt(event: KeyboardEvent, chat: OpenChat): boolean {
  const last = chat.lastMessage.peek();
  if (event.ctrlKey || event.metaKey || last?.role !== "assistant" || chat.replies.isRunning.peek()) return false;
  if (chat.actions.editing.peek()) return false;
  const field = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement
    ? event.target
    : undefined;
  const isWriting = field !== undefined && field.value !== "";
  // In text fields, Alt with an arrow moves by words, and on Apple keyboards Alt with a letter types a character.
  if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
    if (isWriting) return false;
    void chat.actions.switchVariant(last.id, event.key === "ArrowLeft" ? -1 : 1);
    return true;
  }
  if (isWriting && /Mac|iPhone|iPad/.test(navigator.platform)) return false;
  // By key code: on Apple keyboards the character differs.
  if (event.code === "KeyR") chat.replies.regenerate(last.id);
  else if (event.code === "KeyC") chat.replies.continueReply(last.id);
  else return false;
  return true;
}
