import { expect, test, vi } from "vitest";
import { Pace } from "../../../services/async/yield_to_event_loop.ts";

const busy = (ms: number) => {
  for (const until = performance.now() + ms; performance.now() < until;);
};

test("long work lets a timer that is due have its turn, short work goes straight on", async () => {
  let fired = 0;
  const timer = setInterval(() => fired++, 1);
  try {
    // However long a busy machine takes over them, these steps take no time of their own.
    const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now());
    const short = new Pace();
    for (let step = 0; step < 100; step++) await short.rest();
    expect(fired).toBe(0);
    clock.mockRestore();
    const long = new Pace();
    for (let step = 0; step < 20; step++) {
      busy(3);
      await long.rest();
    }
    expect(fired).toBeGreaterThanOrEqual(3);
    const before = fired;
    busy(2);
    await new Pace().stop();
    expect(fired).toBeGreaterThan(before);
  } finally {
    clearInterval(timer);
  }
});

test("pieces of work that follow one another share one turn", async () => {
  let hadTurn = false;
  const timer = setTimeout(() => hadTurn = true);
  try {
    for (let step = 0; step < 4; step++) {
      busy(3);
      await new Pace().rest();
    }
    expect(hadTurn).toBe(true);
  } finally {
    clearTimeout(timer);
  }
});
