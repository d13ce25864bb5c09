/** States of background jobs and the allowed transitions. */

import { AppError } from "../errors.ts";

/** State of a job. */
export type JobState = "queued" | "running" | "verifying" | "done" | "failed" | "cancelled";

/** Allowed transitions. States without an entry are final. */
const LEGAL_STEPS: Partial<Record<JobState, readonly JobState[]>> = {
  queued: ["running", "cancelled"],
  running: ["verifying", "failed", "cancelled"],
  verifying: ["done", "failed"],
};

/** All states, in the order a job goes through them. */
export const JOB_STATES: readonly JobState[] = ["queued", "running", "verifying", "done", "failed", "cancelled"];

/** Returns whether a stored text is a state. */
export function isJobState(text: string): text is JobState {
  return JOB_STATES.some((state) => state === text);
}

/** Returns whether a state is final. */
export function isEnd(state: JobState): boolean {
  return LEGAL_STEPS[state] === undefined;
}

/** Returns whether a transition is allowed. */
export function isLegalStep(from: JobState, to: JobState): boolean {
  return LEGAL_STEPS[from]?.includes(to) ?? false;
}

/**
 * Refuses an illegal step.
 *
 * @throws {AppError} `conflict`, naming both states.
 */
export function assertLegalStep(id: string, from: JobState, to: JobState): void {
  if (!isLegalStep(from, to)) {
    throw new AppError("conflict", `Job "${id}" can't change from ${from} to ${to}`);
  }
}
