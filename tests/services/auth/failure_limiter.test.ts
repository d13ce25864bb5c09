import { expect, test } from "vitest";
import { createFailureLimiter } from "../../../services/auth/failure_limiter.ts";
import { AppError } from "../../../services/errors.ts";

const refusal = new AppError("unauthenticated", "No");

test("the 101st failure of an address within five minutes is told to wait, others are not", { tags: ["L03"] }, () => {
  let nowMs = 0;
  const failures = createFailureLimiter(() => nowMs);
  for (let i = 0; i < 100; i++) expect(failures.count("192.0.2.1", refusal)).toBe(refusal);
  nowMs = 60_000;
  expect(failures.count("192.0.2.1", refusal)).toMatchObject({ code: "too_many_requests", retryAfterSeconds: 240 });
  expect(failures.count("192.0.2.2", refusal)).toBe(refusal);
  nowMs = 5 * 60_000;
  expect(failures.count("192.0.2.1", refusal)).toBe(refusal);
});

test(
  "a flood from many addresses is slowed as one, and so is one from all of an IPv6 network",
  { tags: ["L03"] },
  () => {
    const failures = createFailureLimiter(() => 0);
    const codes = Array.from({ length: 3_000 }, (_, i) => failures.count(`10.0.${i >> 8}.${i & 255}`, refusal).code);
    expect([codes[1_999], codes[2_000]]).toEqual(["unauthenticated", "too_many_requests"]);
    const own = createFailureLimiter(() => 0);
    const last = Array.from({ length: 101 }, (_, i) => own.count(`2001:db8::${i.toString(16)}`, refusal).code).at(-1);
    expect(last).toBe("too_many_requests");
  },
);

test("a clock set back does not leave an address shut out for longer than a window", () => {
  let nowMs = 1e12;
  const failures = createFailureLimiter(() => nowMs);
  for (let i = 0; i < 101; i++) failures.count("192.0.2.1", refusal);
  nowMs -= 365 * 24 * 60 * 60 * 1000;
  expect(failures.count("192.0.2.1", refusal)).toBe(refusal);
});
