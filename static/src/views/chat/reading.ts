/** Notices that somebody reads the chat on the screen. */

/** Signs of a reader. A chat also scrolls by itself. */
const SIGNS = ["keydown", "pointerdown", "wheel", "touchmove"];

/**
 * Calls back once somebody reads: at the first key, click or scroll in a visible page, or at once if the page was used
 * already. A page that was only loaded, as browsers do after a restart, has no reader.
 *
 * @returns A function that stops waiting.
 */
export function whenRead({ document, navigator }: Window, onRead: () => void): () => void {
  const controller = new AbortController();
  const { signal } = controller;
  const note = () => {
    if (document.visibilityState === "hidden" || signal.aborted) return;
    controller.abort();
    onRead();
  };
  const noteIfUsed = () => {
    if (navigator.userActivation?.hasBeenActive) note();
  };
  for (const sign of SIGNS) document.addEventListener(sign, note, { signal, capture: true, passive: true });
  document.addEventListener("visibilitychange", noteIfUsed, { signal });
  noteIfUsed();
  return () => controller.abort();
}
