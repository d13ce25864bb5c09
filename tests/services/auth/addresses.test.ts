import { expect, test } from "vitest";
import { addressMatcher, isLoopbackAddress, parseAddress } from "../../../services/auth/addresses.ts";

test.each([
  ["127.0.0.1", "127.0.0.1"],
  ["::1", "::1"],
  ["[::1]", "::1"],
  ["::ffff:127.0.0.1", "127.0.0.1"],
  ["::ffff:c0a8:105", "192.168.1.5"],
  ["fe80::1%eth0", "fe80::1"],
])("%s is read as %s", { tags: ["H09"] }, (text, canonical) => {
  expect(parseAddress(text)?.toString()).toBe(canonical);
});

test.each(["2130706433", "0x7f.1", "127.1", "0x7f000001", "0177.0.0.1", "localhost", "", "127.0.0.1.", "127.0.0.256"])(
  "refuses the address %j",
  { tags: ["H11"] },
  (text) => {
    expect(parseAddress(text)).toBeUndefined();
  },
);

test("rules written as IPv4, CIDR or in mapped form decide alike over both forms of a peer", { tags: ["H09"] }, () => {
  for (const rule of ["192.168.1.0/24", "192.168.1.5", "::ffff:192.168.1.0/120"]) {
    const matches = addressMatcher([rule]);
    expect([rule, matches("192.168.1.5"), matches("::ffff:192.168.1.5")]).toEqual([rule, true, true]);
    expect([rule, matches("192.168.2.5"), matches("::ffff:192.168.2.5")]).toEqual([rule, false, false]);
  }
});

test("a rule for one family says nothing about the other, and a name matches no address", () => {
  const matches = addressMatcher(["10.0.0.0/8", "fd00::/8", "desk.example"]);
  expect([matches("10.1.2.3"), matches("fd00::1"), matches("fe80::1"), matches("desk.example")])
    .toEqual([true, true, false, false]);
});

test.each([["127.0.0.1", true], ["127.8.8.8", true], ["::1", true], ["::ffff:127.0.0.1", true], ["0.0.0.0", false], [
  "192.168.1.5",
  false,
]])("%s is loopback: %s", { tags: ["H09"] }, (address, expected) => {
  expect(isLoopbackAddress(address)).toBe(expected);
});
