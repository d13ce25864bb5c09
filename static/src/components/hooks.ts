/** Small things that several views need from the browser. */
import { Component, type ComponentChildren, type ComponentType, h, type RefObject } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

/** Tells whether a media query holds, now and later. */
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

/** Gives the time, again every second while `isRunning`. */
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

/** Gives the page its title while the view is shown. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title;
  }, [title]);
}

/** Does something once the next frame is drawn. @returns What calls it off. */
export function afterPaint(work: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const frame = requestAnimationFrame(() => timer = setTimeout(work));
  return () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
  };
}

/** Does something once the page has nothing better to do. Gives what takes it back. Safari has no idle callbacks. */
export function whenIdle(work: () => void): () => void {
  if (typeof requestIdleCallback === "function") {
    const handle = requestIdleCallback(work, { timeout: 1000 });
    return () => cancelIdleCallback(handle);
  }
  const timer = setTimeout(work, 50);
  return () => clearTimeout(timer);
}

/** Wraps a component that depends on its props alone. */
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

/** Newer browsers do it in the layout itself; measuring on every key costs a layout of the page. */
const isNative = typeof CSS !== "undefined" && CSS.supports("field-sizing", "content");

/** Sets the height after each change of the text; style sheets cap it. */
export function useAutoHeight(area: RefObject<HTMLTextAreaElement | null>, text: string): void {
  useLayoutEffect(() => {
    const { current } = area;
    if (!current || isNative) return;
    current.style.height = "auto";
    current.style.height = `${current.scrollHeight}px`;
  }, [text]);
}
