/** Reading upwards in a long chat. */
import { expect } from "vitest";
import type { Tab } from "../helpers/engines/engine.ts";
import { type Flow, store } from "./flow.ts";

const MESSAGES = 5000;
const SENTENCE = "The tide went out before noon and left the boats lying on their sides. ";
const DIAGRAM = "\n\n```mermaid\ngraph TD\n  A[Start] --> B[Middle] --> C[End]\n```";
const STEPS_PX = [40, 120, 300, 77];

function writeAnswer(n: number): string {
  const paragraphs = Array.from({ length: 1 + n % 5 }, () => SENTENCE.repeat(1 + n % 4));
  return `Answer ${n}.\n\n${paragraphs.join("\n\n")}${n % 22 === 21 ? DIAGRAM : ""}`;
}

/** Scrolls and gives how far the line at a third of the view moved beside that, once it has stood still for some frames. */
async function scrollUp(tab: Tab, px: number, how: "wheel" | "script"): Promise<number> {
  const at = await tab.evaluate(() => {
    const box = document.querySelector(".message-scroll")!;
    const { x, y, width, height } = box.getBoundingClientRect();
    const line = [...box.querySelectorAll<HTMLElement>(".prose > *, .user-text")]
      .filter((each) => each.getBoundingClientRect().height > 0)
      .findLast((each) => each.getBoundingClientRect().top <= y + height / 3)!;
    Object.assign(globalThis, { read: { line, top: line.getBoundingClientRect().top } });
    return { x: x + width / 2, y: y + height / 2 };
  });
  if (how === "wheel") await tab.driver.wheel(at.x, at.y, -px);
  return await tab.evaluate(
    async (isWheel, px) => {
      const { line, top } = (globalThis as unknown as { read: { line: Element; top: number } }).read;
      if (!isWheel) document.querySelector(".message-scroll")!.scrollTop -= px;
      // Smooth scrolling takes its time; a leap stays wrong for as long as it is looked at.
      let moved = 0;
      for (let still = 0, frames = 0; still < 5 && frames < 120; frames++) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        moved = line.getBoundingClientRect().top - top - px;
        still = Math.abs(moved) <= 2 ? still + 1 : 0;
      }
      return Math.round(moved);
    },
    how === "wheel",
    px,
  );
}

/** Each step up moves the line that is read by just that, where older messages come and diagrams are drawn. */
export const readsUpwards: Flow = async ({ app, tab }) => {
  await store(app, "long", Array.from({ length: MESSAGES }, (_, n) => n % 2 === 0 ? `Question ${n}` : writeAnswer(n)));
  await tab.goto(`${app.url}/c/long`);
  await tab.see(".message", /Answer 4999/);
  // Who is at the end follows it while the chat opens; who has left it reads.
  await tab.until((px) => px > 200, () => {
    const box = document.querySelector(".message-scroll")!;
    const fromEndPx = box.scrollHeight - box.scrollTop - box.clientHeight;
    if (fromEndPx <= 200) box.scrollTop -= 300;
    return fromEndPx;
  });
  const wrong: number[] = [];
  for (let n = 0; n < 40; n++) {
    wrong.push(await scrollUp(tab, STEPS_PX[n % STEPS_PX.length]!, n % 4 === 1 ? "wheel" : "script"));
  }
  expect(wrong.filter((px) => Math.abs(px) > 2), String(wrong)).toEqual([]);
};
