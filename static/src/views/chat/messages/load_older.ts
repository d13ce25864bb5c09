/** Brings older messages in above what is read, without moving what is read. */
import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { asApiError } from "../../../api/client.ts";

/**
 * Gives what shows the messages before those that are shown.
 *
 * Browsers that anchor scrolling do the same by themselves, but not at the very top, and Safari not at all.
 */
export function useStepsBack(
  chat: OpenChat,
  box: RefObject<HTMLElement | null>,
  content: RefObject<HTMLElement | null>,
): () => Promise<void> {
  const held = useRef<{ element: Element; top: number }>(undefined);
  const first = chat.window.shown.value[0]?.id;
  useLayoutEffect(() => {
    const { element, top } = held.current ?? {};
    held.current = undefined;
    if (!box.current || !element?.isConnected || top === undefined) return;
    box.current.scrollTop += element.getBoundingClientRect().top - top;
  }, [first]);
  return async () => {
    try {
      // Measured when the new ones are here, not when they are asked for: the reader scrolls on meanwhile.
      await chat.window.moreAbove(() => {
        const element = content.current?.querySelector(".message");
        if (element) held.current = { element, top: element.getBoundingClientRect().top };
      });
    } catch (thrown) {
      chat.problem.value = asApiError(thrown);
    }
  };
}
