/** Scrolls to a message that was jumped to, and highlights the words it was found by. */
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect } from "preact/hooks";
import type { OpenChat } from "../../../state/chat/open_chat.ts";

/** Name of the highlight in prose.css. */
const FOUND = "found";

/** Frames in which the position is corrected: nearby messages are only measured now. */
const FRAMES = 4;

/**
 * Follows `chat.target`.
 *
 * @param onLeave Called before the view moves.
 * @param onArrived Called after it has moved.
 */
export function useJumpTarget(
  chat: OpenChat,
  content: RefObject<HTMLElement | null>,
  onLeave: () => void,
  onArrived: () => void,
): void {
  const target = chat.target.value;
  useLayoutEffect(() => {
    const element = target && content.current?.querySelector(`[data-message-id="${CSS.escape(target.messageId)}"]`);
    if (!target || !element) return;
    onLeave();
    let frame = 0;
    const settle = (left: number) => {
      element.scrollIntoView({ block: element.clientHeight > innerHeight / 2 ? "start" : "center" });
      if (left > 0) frame = requestAnimationFrame(() => settle(left - 1));
      else {
        splitByWords(element, target.words);
        onArrived();
      }
    };
    settle(FRAMES);
    element.classList.add("is-target");
    const timer = setTimeout(() => element.classList.remove("is-target"), 1600);
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      element.classList.remove("is-target");
    };
  }, [target]);
  // Highlights belong to the search they came from.
  const isSearching = chat.search.isOpen.value;
  useEffect(() => () => void highlights()?.delete(FOUND), [isSearching]);
}

/** Highlights words without changing elements. Browsers without support only show the message. */
function splitByWords(element: Element, words: readonly string[]): void {
  const registry = highlights();
  if (!registry) return;
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = (node.textContent ?? "").toLowerCase();
    for (const word of words) {
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, Math.min(at + word.length, node.textContent!.length));
        ranges.push(range);
      }
    }
  }
  registry.set(FOUND, new Highlight(...ranges));
}

function highlights(): HighlightRegistry | undefined {
  return typeof Highlight === "function" ? CSS.highlights : undefined;
}
