/** Hooks and helpers that several views share. */
import { Component, type ComponentChildren, type ComponentType, h, type RefObject } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

/** Returns whether a media query matches, and updates. */
export function useMedia(query: string): boolean {
  const [holds, setHolds] = useState(() => globalThis.matchMedia(query).matches);
  useEffect(() => {
    const media = globalThis.matchMedia(query);
    const onChange = () => setHolds(media.matches);
    onChange();
    media.addEventListener("change", onChange);
    return () => media.removeEventListener("change", onChange);
  }, [query]);
  return holds;
}

/** Width of the left edge of a touch screen from which a swipe opens the drawer, in px. */
export const EDGE_PX = 24;

/** Returns the time, every second while `isRunning`. */
export function useNow(isRunning: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isRunning) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isRunning]);
  return now;
}

/** Sets the document title while the view is shown. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title;
  }, [title]);
}

/**
 * Calls back one frame after elements have changed their size. In the same frame, what moves would be measured again,
 * which browsers report as an error. Returns a function that stops it.
 */
export function watchSize(elements: readonly Element[], onResize: ResizeObserverCallback): () => void {
  let frame = 0;
  const observer = new ResizeObserver((...change) => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => onResize(...change));
  });
  for (const element of elements) observer.observe(element);
  return () => {
    cancelAnimationFrame(frame);
    observer.disconnect();
  };
}

/** Runs work when the page is idle. Returns a function that cancels it. Safari has no idle callbacks. */
export function whenIdle(work: () => void): () => void {
  if (typeof requestIdleCallback === "function") {
    const handle = requestIdleCallback(work, { timeout: 1000 });
    return () => cancelIdleCallback(handle);
  }
  const timer = setTimeout(work, 50);
  return () => clearTimeout(timer);
}

/** Memoizes a component that depends on its props alone. */
export function memo<P extends object>(view: (props: P) => ComponentChildren): ComponentType<P> {
  return class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const before = this.props as Record<string, unknown>;
      const after = next as Record<string, unknown>;
      return Object.keys(after).some((key) => after[key] !== before[key]);
    }

    override render() {
      return h(view as ComponentType<P>, this.props as P);
    }
  };
}

/** Newer browsers do this in layout; measuring on every key costs a layout of the page. */
const isNative = typeof CSS !== "undefined" && CSS.supports("field-sizing", "content");

/** Sets the height of a text area after each change. Style sheets cap it. */
export function useAutoHeight(area: RefObject<HTMLTextAreaElement | null>, text: string): void {
  useLayoutEffect(() => {
    const { current } = area;
    const around = current?.parentElement;
    if (!current || !around || isNative) return;
    // What is around keeps its height meanwhile: else the messages above would have more space for a moment, and scroll.
    around.style.minHeight = `${around.offsetHeight}px`;
    current.style.height = "auto";
    current.style.height = `${current.scrollHeight}px`;
    around.style.minHeight = "";
  }, [text]);
}
