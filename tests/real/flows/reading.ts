/** Reading upwards in a long chat. */
import { expect } from "vitest";
import { isLong } from "../../helpers/files/sample.ts";
import { makeRgbaPng } from "../../helpers/files/png_files.ts";
import type { Tab } from "../helpers/engines/engine.ts";
import type { Flow } from "./flow.ts";

const MESSAGES = 5000;
const SENTENCE = "The tide went out before noon and left the boats lying on their sides. ";
const DIAGRAM = "\n\n```mermaid\ngraph TD\n  A[Start] --> B[Middle] --> C[End]\n```";
const STEPS_PX = [40, 120, 300, 77];
const STEPS = isLong() ? 80 : 24;
/** A finger moves the page by a little in each frame. */
const WAYS = ["at once", "wheel", "finger", "key"] as const;
/** More than a step. */
const REACH_PX = 400;
/** The last messages, among which are pictures: more than the steps reach. */
const NEAR = 120;

function writeAnswer(n: number): string {
  const paragraphs = Array.from({ length: 1 + n % 5 }, () => SENTENCE.repeat(1 + n % 4));
  return `Answer ${n}.\n\n${paragraphs.join("\n\n")}${n % 22 === 21 ? DIAGRAM : ""}`;
}

/** Counts the diagrams in view, or a step above it, that aren't drawn yet. Those farther up may be drawn at any moment. */
function countUndrawn(reachPx: number): number {
  const { top, bottom } = document.querySelector(".message-scroll")!.getBoundingClientRect();
  const sources = [...document.querySelectorAll(".reply .prose pre")].filter((pre) =>
    pre.textContent!.includes("graph TD")
  );
  return sources.map((pre) => pre.closest(".code-block")?.getBoundingClientRect() ?? pre.getBoundingClientRect())
    .filter((box) => box.bottom > top - reachPx && box.top < bottom).length;
}

/** Has a picture of its own, so that each is loaded when it comes near. */
const hasPicture = (n: number) => n % 6 === 5 && n >= MESSAGES - NEAR;

function writeMessage(n: number) {
  const [role, content] = n % 2 === 0 ? ["user", `Question ${n}`] : ["assistant", writeAnswer(n)];
  return { id: `long-${n}`, role, content, ...(hasPicture(n) && { attachments: [`long-${n}.png`] }) };
}

/** How far the line moved, in px, and whether something above it came or changed meanwhile. */
interface Step {
  moved: number;
  isCorrected: boolean;
}

/**
 * Scrolls up, and gives how far the line at a third of the view moved once it has stood still for some frames.
 *
 * @param px Null for a key, whose step is the browser's.
 */
async function scrollUp(tab: Tab, way: typeof WAYS[number], px: number | null): Promise<Step> {
  const at = await tab.evaluate(() => {
    const box = document.querySelector<HTMLElement>(".message-scroll")!;
    const { x, y, width, height } = box.getBoundingClientRect();
    const line = [...box.querySelectorAll<HTMLElement>(".prose > *, .user-text")]
      .filter((each) => each.getBoundingClientRect().height > 0)
      .findLast((each) => each.getBoundingClientRect().top <= y + height / 3)!;
    const top = line.getBoundingClientRect().top;
    Object.assign(globalThis, { read: { line, top, inContent: top + box.scrollTop } });
    box.focus({ preventScroll: true });
    return { x: x + width / 2, y: y + height / 2 };
  });
  if (way === "wheel") await tab.driver.wheel(at.x, at.y, -px!);
  if (way === "key") await tab.press("ArrowUp");
  return await tab.evaluate(
    async (way, px) => {
      const { read } = globalThis as unknown as { read: { line: Element; top: number; inContent: number } };
      const { line, top, inContent } = read;
      const box = document.querySelector(".message-scroll")!;
      const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
      if (way === "at once") box.scrollTop -= px!;
      for (let left = way === "finger" ? px! : 0; left > 0; left -= 12) {
        box.scrollTop -= Math.min(12, left);
        await frame();
      }
      // Smooth scrolling takes its time; a leap stays wrong for as long as it is looked at. Where a key's step ends is seen
      // only by its end.
      const enough = px === null ? 60 : 5;
      let moved = 0;
      for (let still = 0, frames = 0; still < enough && frames < 300; frames++) {
        await frame();
        const before = moved;
        moved = line.getBoundingClientRect().top - top;
        const isRight = px === null ? moved !== 0 && moved === before : Math.abs(moved - px) <= 2;
        still = isRight ? still + 1 : 0;
      }
      const isCorrected = Math.abs(line.getBoundingClientRect().top + box.scrollTop - inContent) > 1;
      return { moved: Math.round(moved), isCorrected };
    },
    way,
    px,
  );
}

