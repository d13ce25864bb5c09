/** Measurements inside a page. Each function is evaluated there and refers to nothing outside of it. */

/** Measurements while a user types, with or without an incoming reply. */
export interface TypingFigures {
  /** Time from a key press to the frame that shows it, in milliseconds. */
  keys: number[];
}

/** Starts recording key presses. `endTyping` returns the result. */
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

/** Returns the measurements since `beginTyping`. */
export function endTyping(): TypingFigures {
  return (globalThis as { typingNoted?: TypingFigures }).typingNoted!;
}

/** Waits for the first contentful paint and returns its time since the start of navigation, in milliseconds. */
export function firstPaint(): Promise<number> {
  return new Promise((resolve) => {
    new PerformanceObserver((list) => {
      const entry = list.getEntriesByName("first-contentful-paint")[0];
      if (entry) resolve(entry.startTime);
    }).observe({ type: "paint", buffered: true });
  });
}

/** Follows a link and returns the time until a text in the message list was painted, in milliseconds. */
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

/** Images of a page of this size, and where in it the list is. */
export interface RecordedFrames {
  /** JPEG files in base64. */
  images: string[];
  box: { x: number; y: number; width: number; height: number };
  view: { width: number; height: number };
}

/**
 * Counts the images in which a part of the list is blank: a band as wide as the list and a sixth as high, in which the
 * brightness hardly differs. Each band of a filled list shows text or the edge of a portrait.
 */
export async function countBlankBands({ images, box, view }: RecordedFrames): Promise<number> {
  const [bands, leastContrast] = [6, 8];
  let blank = 0;
  for (const data of images) {
    const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: "image/jpeg" }));
    const scale = image.width / view.width;
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d")!;
    context.drawImage(image, 0, 0);
    const bandPx = Math.floor(box.height * scale / bands);
    let isBlank = false;
    for (let band = 0; band < bands; band++) {
      const [x, y] = [Math.ceil(box.x * scale) + 4, Math.ceil(box.y * scale) + band * bandPx];
      // Without the scroll bar.
      const width = Math.floor(box.width * scale) - 24;
      const { data: pixels } = context.getImageData(x, y, width, bandPx);
      let [least, most] = [255, 0];
      for (let at = 1; at < pixels.length; at += 4) {
        least = Math.min(least, pixels[at]!);
        most = Math.max(most, pixels[at]!);
      }
      if (most - least < leastContrast) isBlank = true;
    }
    if (isBlank) blank++;
    image.close();
  }
  return blank;
}
