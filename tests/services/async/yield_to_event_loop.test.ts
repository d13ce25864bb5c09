import { expect, test, vi } from "vitest";
import { yieldIfTickUsedUp, yieldToEventLoop } from "../../../services/async/yield_to_event_loop.ts";

const busy = (ms: number) => {
  for (const until = performance.now() + ms; performance.now() < until;);
};

test("long work lets a due timer fire, and short work doesn't wait", async () => {
  let fired = 0;
  const timer = setInterval(() => fired++, 1);
  try {
    // A busy machine may take long over these steps. The stopped clock says that they take no time.
    const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now());
    for (let step = 0; step < 100; step++) await yieldIfTickUsedUp();
    expect(fired).toBe(0);
    clock.mockRestore();
    for (let step = 0; step < 20; step++) {
      busy(3);
      await yieldIfTickUsedUp();
    }
    expect(fired).toBeGreaterThanOrEqual(3);
    const before = fired;
    busy(2);
    await yieldToEventLoop();
    expect(fired).toBeGreaterThan(before);
  } finally {
    clearInterval(timer);
  }
});

test("pieces of work that follow one another share one tick", async () => {
  let hasFired = false;
  const timer = setTimeout(() => hasFired = true);
  try {
    for (let step = 0; step < 4; step++) {
      busy(3);
      await yieldIfTickUsedUp();
    }
    expect(hasFired).toBe(true);
  } finally {
    clearTimeout(timer);
  }
});
