/** Reads stored data off the serving thread, to see whether it can be read. `integrity.ts` starts it. */
import { delay } from "../async/delay.ts";
import { createSealer } from "../crypto/sealer.ts";
import { getErrorMessage } from "../errors.ts";
import { reportDefects } from "../process/worker.ts";
import { type Damage, mergeDamages } from "./damage.ts";
import { type HealPlan, type HealRequest, planHealing } from "./heal_plan.ts";
import { checkAll, checkItems } from "./pass.ts";

/** The order. */
export interface IntegrityOrder {
  dataDir: string;
  storageKey: Uint8Array;
  /** What to check: single items, or everything from a cursor on. */
  what: { paths: readonly string[] } | { heal: Omit<HealRequest, "dataDir" | "sealer" | "storageKey"> } | {
    from: string | null;
    /** Share of the time in which it works, up to 1. */
    duty: number;
  };
}

/** Answers: during a pass any number of steps, then the end. Single items have only an end. */
export type IntegrityAnswer =
  | { kind: "step"; damages: Damage[]; cursor: string }
  | { kind: "end"; damages: Damage[] }
  | { kind: "plans"; plans: HealPlan[] }
  | { kind: "failure"; message: string };

/** How long it works between two pauses, in milliseconds. */
const BURST_MS = 50;

async function run({ dataDir, storageKey, what }: IntegrityOrder): Promise<IntegrityAnswer> {
  const data = { dataDir, sealer: createSealer(storageKey) };
  if ("paths" in what) return { kind: "end", damages: await checkItems(data, what.paths) };
  if ("heal" in what) return { kind: "plans", plans: await planHealing({ ...data, storageKey, ...what.heal }) };
  let beganMs = performance.now();
  let found: Damage[] = [];
  for await (const { damages, cursor } of checkAll(data, what.from)) {
    found.push(...damages);
    const workedMs = performance.now() - beganMs;
    if (workedMs < BURST_MS) continue;
    self.postMessage({ kind: "step", damages: mergeDamages(found), cursor } satisfies IntegrityAnswer);
    found = [];
    if (what.duty < 1) await delay(workedMs / what.duty - workedMs);
    beganMs = performance.now();
  }
  return { kind: "end", damages: mergeDamages(found) };
}

// Importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  reportDefects();
  self.onmessage = async ({ data }: MessageEvent<IntegrityOrder>) => {
    let answer: IntegrityAnswer;
    try {
      answer = await run(data);
    } catch (error) {
      answer = { kind: "failure", message: getErrorMessage(error) };
    }
    self.postMessage(answer);
    self.close();
  };
}
