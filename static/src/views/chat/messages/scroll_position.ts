/** The scroll position: keeps the end of the messages in view, and scrolls to a message. */
import { findTerms } from "../../../../../services/json/search_fold.ts";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { OpenChat } from "../../../state/chat/open_chat.ts";

/** A reader at most this far from the end follows it, in px. */
const NEAR_END_PX = 64;

/** The interface between following and the view. */
interface Following {
  /** The reader is not at the end. */
  isScrolledUp: boolean;
  /** Paragraphs that arrived since. */
  newCount: number;
  onScroll(): void;
  /** Scrolls to the end and follows it. */
  jump(): void;
  /** The view is about to scroll by itself. */
  leave(): void;
}

/**
 * Keeps the end of the messages in view while the reader is there, and counts what arrives otherwise. Follows the end
 * of a scroll container.
 */
export function useFollowEnd(
  chat: OpenChat,
  box: RefObject<HTMLElement | null>,
  content: RefObject<HTMLElement | null>,
): Following {
  const isFollowing = useRef(true);
  /** The last message and its length when the reader left the end. */
  const seen = useRef<{ messageId: string | undefined; blocks: number }>({ messageId: undefined, blocks: 0 });
  const [isScrolledUp, setScrolledUp] = useState(false);
  const [newCount, setNewCount] = useState(0);

  /** The last known scroll position. */
  const last = useRef(getScrollPosition(null));

  const toEnd = () => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
    last.current = getScrollPosition(box.current);
  };
  const countNew = () => {
    let count = 0;
    const all = content.current?.querySelectorAll<HTMLElement>(".message") ?? [];
    for (const element of [...all].reverse()) {
      const blocks = element.querySelectorAll(".prose > *, .user-text").length;
      if (element.dataset.messageId === seen.current.messageId) {
        return count + Math.max(0, blocks - seen.current.blocks);
      }
      count += blocks;
    }
    return 0;
  };
  const setFollowing = (follows: boolean) => {
    isFollowing.current = follows;
    const last = content.current?.querySelector<HTMLElement>(".message:last-of-type");
    const blocks = last?.querySelectorAll(".prose > *, .user-text").length ?? 0;
    seen.current = { messageId: chat.window.hasBelow.peek() ? undefined : last?.dataset.messageId, blocks };
    setNewCount(0);
    setScrolledUp(!follows);
  };

  useLayoutEffect(() => {
    if (isFollowing.current) toEnd();
  }, []);
  useEffect(() => {
    const observer = new ResizeObserver(() => {
      if (isFollowing.current) toEnd();
      else setNewCount(countNew());
    });
    if (content.current) observer.observe(content.current);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);

  // After sending, the end is always shown.
  const lastOwn = chat.pages.items.value.findLast((message) => message.role === "user")?.id;
  const known = useRef(lastOwn);
  useEffect(() => {
    if (known.current === lastOwn) return;
    known.current = lastOwn;
    chat.window.toEnd();
    setFollowing(true);
    toEnd();
  }, [lastOwn]);

  return {
    isScrolledUp,
    newCount,
    onScroll() {
      const position = getScrollPosition(box.current);
      const isNear = position.fromEnd < NEAR_END_PX && !chat.window.hasBelow.peek();
      // Growing or shrinking content moves the position, too; only a reader scrolls up and away at once. It looks the
      // same if the content shrinks and then the box, for example when the composer appears below it.
      const isResized = position.boxHeight !== last.current.boxHeight;
      const isLeaving = !isResized && position.top < last.current.top - 1 &&
        position.fromEnd > last.current.fromEnd + 1;
      last.current = position;
      if (isNear && !isFollowing.current) setFollowing(true);
      else if (!isNear && isLeaving && isFollowing.current) setFollowing(false);
    },
    jump() {
      chat.window.toEnd();
      setFollowing(true);
      // After pending rendering.
      requestAnimationFrame(toEnd);
      box.current?.focus({ preventScroll: true });
    },
    leave: () => setFollowing(false),
  };
}

interface ScrollPosition {
  top: number;
  fromEnd: number;
  boxHeight: number;
}

function getScrollPosition(box: HTMLElement | null): ScrollPosition {
  if (!box) return { top: 0, fromEnd: 0, boxHeight: 0 };
  const { scrollTop: top, clientHeight: boxHeight } = box;
  return { top, fromEnd: box.scrollHeight - top - boxHeight, boxHeight };
}

/** Name of the highlight in prose.css. */
const HIGHLIGHT_NAME = "found";

/** How long the message is highlighted before the highlight fades, in milliseconds. */
const HIGHLIGHT_MS = 2000;

/** Frames in which the position is corrected: nearby messages are only measured now. */
const FRAMES = 4;

/**
 * Scrolls to a message that was jumped to, highlights it for a moment, and the words it was found by for longer. Follows
 * `chat.target`.
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
        highlightWords(element, target.words);
        onArrived();
      }
    };
    settle(FRAMES);
    element.classList.add("is-target");
    const timer = setTimeout(() => element.classList.replace("is-target", "was-target"), HIGHLIGHT_MS);
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      element.classList.remove("is-target", "was-target");
    };
  }, [target]);
  // Highlights belong to the search they came from.
  const isSearching = chat.search.isOpen.value;
  useEffect(() => () => void findHighlights()?.delete(HIGHLIGHT_NAME), [isSearching]);
}

/** Highlights words without changing elements. Browsers without support only show the message. */
function highlightWords(element: Element, words: readonly string[]): void {
  const registry = findHighlights();
  if (!registry) return;
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    // Running out of time is not a result.
    if (node.parentElement?.closest(".message-actions")) continue;
    for (const [start, end] of findTerms(node.textContent ?? "", words)) {
      const range = document.createRange();
      range.setStart(node, start);
      range.setEnd(node, end);
      ranges.push(range);
    }
  }
  registry.set(HIGHLIGHT_NAME, new Highlight(...ranges));
}

function findHighlights(): HighlightRegistry | undefined {
  return typeof Highlight === "function" ? CSS.highlights : undefined;
}
