import { expect, test } from "vitest";
import { ipText, isCidr, isInNetwork, parseCidr, parseIp, unmapped } from "../../../services/net/ip_address.ts";

test.each([
  ["10.0.0.1", "10.0.0.1"],
  ["::", "::"],
  ["::1", "::1"],
  ["1::", "1::"],
  ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
  ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
  ["0001:0002:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"],
  ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
  ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
  ["::ffff:192.168.1.5", "::ffff:c0a8:105"],
  ["64:ff9b::10.0.0.1", "64:ff9b::a00:1"],
])("%s is written as %s (RFC 5952)", (text, canonical) => {
  expect(ipText(parseIp(text)!)).toBe(canonical);
  expect(ipText(parseIp(canonical)!)).toBe(canonical);
});

test.each([
  ...[
    "",
    "localhost",
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "01.2.3.4",
    "1.2.3.256",
    "1.2.3.4.5",
    "1.2.3.4 ",
  ],
  ...[":", ":::", "::1::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8", "12345::", "g::", ":1", "1:"],
  ...["::1%eth0", "[::1]", "1.2.3.4::", "::1.2.3.4:5", "::ffff:0x7f.0.0.1", "::ffff:127.0.0.01", "::1/64"],
])("E02 %j is no address", (text) => {
  expect(parseIp(text)).toBeUndefined();
});

test("only an IPv4 address in its mapped form is unmapped", () => {
  expect(ipText(unmapped(parseIp("::ffff:127.0.0.1")!))).toBe("127.0.0.1");
  // Deprecated by RFC 4291, section 2.5.5.1, and no way to this machine.
  expect(unmapped(parseIp("::127.0.0.1")!).kind).toBe("ipv6");
});

test.each([
  ["10.1.2.3", "10.0.0.0/8", true],
  ["11.1.2.3", "10.0.0.0/8", false],
  ["10.1.2.3", "10.9.9.9/8", true],
  ["192.168.1.127", "192.168.1.0/25", true],
  ["192.168.1.128", "192.168.1.0/25", false],
  ["1.2.3.4", "0.0.0.0/0", true],
  ["1.2.3.4", "1.2.3.4/32", true],
  ["1.2.3.5", "1.2.3.4/32", false],
  ["fe80::1", "fe80::/10", true],
  ["fec0::1", "fe80::/10", false],
  ["::1", "::/128", false],
  ["10.0.0.1", "::/0", false],
  ["::ffff:10.0.0.1", "10.0.0.0/8", false],
])("%s lies in %s: %s", (address, network, expected) => {
  expect(isInNetwork(parseIp(address)!, parseCidr(network))).toBe(expected);
});

test.each([
  "10.0.0.0",
  "10.0.0.0/33",
  "10/8",
  "10.0.0.0/08",
  "10.0.0.0/-1",
  "10.0.0.0/8/8",
  "fd00::/129",
  "desk/8",
  "/8",
])(
  "%j is no network",
  (text) => {
    expect(isCidr(text)).toBe(false);
    expect(() => parseCidr(text)).toThrow(text);
  },
);
