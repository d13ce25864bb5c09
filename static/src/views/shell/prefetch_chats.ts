/** Prefetches a chat that is about to be opened: hover, press or focus on its link. */
import { useEffect } from "preact/hooks";
import { parsePath } from "../../state/app/router.ts";
import { useStore } from "../../state/store.ts";

/** A passing pointer or focus is gone by then, as is a finger that starts to scroll. In milliseconds. */
const REST_MS = 60;

/** Events that cancel it. */
const ENDS = ["pointerout", "pointercancel", "focusout"];

/** Listens as long as the frame is shown. */
export function usePrefetchChats(): void {
  const store = useStore();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const begin = (id: string) => {
      if (store.chat.peek()?.id !== id) store.chatAhead.begin(id);
    };
    const onWish = (event: Event) => {
      const id = findChatId(event.target);
      if (id === undefined) return;
      clearTimeout(timer);
      // A press is followed by a release soon; a finger may be about to scroll.
      if (event.type === "pointerdown" && (event as PointerEvent).pointerType === "mouse") begin(id);
      else timer = setTimeout(() => begin(id), REST_MS);
    };
    const onEnd = () => clearTimeout(timer);
    const wishes = ["pointerover", "pointerdown", "focusin"];
    for (const type of wishes) document.addEventListener(type, onWish);
    for (const type of ENDS) document.addEventListener(type, onEnd);
    return () => {
      onEnd();
      for (const type of wishes) document.removeEventListener(type, onWish);
      for (const type of ENDS) document.removeEventListener(type, onEnd);
    };
  }, []);
}

/** Returns the conversation that a link around an element opens. */
function findChatId(target: EventTarget | null): string | undefined {
  const link = target instanceof Element ? target.closest<HTMLAnchorElement>("a[href^='/c/']") : null;
  const screen = link && parsePath(link.pathname);
  return screen?.name === "chat" ? screen.conversationId : undefined;
}
