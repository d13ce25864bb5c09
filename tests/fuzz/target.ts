/** A fuzz target: a reader of foreign content, and how to run it. */
import { AppError } from "../../services/errors.ts";
import type { Random } from "./random.ts";

/** A reader under test. */
export interface FuzzTarget<Input = unknown> {
  name: string;
  /** Longest stretch of work without a break, in ms of CPU time; that of the serving thread unless set. */
  maxStretchMs?: number;
  /** Creates an input. The same random values create the same input. */
  generate(random: Random): Input;
  /** Tries an input. Whatever it throws is a finding; what the reader may throw it catches, as `unlessRefused` does. */
  run(input: Input): void | Promise<void>;
  /** Inputs that once broke a reader, or that an attacker would try first. All of them run before anything random. */
  cases: Record<string, () => Input>;
  /** CPU time that was spent for it in another process. */
  cpuElsewhereMs?(): number;
  /** Bytes retained after garbage collection, where the reader doesn't run in this process. */
  retainedBytes?(): Promise<number>;
  /** Opens what all runs share. */
  open?(): void | Promise<void>;
  /** Closes it. */
  close?(): void | Promise<void>;
}

/** Longest stretch on the thread that serves. */
export const SERVING_STRETCH_MS = 200;

/** Lets a target have an input of its own type in a list of targets. */
export function target<Input>(target: FuzzTarget<Input>): FuzzTarget {
  return target as FuzzTarget;
}

/** Returns what a reader returns, `undefined` when it refuses the input with an error of ours. A defect is thrown on. */
export function unlessRefused<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isRefusal(error)) return undefined;
    throw error;
  }
}

/** `unlessRefused` for readers that wait. */
export async function unlessRefusedLater<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (isRefusal(error)) return undefined;
    throw error;
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof AppError && error.code !== "internal";
}

/** Ends a stretch: what comes next is not work of the reader's first call. */
export function nextStretch(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

/** @throws {Error} unless a claim holds. */
export function claim(holds: boolean, found: () => string): asserts holds {
  if (!holds) throw new Error(found());
}

/** @throws {Error} unless two values are the same JSON. */
export function claimSame(found: unknown, expected: unknown, what: string): void {
  const [is, ought] = [JSON.stringify(found), JSON.stringify(expected)];
  if (is === ought) return;
  let at = 0;
  while (is?.[at] === ought?.[at]) at++;
  const near = (text: string | undefined) => text?.slice(Math.max(0, at - 60), at + 60);
  throw new Error(`${what}: ${near(is)} instead of ${near(ought)}`);
}
