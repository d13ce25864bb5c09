import { expect, test } from "vitest";
import { createFailureLimiter } from "../../../services/auth/failure_limiter.ts";
import { AppError } from "../../../services/errors.ts";

const refusal = new AppError("unauthenticated", "No");
const TOKEN = { method: "token" as const };

test("the 101st failure of an address within five minutes gets 429, others don't", { tags: ["L03"] }, () => {
  let nowMs = 0;
  const failures = createFailureLimiter(() => nowMs, () => {});
  for (let i = 0; i < 100; i++) expect(failures.count("192.0.2.1", refusal, TOKEN)).toBe(refusal);
  nowMs = 60_000;
  expect(failures.count("192.0.2.1", refusal, TOKEN)).toMatchObject({
    code: "too_many_requests",
    retryAfterSeconds: 240,
  });
  expect(failures.count("192.0.2.2", refusal, TOKEN)).toBe(refusal);
  nowMs = 5 * 60_000;
  expect(failures.count("192.0.2.1", refusal, TOKEN)).toBe(refusal);
});

test(
  "a flood from many addresses is slowed as one, and so is one from all of an IPv6 network",
  { tags: ["L03"] },
  () => {
    const failures = createFailureLimiter(() => 0, () => {});
    const codes = Array.from(
      { length: 3_000 },
      (_, i) => failures.count(`10.0.${i >> 8}.${i & 255}`, refusal, TOKEN).code,
    );
    expect([codes[1_999], codes[2_000]]).toEqual(["unauthenticated", "too_many_requests"]);
    const own = createFailureLimiter(() => 0, () => {});
    const last = Array.from({ length: 101 }, (_, i) => own.count(`2001:db8::${i.toString(16)}`, refusal, TOKEN).code)
      .at(-1);
    expect(last).toBe("too_many_requests");
  },
);

test("a clock that is set back doesn't block an address for longer than a window", () => {
  let nowMs = 1e12;
  const failures = createFailureLimiter(() => nowMs, () => {});
  for (let i = 0; i < 101; i++) failures.count("192.0.2.1", refusal, TOKEN);
  nowMs -= 365 * 24 * 60 * 60 * 1000;
  expect(failures.count("192.0.2.1", refusal, TOKEN)).toBe(refusal);
});

test("refused sign-ins are logged with the address first, and counted for a day", () => {
  let nowMs = 1e12;
  const lines: unknown[] = [];
  const failures = createFailureLimiter(() => nowMs, (...line) => lines.push(JSON.stringify(line)));
  failures.count("192.0.2.1", refusal, { method: "passkey", reason: `","client":"192.0.2.9" ${"x".repeat(500)}` });
  failures.record("2001:db8::1", { method: "code" });
  expect(lines[0]).toMatch(
    /^\["warn","Refused a sign-in",\{"client":"192\.0\.2\.1","method":"passkey","reason":"\\",.{1,220}$/,
  );
  expect(lines[1]).toBe('["warn","Refused a sign-in",{"client":"2001:db8::1","method":"code"}]');
  expect(failures.recent()).toBe(2);
  nowMs += 23 * 60 * 60 * 1000;
  failures.record("192.0.2.1", TOKEN);
  expect(failures.recent()).toBe(3);
  nowMs += 2 * 60 * 60 * 1000;
  expect(failures.recent()).toBe(1);
});
