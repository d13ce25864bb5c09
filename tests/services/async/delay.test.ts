import { expect, test, vi } from "vitest";
import { delay, raceAbort, yieldIfTickUsedUp, yieldToEventLoop } from "../../../services/async/delay.ts";

test("a delay ends early when it is woken, and fails with the reason of its signal", async () => {
  await delay(60_000, undefined, Promise.resolve());
  await delay(60_000, undefined, Promise.reject(new Error("counts as a wake-up")));
  const leaving = new AbortController();
  const waiting = delay(60_000, leaving.signal);
  leaving.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  await expect(delay(0, leaving.signal)).rejects.toThrow("gone");
});

test("waits for work until the signal aborts, after which the work may fail", async () => {
  const leaving = new AbortController();
  expect(await raceAbort(Promise.resolve("done"), leaving.signal)).toBe("done");
  await expect(raceAbort(Promise.reject(new Error("broken")), leaving.signal)).rejects.toThrow("broken");
  const work = Promise.withResolvers<void>();
  const waiting = raceAbort(work.promise, leaving.signal);
  leaving.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  await expect(raceAbort(work.promise, leaving.signal)).rejects.toThrow("gone");
  work.reject(new Error("too late"));
});

const busy = (ms: number) => {
  for (const until = performance.now() + ms; performance.now() < until;);
};

test("long work lets a due timer fire, and short work doesn't wait", async () => {
  let fired = 0;
  const timer = setInterval(() => fired++, 1);
  try {
    // These steps may take long on a busy machine, so the clock is stopped.
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

test("consecutive pieces of work share one tick", async () => {
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

/** Opens both ends of a connection. The second one sends back what it reads. */
async function openEcho(): Promise<Deno.TcpConn> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0, transport: "tcp" });
  const [near, far] = await Promise.all([
    Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port }),
    listener.accept(),
  ]);
  (async () => {
    const byte = new Uint8Array(1);
    while (await far.read(byte) !== null) await far.write(byte);
    far.close();
  })().catch(() => {});
  return near;
}

const STEP_MS = 4;

/** A step whose next one follows at once. */
async function step(): Promise<void> {
  busy(STEP_MS);
  await yieldIfTickUsedUp();
}

/** A step that waits for another thread. */
async function stepWithDigest(): Promise<void> {
  busy(STEP_MS);
  await crypto.subtle.digest("SHA-256", new Uint8Array(1_000));
  await yieldIfTickUsedUp();
}

test.each([
  ["eight pieces of long work", step],
  ["eight that wait for other threads in between", stepWithDigest],
])("polls sockets during %s", async (_name, work) => {
  using near = await openEcho();
  let [steps, isOver] = [0, false];
  const working = Array.from({ length: 8 }, async () => {
    for (; !isOver && steps < 1_000; steps++) await work();
  });
  // Web Crypto keeps completing, so the event loop is always busy.
  const answering = Array.from({ length: 4 }, async () => {
    while (!isOver) await crypto.subtle.digest("SHA-256", new Uint8Array(10_000));
  });
  let mostSteps = 0;
  for (let n = 0; n < 20; n++) {
    const before = steps;
    await near.write(new Uint8Array(1));
    await near.read(new Uint8Array(1));
    mostSteps = Math.max(mostSteps, steps - before);
  }
  isOver = true;
  await Promise.all([...working, ...answering]);
  // A round trip is two ticks of two steps each; sockets polled at every 61st iteration of the event loop would take hundreds.
  expect(mostSteps).toBeLessThanOrEqual(20);
});
