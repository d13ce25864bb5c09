/** What is measured inside of a page; each function runs there by itself and names nothing around it. */

/** How a page did while somebody typed and, perhaps, a reply came in. */
export interface TypingFigures {
  /** From a key to the frame that shows it, in milliseconds. */
  keys: number[];
}

/** Starts to note keys; `endTyping` gives what was noted. */
export function beginTyping(): void {
  const page = globalThis as { typingNoted?: TypingFigures };
  const isListening = page.typingNoted !== undefined;
  page.typingNoted = { keys: [] };
  if (isListening) return;
  addEventListener("input", (event) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => page.typingNoted!.keys.push(performance.now() - event.timeStamp);
    // A message that is sent in a frame arrives once the frame is drawn.
    requestAnimationFrame(() => port2.postMessage(0));
  }, { capture: true });
}

/** Gives what was noted since `beginTyping`. */
export function endTyping(): TypingFigures {
  return (globalThis as { typingNoted?: TypingFigures }).typingNoted!;
}

/** Gives when the page first showed something, in milliseconds from the begin of its navigation; waits for it. */
export function firstPaint(): Promise<number> {
  return new Promise((resolve) => {
    new PerformanceObserver((list) => {
      const entry = list.getEntriesByName("first-contentful-paint")[0];
      if (entry) resolve(entry.startTime);
    }).observe({ type: "paint", buffered: true });
  });
}

/** Follows a link of the page and gives the time until a text inside of the message list was drawn, in milliseconds. */
export async function timeToOpen([path, text]: readonly [path: string, text: string]): Promise<number> {
  const link = document.querySelector<HTMLElement>(`a[href="${path}"]`);
  if (!link) throw new Error(`The page has no link to ${path}`);
  const beganAt = performance.now();
  link.click();
  while (!document.querySelector(".messages")?.textContent?.includes(text)) {
    if (performance.now() - beganAt > 20_000) throw new Error(`The text "${text}" did not come`);
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
  await new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = resolve;
    requestAnimationFrame(() => port2.postMessage(0));
  });
  return performance.now() - beganAt;
}
