import { expect, test } from "vitest";
import { createEnrolmentCodes } from "../../../services/auth/enrolment_codes.ts";

const here = { rpId: "desk.example", isInGrace: false };
const wrong = { code: "pairing_code_required" };

test("an invite counts once, within ten minutes, however it is typed", { tags: ["G02"] }, () => {
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

test("an invite for one RPID counts only there", () => {
  const codes = createEnrolmentCodes({ now: () => 0 });
  const { code } = codes.invite("phone.example");
  expect(() => codes.check(code, here, "192.0.2.1")).toThrow(expect.objectContaining(wrong));
  expect(codes.check(code, { ...here, rpId: "phone.example" }, "192.0.2.1").kind).toBe("invite");
});

test("the pairing code is shown at the start, valid without a passkey only, and replaced when used", () => {
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
