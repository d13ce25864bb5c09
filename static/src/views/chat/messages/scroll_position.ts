/** The scroll position: keeps the end of the messages in view, and scrolls to a message. */
import { findTerms } from "../../../../../services/json/search_fold.ts";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { OpenChat } from "../../../state/chat/open_chat.ts";

/** A reader at most this far from the end follows it, in px. */
const NEAR_END_PX = 64;

/** Whether the browser itself holds what is read, except at the very top. Safari doesn't. */
const isAnchoring = typeof CSS !== "undefined" && CSS.supports("overflow-anchor", "auto");

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
  /** Keeps what is read where it is on the screen. Call it when content above may have changed. */
  hold(): void;
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
  /** The reader has scrolled up a little, but still follows. */
  const isOff = useRef(false);
  const held = useRef<Anchor[]>([]);

  const toEnd = () => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
    last.current = getScrollPosition(box.current);
    isOff.current = false;
    note();
  };
  // Without a reply that grows, a step of a line or two isn't undone.
  const isHeld = () => !isFollowing.current || isOff.current && chat.replies.run.peek() === undefined;
  const note = () => {
    held.current = box.current ? findAnchors(box.current) : [];
  };
  const findShift = () => {
    if (!box.current || isAnchoring && box.current.scrollTop > 0) return 0;
    const anchor = held.current.find(({ element }) => element.isConnected && element.getClientRects().length > 0);
    return anchor ? findTop(box.current, anchor.element) - anchor.topPx : 0;
  };
  const hold = () => {
    const shiftPx = findShift();
    if (!box.current || !isHeld() || Math.abs(shiftPx) < 1) return;
    box.current.scrollTop += shiftPx;
    last.current = getScrollPosition(box.current);
    note();
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
    note();
  };

  useLayoutEffect(() => {
    if (isFollowing.current) toEnd();
  }, []);
  useEffect(() => {
    const observer = new ResizeObserver(() => {
      if (isHeld()) hold();
      else toEnd();
      if (!isFollowing.current) setNewCount(countNew());
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
      hold();
      const position = getScrollPosition(box.current);
      // What came above in this frame, while the reader followed the end, doesn't take the reader away from it.
      const fromEnd = position.fromEnd - findShift();
      const isNear = fromEnd < NEAR_END_PX && !chat.window.hasBelow.peek();
      // Growing or shrinking content moves the position, too; only a reader scrolls up and away at once. It looks the
      // same if the content shrinks and then the box, for example when the composer appears below it.
      const isResized = position.boxHeight !== last.current.boxHeight;
      const isLeaving = !isResized && position.top < last.current.top - 1 &&
        position.fromEnd > last.current.fromEnd + 1;
      last.current = position;
      if (isLeaving) isOff.current = true;
      else if (fromEnd <= 1) isOff.current = false;
      hold();
      if (isNear && !isFollowing.current) setFollowing(true);
      else if (!isNear && isLeaving && isFollowing.current) setFollowing(false);
      else note();
    },
    jump() {
      chat.window.toEnd();
      setFollowing(true);
      // After pending rendering.
      requestAnimationFrame(toEnd);
      box.current?.focus({ preventScroll: true });
    },
    leave: () => setFollowing(false),
    hold,
  };
}

/** Something in view, and where it stands in the content, which scrolling doesn't change. */
interface Anchor {
  element: Element;
  topPx: number;
}

/** Distances from the top of the view at which something to hold is looked for, in px: there are gaps between messages. */
const ANCHORS_PX = [1, 24, 48, 96, 192, 288];

/**
 * Finds what stands at the top of the view: texts and pictures, and the message around the first, each of which may outlive
 * the ones before it: a diagram takes the place of its source.
 */
function findAnchors(box: HTMLElement): Anchor[] {
  const { left, top } = box.getBoundingClientRect();
  const found = ANCHORS_PX.flatMap((px) => {
    const element = document.elementFromPoint(left + box.clientWidth / 2, top + px);
    const message = element?.closest(".message");
    return element && message && box.contains(message) ? [[element, message]] : [];
  });
  const contents = found.filter(([element]) => hasContent(element!));
  const [first] = contents.length > 0 ? contents : found;
  if (!first) return [];
  const elements = new Set([first[0]!, ...contents.map(([element]) => element!), first[1]!]);
  return [...elements].map((element) => ({ element, topPx: findTop(box, element) }));
}

/** Whether the element itself shows something; what only contains others can keep its place while they move. */
function hasContent(element: Element): boolean {
  return element.matches("img, svg, canvas") ||
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent!.trim() !== "");
}

function findTop(box: HTMLElement, element: Element): number {
  return element.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
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

/** Frames in which the position is corrected: what is near may only be loaded or drawn now. */
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
