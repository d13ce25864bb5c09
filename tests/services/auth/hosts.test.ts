import { expect, test } from "vitest";
import {
  createAddressMatcher,
  createHostPolicy,
  createPageOriginWatch,
  getRpId,
  isLoopbackAddress,
  isLoopbackName,
  parseAddress,
  parseHost,
} from "../../../services/auth/hosts.ts";
import { rejectionOf } from "../../helpers/app/rejection.ts";

test.each([
  ["LOCALHOST.:8787", "localhost", 8787],
  ["localhost", "localhost", undefined],
  ["Desk.Example:443", "desk.example", 443],
  ["127.0.0.1.", "127.0.0.1", undefined],
  ["[::1]:8787", "[::1]", 8787],
  ["[0:0:0:0:0:0:0:1]", "[::1]", undefined],
  ["my_nas", "my_nas", undefined],
])("%s is read as %s", { tags: ["H11"] }, (text, host, port) => {
  expect(parseHost(text)).toEqual({ host, port });
});

test.each([
  ...["", " ", "a b", "a@b", "a/b", "a?b", "a#b", "a\\b", "a:b", "a:99999", "a:1:2", "a, b", "é.test", "a\u00001"],
  ...["[::1", "::1", "[gg::1]", "[1.2.3.4]", ".", "a..b", ".a", "a:", "*.a", `${"a".repeat(301)}`],
])("refuses the host %j", { tags: ["H10"] }, (text) => {
  expect(rejectionOf(() => parseHost(text))).toMatchObject({ code: "invalid_request" });
});

test.each([
  ["localhost", true],
  ["x.localhost", true],
  ["127.0.0.1", true],
  ["127.9.9.9", true],
  ["[::1]", true],
  ["[::ffff:7f00:1]", true],
  ["0.0.0.0", false],
  ["[::]", false],
  ["xlocalhost", false],
  ["localhost.evil.test", false],
  ["2130706433", false],
  ["0x7f.1", false],
  ["127.1", false],
])("%s is a loopback name: %s", { tags: ["H11"] }, (host, expected) => {
  expect(isLoopbackName(host)).toBe(expected);
});

const elsewhere = { isLocal: false, listener: "main" } as const;

test("loopback names are allowed only for local requests, even if they are listed", () => {
  const policy = createHostPolicy({ allowedHosts: ["desk.example"], tailnetSuffix: "ts.net" });
  expect(policy.isAllowed({ host: "localhost", isLocal: true, listener: "main" })).toBe(true);
  for (const host of ["localhost", "127.0.0.1", "[::1]", "x.localhost"]) {
    expect([host, policy.isAllowed({ host, ...elsewhere })]).toEqual([host, false]);
    expect([host, policy.allowsCeremonies({ host, ...elsewhere })]).toEqual([host, false]);
  }
});

test("listed names, addresses, CIDRs and suffixes are allowed from any peer", () => {
  const policy = createHostPolicy({
    allowedHosts: ["Desk.Example.", "192.168.1.0/24", "10.0.0.7", "*.home.example", "localhost"],
    tailnetSuffix: "ts.net",
  });
  const allowed = ["desk.example", "192.168.1.77", "[::ffff:c0a8:14d]", "10.0.0.7", "a.home.example", "localhost"];
  const refused = [
    "example",
    "192.168.2.1",
    "10.0.0.8",
    "home.example",
    "xhome.example",
    "127.0.0.1",
    "x.desk.example",
  ];
  for (const host of allowed) expect([host, policy.isAllowed({ host, ...elsewhere })]).toEqual([host, true]);
  for (const host of refused) expect([host, policy.isAllowed({ host, ...elsewhere })]).toEqual([host, false]);
});

test("the node's own name is valid only on the tailnet's listener, including for ceremonies", { tags: ["H04"] }, () => {
  const node = { fqdn: "parlor.fox-owl.ts.net", suffix: "fox-owl.ts.net" };
  const policy = createHostPolicy({ allowedHosts: [], tailnetSuffix: "ts.net", ownNode: () => node });
  const there = { host: node.fqdn, isLocal: false, listener: "tailnet" } as const;
  expect([policy.isAllowed(there), policy.allowsCeremonies(there)]).toEqual([true, true]);
  for (const isLocal of [true, false]) {
    const here = { host: node.fqdn, isLocal, listener: "main" } as const;
    expect([policy.isAllowed(here), policy.allowsCeremonies(here)]).toEqual([false, false]);
  }
});

