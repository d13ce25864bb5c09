/** Global shortcuts: the palette, a new chat, the shortcut overview. */
import { useEffect } from "preact/hooks";
import { type Store, useStore } from "../../state/store.ts";

/** Listens as long as the frame is shown. */
export function useGlobalShortcuts(): void {
  const store = useStore();
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (!event.defaultPrevented && !event.isComposing && act(event, store)) event.preventDefault();
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
}

/** Handles a key and returns whether it did. */
function act(event: KeyboardEvent, store: Store): boolean {
  const key = event.key.toLowerCase();
  const isMain = (event.ctrlKey || event.metaKey) && !event.altKey;
  if (isMain && !event.shiftKey && key === "k") {
    const isOpen = store.overlay.peek() === "palette";
    // An open dialog goes first.
    if (!isOpen && document.querySelector("dialog[open]:not(.drawer)")) return true;
    store.overlay.value = isOpen ? undefined : "palette";
    return true;
  }
  if (document.querySelector("dialog[open]")) return false;
  if (isMain && event.shiftKey && key === "o") {
    store.router.go("/new");
    return true;
  }
  // By character: on many keyboards it needs Shift.
  if (event.key === "?" && !isMain && !event.altKey && !isTyping(event.target)) {
    store.overlay.value = "shortcuts";
    return true;
  }
  return false;
}

/** Returns whether a key goes into a text field, even an empty one: a message may start with a question mark. */
function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "range", "button"].includes(target.type);
  return target instanceof HTMLTextAreaElement || (target instanceof HTMLElement && target.isContentEditable);
}
