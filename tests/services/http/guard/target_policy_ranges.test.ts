import { expect, test } from "vitest";
import {
  isAddress,
  isForbiddenToOwner,
  isInsideCidrs,
  isPublicAddress,
  parseCidr,
} from "../../../../services/http/guard/target_policy.ts";

/** First and last address of every range of E05, and the public neighbours where there are any. */
const NOT_PUBLIC = `
  0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.0.0.1 127.255.255.255
  169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.192 192.0.0.255
  192.0.2.0 192.0.2.255 198.51.100.0 198.51.100.255 203.0.113.0 203.0.113.255 192.88.99.0 192.88.99.255
  192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.255 168.63.129.16
  :: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:ffff ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:8.8.8.8 ::ffff:0:8.8.8.8
  64:ff9b::127.0.0.1 64:ff9b::a00:1 64:ff9b::169.254.169.254 64:ff9b::168.63.129.16 64:ff9b::192.168.0.1 64:ff9b::e000:1
  64:ff9b:1:: 64:ff9b:1::8.8.8.8 64:ff9b:1:ffff:ffff:ffff:ffff:ffff 100:: 100::ffff:ffff:ffff:ffff 100:0:0:1::
  2001:: 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff
  2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 2002:: 2002:808:808::1 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff 5f00:: 5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  fc00:: fd00:ec2::254 fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff fe80:: fe80::1 febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  fec0:: feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ff00:: ff02::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff`;

const PUBLIC = `
  1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15 168.63.129.17
  169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0 192.88.98.255 192.88.100.0
  192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255
  2000:: 2001:200:: 2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9:: 2001:4860:4860::8888 2003:: 2606:4700::1111
  3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:1000:: 64:ff9b::8.8.8.8`;

const words = (text: string) => text.trim().split(/\s+/);

test.each(words(NOT_PUBLIC))("%s isn't public", { tags: ["E05"] }, (ip) => {
  expect(isAddress(ip)).toBe(true);
  expect(isPublicAddress(ip)).toBe(false);
});

test.each(words(PUBLIC))("%s next to the blocked ranges is public", { tags: ["E05"] }, (ip) => {
  expect(isPublicAddress(ip)).toBe(true);
});

test("agrees with an independent classifier on random addresses", { tags: ["E05"] }, () => {
  const random = seededRandom(20_260_321);
  const counts = { public: 0, refused: 0 };
  for (let round = 0; round < 40_000; round++) {
    const bits = round % 2 === 0 ? randomV4(random) : randomV6(random);
    const text = round % 2 === 0 ? formatV4(bits) : formatV6(bits);
    const expected = round % 2 === 0 ? classifyV4(bits) : classifyV6(bits);
    if (isPublicAddress(text) !== expected) expect.fail(`${text} should be ${expected ? "public" : "refused"}`);
    counts[expected ? "public" : "refused"]++;
  }
  expect(Math.min(counts.public, counts.refused)).toBeGreaterThan(5_000);
});

test.each([
  "0177.0.0.1",
  "0x7f.0.0.1",
  "0x7f000001",
  "2130706433",
  "127.1",
  "127.0.1",
  "127.0.0.1.",
  "１２７.0.0.1",
  "08.8.8.8",
  "8.8.8",
  "134744072",
  "0x8.0x8.0x8.0x8",
  "[::1]",
  "[2606:4700::1111]",
  "::1%lo",
  "2606:4700::1111%eth0",
  " 8.8.8.8",
  "8.8.8.8 ",
  "8.8.8.8/32",
  "8.8.8.256",
  "1:2:3",
  "",
])("doesn't accept %j as a public address", { tags: ["E04"] }, (text) => {
  expect(isAddress(text)).toBe(false);
  expect(isPublicAddress(text)).toBe(false);
  expect(isForbiddenToOwner(text)).toBe(true);
});