/**
 * Each step up moves the line that is read by just that, where older messages come, pictures load, diagrams are drawn, and a
 * reply is written below.
 */
export const readsUpwards: Flow = async ({ app, llm, tab }) => {
  const numbers = Array.from({ length: MESSAGES }, (_, n) => n);
  const picture = makeRgbaPng(300, 402, (x, y) => [x & 255, y & 255, 90, 255]);
  for (const n of numbers.filter(hasPicture)) {
    await app.put(`/api/attachments/long-${n}.png`, picture, { headers: { "Content-Type": "image/png" } });
  }
  const stored = await app.put("/api/conversations/long", { title: "Chat long", messages: numbers.map(writeMessage) });
  expect(stored.status).toBe(201);
  await tab.goto(`${app.url}/c/long`);
  await tab.see(".message", /Answer 4999/);
  await tab.fill(".composer textarea", "Go on");
  await tab.press("Enter");
  const call = await llm.nextCall();
  await call.emit("I write on.\n\n");
  await tab.see(".reply", /I write on/);
  // Who is at the end follows it while the chat opens; who has left it reads.
  await tab.until((px) => px > 200, () => {
    const box = document.querySelector(".message-scroll")!;
    const fromEndPx = box.scrollHeight - box.scrollTop - box.clientHeight;
    if (fromEndPx <= 200) box.scrollTop -= 300;
    return fromEndPx;
  });
  // On a busy machine, what stands above and below the messages comes late, and then moves all of them.
  await tab.evaluate(async () => {
    const box = document.querySelector(".message-scroll")!;
    let before = "";
    for (let still = 0, frames = 0; still < 20 && frames < 600; frames++) {
      await new Promise((resolve) => requestAnimationFrame(resolve));
      const { y, height } = box.getBoundingClientRect();
      const now = [y, height, box.scrollHeight].join();
      still = now === before ? still + 1 : 0;
      before = now;
    }
  });
  const wrong: string[] = [];
  const keySteps: Step[] = [];
  for (let n = 0; n < STEPS; n++) {
    const [way, px] = [WAYS[n % WAYS.length]!, STEPS_PX[(n + Math.floor(n / 4)) % STEPS_PX.length]!];
    if (n % 3 === 0) await call.emit(`${SENTENCE.repeat(3)}\n\n`);
    // Where a source stands in view, its diagram moves what is above or below it.
    await tab.until((count) => count === 0, countUndrawn, REACH_PX);
    const step = await scrollUp(tab, way, way === "key" ? null : px);
    const { moved } = step;
    if (way === "key") keySteps.push(step);
    else if (Math.abs(moved - px) > 2) wrong.push(`step ${n}, ${way}: ${moved} instead of ${px}`);
  }
  expect(wrong.join("\n")).toBe("");
  // All steps of a key are the same. A correction ends the smooth scrolling of a key early, which moves the line by less.
  const keyPx = keySteps.map(({ moved }) => moved).toSorted((a, b) => a - b)[keySteps.length >> 1]!;
  const isRight = ({ moved, isCorrected }: Step) =>
    moved > 0 && moved <= keyPx + 2 && (isCorrected || moved >= keyPx - 2);
  expect(keySteps.filter((step) => !isRight(step)), JSON.stringify(keySteps)).toEqual([]);
  await call.finish();
  await tab.gone("button", "Stop");
};
