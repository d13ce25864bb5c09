import { expect, test } from "vitest";
import { assertLegalStep, isEnd, isJobState, isLegalStep, JOB_STATES } from "../../../services/jobs/job_store.ts";

const LEGAL = [
  ...["queued running", "queued cancelled"],
  ...["running verifying", "running failed", "running cancelled"],
  ...["verifying done", "verifying failed"],
];
const PAIRS = JOB_STATES.flatMap((from) =>
  JOB_STATES.map((to) => ({ from, to, legal: LEGAL.includes(`${from} ${to}`) }))
);

test.each(PAIRS)("the step from $from to $to is legal: $legal", ({ from, to, legal }) => {
  expect(isLegalStep(from, to)).toBe(legal);
  const take = () => assertLegalStep("j1", from, to);
  if (legal) expect(take).not.toThrow();
  else expect(take).toThrow(`Job "j1" can't change from ${from} to ${to}`);
});

test("done, failed and cancelled are the final states", () => {
  expect(JOB_STATES.filter(isEnd)).toEqual(["done", "failed", "cancelled"]);
});

test("only names of states are accepted as states", () => {
  expect(JOB_STATES.every(isJobState)).toBe(true);
  expect(["", "Done", "none", "toString"].some(isJobState)).toBe(false);
});
