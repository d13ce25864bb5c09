import { expect, test } from "vitest";
import { createEnrolmentCodes, createFailureLimiter } from "../../../services/auth/enrolment_codes.ts";
import { AppError } from "../../../services/errors.ts";

const here = { rpId: "desk.example", isInGrace: false };
const wrong = { code: "pairing_code_required" };

test("an invite works once, within ten minutes, in any spelling", { tags: ["G02"] }, () => {
  let nowMs = 0;
  const codes = createEnrolmentCodes({ now: () => nowMs });
  const { code, expiresAtMs } = codes.invite();
  expect([code, expiresAtMs]).toEqual([expect.stringMatching(/^[0-9A-Z]{4}-[0-9A-Z]{4}$/), 600_000]);
  const ticket = codes.check(` ${code.toLowerCase().replace("-", " ").replaceAll("0", "o")}`, here, "192.0.2.1");
  const second = codes.check(code, here, "192.0.2.2");
  codes.consume(ticket);
  expect(() => codes.consume(second)).toThrow(expect.objectContaining(wrong));
  expect(() => codes.check(code, here, "192.0.2.1")).toThrow(expect.objectContaining(wrong));
  const late = codes.invite();
  nowMs = 600_000;
  expect(() => codes.check(late.code, here, "192.0.2.1")).toThrow(expect.objectContaining(wrong));
});

test("an invite for one RP ID works only there", () => {
  const codes = createEnrolmentCodes({ now: () => 0 });
  const { code } = codes.invite("phone.example");
  expect(() => codes.check(code, here, "192.0.2.1")).toThrow(expect.objectContaining(wrong));
  expect(codes.check(code, { ...here, rpId: "phone.example" }, "192.0.2.1").kind).toBe("invite");
});

test("the pairing code is shown at startup, works only without a passkey, and is replaced when used", () => {
  const shown: string[] = [];
  const codes = createEnrolmentCodes({ now: () => 0, announcePairingCode: (code) => shown.push(code) });
  expect(shown).toHaveLength(1);
  expect(() => codes.check(shown[0]!, here, "192.0.2.1")).toThrow(expect.objectContaining(wrong));
  codes.consume(codes.check(shown[0]!, { ...here, isInGrace: true }, "192.0.2.1"));
  expect(shown).toHaveLength(2);
  expect(shown[1]).not.toBe(shown[0]);
});

test(
  "ten wrong attempts replace the pairing code, end invites, and block their address",
  { tags: ["G02"] },
  () => {
    let nowMs = 0;
    const shown: string[] = [];
    const codes = createEnrolmentCodes({ now: () => nowMs, announcePairingCode: (code) => shown.push(code) });
    const { code } = codes.invite();
    for (let i = 0; i < 10; i++) {
      expect(() => codes.check("0000-0000", here, "192.0.2.66")).toThrow(expect.objectContaining(wrong));
    }
    expect(shown).toHaveLength(2);
    expect(() => codes.check(code, here, "192.0.2.1")).toThrow(expect.objectContaining(wrong));
    const next = codes.invite();
    expect(() => codes.check(next.code, here, "192.0.2.66")).toThrow(
      expect.objectContaining({ code: "too_many_requests", retryAfterSeconds: 600 }),
    );
    expect(codes.check(next.code, here, "192.0.2.1").kind).toBe("invite");
    nowMs = 600_000;
    expect(codes.check(codes.invite().code, here, "192.0.2.66").kind).toBe("invite");
  },
);

const refusal = new AppError("unauthenticated", "No");
const TOKEN = { method: "token" as const };

test(
  "the 101st failure of an address within five minutes gets 429, and other addresses don't",
  { tags: ["L03"] },
  () => {
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
  },
);

test(
  "a flood from many addresses is slowed down like one client, as is one from all of an IPv6 network",
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

test("setting the clock back doesn't block an address for longer than one window", () => {
  let nowMs = 1e12;
  const failures = createFailureLimiter(() => nowMs, () => {});
  for (let i = 0; i < 101; i++) failures.count("192.0.2.1", refusal, TOKEN);
  nowMs -= 365 * 24 * 60 * 60 * 1000;
  expect(failures.count("192.0.2.1", refusal, TOKEN)).toBe(refusal);
});

test("rejected sign-ins are logged with the address first, and counted for a day", () => {
  let nowMs = 1e12;
  const lines: unknown[] = [];
  const failures = createFailureLimiter(() => nowMs, (...line) => lines.push(JSON.stringify(line)));
  failures.count("192.0.2.1", refusal, { method: "passkey", reason: `","client":"192.0.2.9" ${"x".repeat(500)}` });
  failures.record("2001:db8::1", { method: "code" });
  expect(lines[0]).toMatch(
    /^\["warn","Refused a sign-in",\{"client":"192\.0\.2\.1","method":"passkey","reason":"\\",.{1,220}$/,
  );
  expect(lines[1]).toBe('["warn","Refused a sign-in",{"client":"2001:db8::1","method":"code"}]');
  expect(failures.countRecent()).toBe(2);
  nowMs += 23 * 60 * 60 * 1000;
  failures.record("192.0.2.1", TOKEN);
  expect(failures.countRecent()).toBe(3);
  nowMs += 2 * 60 * 60 * 1000;
  expect(failures.countRecent()).toBe(1);
});
