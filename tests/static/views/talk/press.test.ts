import { expect, test } from "vitest";
import { followPress } from "../../../../static/src/views/talk/press.ts";

/** An event of a pointer at this time. */
function happen(timeStamp: number, type: string): Event {
  return Object.defineProperty(new Event(type), "timeStamp", { value: timeStamp });
}

/** Presses at 0 ms, and returns what happens at later times. */
function press() {
  const target = new EventTarget();
  const followed = followPress(target, happen(0, "pointerdown"));
  const holds: number[] = [];
  let lastMs = 0;
  followed.onHoldEnd = () => void holds.push(lastMs);
  const at = (ms: number, type: string) => {
    lastMs = ms;
    target.dispatchEvent(happen(ms, type));
  };
  return { followed, holds, at };
}

test("the release of a long press ends a hold, once", () => {
  const { followed, holds, at } = press();
  expect(followed.isDown).toBe(true);
  at(2_000, "pointerup");
  at(3_000, "pointerup");
  expect([followed.isDown, holds]).toEqual([false, [2_000]]);
});

test("a short press isn't a hold, and later presses aren't its release", () => {
  const { followed, holds, at } = press();
  at(200, "pointerup");
  at(5_000, "pointerup");
  expect([followed.isDown, holds]).toEqual([false, []]);
});

test("a pointer that the browser takes isn't released", () => {
  const { followed, holds, at } = press();
  at(2_000, "pointercancel");
  at(3_000, "pointerup");
  expect([followed.isDown, holds]).toEqual([false, []]);
});
