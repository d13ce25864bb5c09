/** The states of a background job and the one table of its legal steps. */

import { AppError } from "../errors.ts";

/** Where a job stands. */
export type JobState = "queued" | "running" | "verifying" | "done" | "failed" | "cancelled";

/** Every legal step. A state without a row is an end. */
const LEGAL_STEPS: Partial<Record<JobState, readonly JobState[]>> = {
  queued: ["running", "cancelled"],
  running: ["verifying", "failed", "cancelled"],
  verifying: ["done", "failed"],
};

/** All states, in the order a job goes through them. */
export const JOB_STATES: readonly JobState[] = ["queued", "running", "verifying", "done", "failed", "cancelled"];

/** Says whether a stored text is a state. */
export function isJobState(text: string): text is JobState {
  return JOB_STATES.some((state) => state === text);
}

/** Says whether a job in this state will change no more. */
export function isEnd(state: JobState): boolean {
  return LEGAL_STEPS[state] === undefined;
}

/** Says whether a job may go from one state to the other. */
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