test("an invented sibling of the own node or of a listed host reaches no ceremony, but an unrelated host does", () => {
  const node = { fqdn: "parlor.tail.test", suffix: "tail.test" };
  const policy = createHostPolicy({
    allowedHosts: ["desk.fox-owl.ts.net"],
    tailnetSuffix: "ts.net",
    ownNode: () => node,
  });
  const opens = (host: string) => policy.allowsCeremonies({ host, ...elsewhere });
  expect(opens("evil.fox-owl.ts.net")).toBe(false);
  expect(opens("evil.tail.test")).toBe(false);
  expect(opens("fox-owl.ts.net")).toBe(false);
  expect(opens("desk.fox-owl.ts.net")).toBe(true);
  expect(opens("new.example")).toBe(true);
  expect(opens("a.other.ts.net")).toBe(true);
});

const facts = { isPeerLoopback: true, hasForwardingHeader: false, origin: "http://127.0.0.1:8787" };

function watch() {
  const lines: string[] = [];
  return {
    lines,
    watch: createPageOriginWatch({ corsOrigins: ["https://listed.test"], log: (_, line) => lines.push(line) }),
  };
}

test(
  "a page on another host behind a bare proxy triggers the warning once, permanently, with the line to set",
  { tags: ["H17"] },
  () => {
    const { lines, watch: pageOrigins } = watch();
    pageOrigins.note("https://chat.example", facts);
    pageOrigins.note("https://other.example", facts);
    pageOrigins.note(facts.origin, facts);
    expect(pageOrigins.isTripped).toBe(true);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("https://chat.example");
    expect(lines[0]).toContain("loopback_auth_bypass = false");
  },
);

test(
  "the own page, a listed origin, a remote peer and a proxy with headers trigger no warning",
  { tags: ["H17"] },
  () => {
    const { watch: pageOrigins } = watch();
    pageOrigins.note(facts.origin, facts);
    pageOrigins.note("https://listed.test", facts);
    pageOrigins.note("https://chat.example", { ...facts, isPeerLoopback: false });
    pageOrigins.note("https://chat.example", { ...facts, hasForwardingHeader: true });
    expect(pageOrigins.isTripped).toBe(false);
  },
);

test("an invalid origin triggers the warning and isn't logged", { tags: ["H17"] }, () => {
  const { lines, watch: pageOrigins } = watch();
  pageOrigins.note("secret\u001b[31m", facts);
  expect(pageOrigins.isTripped).toBe(true);
  expect(lines[0]).not.toContain("secret");
});

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

test("rules written as IPv4, as CIDR or in mapped form match both forms of a peer", { tags: ["H09"] }, () => {
  for (const rule of ["192.168.1.0/24", "192.168.1.5", "::ffff:192.168.1.0/120"]) {
    const matches = createAddressMatcher([rule]);
    expect([rule, matches("192.168.1.5"), matches("::ffff:192.168.1.5")]).toEqual([rule, true, true]);
    expect([rule, matches("192.168.2.5"), matches("::ffff:192.168.2.5")]).toEqual([rule, false, false]);
  }
});

test("a rule for one address family doesn't match the other, and a name matches no address", () => {
  const matches = createAddressMatcher(["10.0.0.0/8", "fd00::/8", "desk.example"]);
  expect([matches("10.1.2.3"), matches("fd00::1"), matches("fe80::1"), matches("desk.example")])
    .toEqual([true, true, false, false]);
});

test.each([["127.0.0.1", true], ["127.8.8.8", true], ["::1", true], ["::ffff:127.0.0.1", true], ["0.0.0.0", false], [
  "192.168.1.5",
  false,
]])("%s is loopback: %s", { tags: ["H09"] }, (address, expected) => {
  expect(isLoopbackAddress(address)).toBe(expected);
});

test.each([
  ["a.tail.ts.net", "tail.ts.net", "the parent below the suffix"],
  ["a.b.tail.ts.net", "b.tail.ts.net", "only the leftmost label is dropped"],
  ["tail.ts.net", "tail.ts.net", "the bare suffix is nobody's"],
  ["ts.net", "ts.net", "the suffix itself"],
  ["xts.net", "xts.net", "no label boundary"],
  ["a.xts.net", "a.xts.net", "no label boundary above"],
  ["a.ts.net.evil.test", "a.ts.net.evil.test", "the suffix in the middle"],
  ["a.tail.test", "tail.test", "the own node's suffix"],
  ["tail.test", "tail.test", "the own suffix itself"],
  ["a.b.tail.test", "a.b.tail.test", "two labels below the own suffix"],
  ["localhost", "localhost", "one label"],
  ["192.168.1.5", "192.168.1.5", "an address"],
  ["[fe80::1]", "[fe80::1]", "an IPv6 address"],
])("the relying party of %s is %s: %s", { tags: ["G18"] }, (host, rpId) => {
  expect(getRpId(host, "ts.net", "tail.test")).toBe(rpId);
});

test("an empty host has no relying party", () => {
  expect(rejectionOf(() => getRpId("", "ts.net"))).toMatchObject({ code: "invalid_request" });
});
