/** A finger that moves sideways over a reply. */
import { useRef } from "preact/hooks";

/** A swipe is at least this long, and at most that steep. */
const MIN_PX = 64;
const MAX_SLOPE = 0.6;

/** What scrolls sideways in itself keeps its swipes. */
const SCROLLERS = "pre, .table-scroll, .formula, textarea";

/** Gives handlers for an element; a swipe to the left is a step forward, as with pages. */
export function useSwipe(onSwipe: (step: 1 | -1) => void) {
  const start = useRef<{ x: number; y: number }>(undefined);
  return {
    onTouchStart(event: TouchEvent) {
      const touch = event.touches[0]!;
      const isFree = event.touches.length === 1 &&
        !(event.target instanceof Element && event.target.closest(SCROLLERS));
      start.current = isFree ? { x: touch.clientX, y: touch.clientY } : undefined;
    },
    onTouchEnd(event: TouchEvent) {
      const touch = event.changedTouches[0];
      const from = start.current;
      start.current = undefined;
      if (!from || !touch) return;
      const [dx, dy] = [touch.clientX - from.x, touch.clientY - from.y];
      const isSwipe = Math.abs(dx) >= MIN_PX && Math.abs(dy) <= Math.abs(dx) * MAX_SLOPE;
      // A drag that selected text was no swipe.
      if (isSwipe && getSelection()?.isCollapsed !== false) onSwipe(dx < 0 ? 1 : -1);
    },
  };
}
