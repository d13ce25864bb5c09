/** Prints a whole chat: the browser prints what is on the page, and the page shows only what is being read. */
import { useEffect } from "preact/hooks";
import { asApiError } from "../../../api/client.ts";
import { laterStyles } from "../../../components/Lazy.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";

/** Pictures and what else a message loads may take this long; then the chat is printed without it. In milliseconds. */
const MOST_MS = 15_000;

/** Prints the chat when that is asked for. @param list Its messages. */
export function usePrint(chat: OpenChat, list: { current: HTMLElement | null }): void {
  const { printing } = useStore();
  const isAsked = printing.value === chat.id;
  useEffect(() => {
    if (!isAsked) return;
    printing.value = undefined;
    printWhole(chat, list.current!).catch((thrown) => chat.problem.value = asApiError(thrown));
  }, [isAsked, chat]);
}

async function printWhole(chat: OpenChat, list: HTMLElement): Promise<void> {
  const [restore] = await Promise.all([chat.window.showAll(nextFrame), laterStyles()]);
  await Promise.race([finishLoading(list), new Promise((resolve) => setTimeout(resolve, MOST_MS))]);
  // An iPhone's print() returns before its preview is drawn.
  addEventListener("afterprint", restore, { once: true });
  print();
}

/** Waits until pictures are there, also those that would be loaded only when they come into view. */
async function finishLoading(list: HTMLElement): Promise<void> {
  while (list.querySelector(".lazy-loading")) await nextFrame();
  const images = [...list.querySelectorAll("img")];
  for (const image of images) image.loading = "eager";
  await Promise.allSettled(images.map((image) => image.decode()));
}

/** A hidden page draws no frames. */
function nextFrame(): Promise<void> {
  return new Promise((resolve) => {
    requestAnimationFrame(() => resolve());
    setTimeout(resolve, 100);
  });
}
