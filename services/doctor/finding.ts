/** What a look at the installation found. */
import { messageOf } from "../errors.ts";

/** One thing looked at. */
export interface Finding {
  /** `"note"` is worth knowing and nothing wrong; a `"problem"` is. */
  level: "ok" | "note" | "problem";
  /** What was looked at and how it is, a sentence without a period. */
  about: string;
  /** What to do about it; always there for a problem. */
  remedy?: string;
}

/** Gives a finding that all is well. */
export function ok(about: string): Finding {
  return { level: "ok", about };
}

/** Gives something to know. */
export function note(about: string, remedy?: string): Finding {
  return { level: "note", about, remedy };
}

/** Gives something wrong, with its remedy. */
export function problem(about: string, remedy: string): Finding {
  return { level: "problem", about, remedy };
}

/** Looks, and takes a failure of the look itself for a finding. */
export async function looking(
  what: string,
  remedy: string,
  look: () => Finding[] | Promise<Finding[]>,
): Promise<Finding[]> {
  try {
    return await look();
  } catch (error) {
    return [problem(`${what}: ${messageOf(error)}`, remedy)];
  }
}
