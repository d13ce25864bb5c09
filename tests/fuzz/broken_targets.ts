/** Readers with one fault each, to test the fuzzer. */
import { threadClock } from "./clock.ts";
import type { FuzzTarget } from "./target.ts";

const kept: Uint8Array[] = [];
let runs = 0;

const clock = threadClock();

/** Takes CPU time of this thread. */
function work(ms: number): void {
  const end = clock() + ms;
  while (clock() < end);
}

function broken(name: string, run: (n: number) => void, cases: FuzzTarget["cases"] = {}): FuzzTarget {
  return { name, generate: () => runs++, run: (n) => run(n as number), cases };
}

export const TARGETS: readonly FuzzTarget[] = [
  broken("works", () => {}),
  broken("throws", (n) => {
    if (n === 3) throw new TypeError("broken here");
  }),
  broken("stretches", () => work(250)),
  broken("pollutes", () => {
    Object.assign(Object.prototype, { polluted: 1 });
  }),
  broken("grows", () => {
    // A few inputs exceed the limit, because a busy machine may run no more in the time of the test.
    kept.push(new Uint8Array(16 * 1024 * 1024));
    work(20);
  }),
  broken("hangs", (n) => {
    while (n >= 2);
  }),
  broken("dies", () => {}, { exit: () => Deno.exit(7) }),
];