test.each([
  ["10.1.2.3", true],
  ["11.0.0.1", false],
  ["fd12::1", true],
  ["fe12::1", false],
  ["::ffff:10.1.2.3", false],
  ["10.1", false],
])("allowed networks contain %s: %s", (ip, expected) => {
  expect(isInsideCidrs(ip, ["10.0.0.0/8", "fd00::/8"].map(parseCidr))).toBe(expected);
});

test("refuses text that isn't a network", () => {
  expect(() => parseCidr("10.0.0.0/33")).toThrow();
  expect(() => parseCidr("example.com")).toThrow();
});

/** mulberry32: a small seeded generator. */
function seededRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor(((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32 * below);
  };
}

/** Half of them are random, half have first octets near the special ranges. */
function randomV4(random: (below: number) => number): bigint {
  const octets = [0, 1, 2, 3].map(() => random(256));
  const near = [0, 10, 100, 127, 168, 169, 172, 192, 198, 203, 224, 240];
  if (random(2) === 0) octets[0] = near[random(near.length)]!;
  if (random(4) === 0) octets[1] = [0, 16, 18, 31, 51, 63, 64, 88, 168, 254][random(10)]!;
  if (random(4) === 0) octets[2] = [0, 2, 99, 100, 113, 129][random(6)]!;
  return octets.reduce((bits, octet) => bits << 8n | BigInt(octet), 0n);
}

function randomV6(random: (below: number) => number): bigint {
  const groups = Array.from({ length: 8 }, () => random(65536));
  const near = [0, 0x64, 0x100, 0x2001, 0x2002, 0x3fff, 0x5f00, 0xfc00, 0xfd00, 0xfe80, 0xfec0, 0xff02];
  if (random(2) === 0) groups[0] = near[random(near.length)]!;
  else groups[0] = 0x2000 + random(0x2000);
  if (random(2) === 0) groups[1] = [0, 0xdb8, 0xff9b, 0x1ff, 0x200, 0xfff, 0x1000][random(7)]!;
  if (random(2) === 0) groups.fill(0, 2, 6);
  return groups.reduce((bits, group) => bits << 16n | BigInt(group), 0n);
}

function formatV4(bits: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => bits >> shift & 0xffn).join(".");
}

function formatV6(bits: bigint): string {
  return Array.from({ length: 8 }, (_, index) => (bits >> BigInt(112 - 16 * index) & 0xffffn).toString(16)).join(":");
}

/** Reads the table of E05 as numbers: [first bits, how many of them]. */
function classifyV4(bits: bigint): boolean {
  const ranges: [number, number, number, number, number][] = [
    [0, 0, 0, 0, 8],
    [10, 0, 0, 0, 8],
    [100, 64, 0, 0, 10],
    [127, 0, 0, 0, 8],
    [168, 63, 129, 16, 32],
    [169, 254, 0, 0, 16],
    [172, 16, 0, 0, 12],
    [192, 0, 0, 0, 24],
    [192, 0, 2, 0, 24],
    [192, 88, 99, 0, 24],
    [192, 168, 0, 0, 16],
    [198, 18, 0, 0, 15],
    [198, 51, 100, 0, 24],
    [203, 0, 113, 0, 24],
    [224, 0, 0, 0, 4],
    [240, 0, 0, 0, 4],
  ];
  return !ranges.some(([a, b, c, d, length]) => {
    const base = BigInt(a) << 24n | BigInt(b) << 16n | BigInt(c) << 8n | BigInt(d);
    return bits >> BigInt(32 - length) === base >> BigInt(32 - length);
  });
}

function classifyV6(bits: bigint): boolean {
  const top = (length: number) => bits >> BigInt(128 - length);
  if (top(96) === 0x64ff9bn << 64n) return classifyV4(bits & 0xffffffffn);
  if (top(3) !== 1n) return false; // 001: all assigned global unicast addresses
  return top(23) !== 0x2001n << 7n && top(32) !== 0x20010db8n && top(16) !== 0x2002n && top(20) !== 0x3fff0n;
}
