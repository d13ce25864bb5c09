/** Text areas as high as their text. */
import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";

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
