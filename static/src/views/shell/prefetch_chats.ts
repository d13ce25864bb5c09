/** Reads a chat as soon as somebody is about to open it: a pointer rests on its link or presses it, or the focus comes to it. */
import { useEffect } from "preact/hooks";
import { parsePath } from "../../state/app/router.ts";
import { useStore } from "../../state/store.ts";

/** A pointer or the focus that only passes by is gone by then, as is a finger that begins to scroll. */
const REST_MS = 60;

/** What ends a wish before it was one. */
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
      // A button that is pressed is released soon; a finger may be about to scroll.
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

/** Gives the conversation that a link around an element leads to. */
function findChatId(target: EventTarget | null): string | undefined {
  const link = target instanceof Element ? target.closest<HTMLAnchorElement>("a[href^='/c/']") : null;
  const screen = link && parsePath(link.pathname);
  return screen?.name === "chat" ? screen.conversationId : undefined;
}
