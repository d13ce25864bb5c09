import { expect, test } from "vitest";
import { OwnListeners } from "../../../../services/http/own_listeners.ts";
import {
  createTargetPolicy,
  type TargetPolicyOptions,
  toTarget,
} from "../../../../services/http/guard/target_policy.ts";

/** Checks a URL as the guard does: its text, then the addresses of its name. */
async function judge(url: string, addresses: string[], options: Partial<TargetPolicyOptions> = {}) {
  const lookups: string[] = [];
  const policy = createTargetPolicy({
    allow: [],
    exactOrigins: [],
    resolve: (host) => {
      lookups.push(host);
      return Promise.resolve(addresses);
    },
    ...options,
  });
  const target = toTarget(new URL(url));
  return { unresolved: policy.isRefusedUnresolved(target), addresses: await policy.resolveAllowed(target), lookups };
}

const REFUSED_UNRESOLVED = { unresolved: true, addresses: [], lookups: [] };

test("a public name on a usual port is allowed after one lookup", async () => {
  expect(await judge("https://cards.example/a", ["8.8.8.8", "2606:4700::1111"])).toEqual({
    unresolved: false,
    addresses: ["8.8.8.8", "2606:4700::1111"],
    lookups: ["cards.example"],
  });
});

test("a public literal is allowed without a lookup", async () => {
  expect(await judge("http://[2606:4700::1111]/", [])).toMatchObject({ addresses: ["2606:4700::1111"], lookups: [] });
  expect(await judge("http://8.8.8.8/", [])).toMatchObject({ addresses: ["8.8.8.8"], lookups: [] });
});

test.each([
  [["8.8.8.8", "192.168.0.1"]],
  [["192.168.0.1", "8.8.8.8"]],
  [["8.8.8.8", "fd00::1"]],
  [["8.8.8.8", "::ffff:127.0.0.1"]],
  [["fe80::1%eth0"]],
  [["not an address"]],
  [[]],
])("rejects a name with the answers %j", { tags: ["E02"] }, async (answers) => {
  expect(await judge("http://mixed.example/", answers)).toMatchObject({ addresses: [], lookups: ["mixed.example"] });
});

test.each([
  "127.0.0.1",
  "127.0.0.1.",
  "2130706433",
  "017700000001",
  "0x7f000001",
  "0177.0.0.1",
  "0x7f.0.0.1",
  "127.1",
  "127.0.1",
  "0",
  "１２７.０.０.１",
  "127。0。0。1",
  "①②⑦.0.0.1",
  "[::]",
  "[::1]",
  "[0:0:0:0:0:0:0:1]",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[::ffff:c0a8:1]",
  "[::127.0.0.1]",
  "[64:ff9b::7f00:1]",
  "[2002:7f00:1::]",
  "3232235521",
  "0xc0.0250.1",
])("rejects the literal %s in its spelling", { tags: ["E04"] }, async (host) => {
  expect(await judge(`http://${host}/`, ["8.8.8.8"])).toEqual(REFUSED_UNRESOLVED);
  expect(await judge(`https://${host}/`, ["8.8.8.8"])).toEqual(REFUSED_UNRESOLVED);
});

test.each([
  "localhost",
  "localhost.",
  "LOCALHOST",
  "x.localhost",
  "x.localhost.",
  "printer.local",
  "a.b.local",
  "metadata.google.internal",
  "nas.home.arpa",
  "router",
  "com",
])("rejects %s before any lookup", { tags: ["E06"] }, async (host) => {
  expect(await judge(`http://${host}/`, ["8.8.8.8"])).toEqual(REFUSED_UNRESOLVED);
});

test("allows names that only resemble the blocked ones", { tags: ["E06"] }, async () => {
  for (const host of ["mylocalhost.example", "local.example", "notlocal.xlocal", "internal.example", "xhome.arpa"]) {
    expect(await judge(`http://${host}/`, ["8.8.8.8"])).toMatchObject({ addresses: ["8.8.8.8"] });
  }
});

test(
  "the exact host and port of an own origin are exempt from the name and port rules, but not from the address rules",
  {
    tags: ["E06", "E07"],
  },
  async () => {
    const options = { exactOrigins: ["http://hub:9000/base", "https://cards.example"] };
    expect(await judge("http://hub:9000/x", ["8.8.8.8"], options)).toMatchObject({ addresses: ["8.8.8.8"] });
    expect(await judge("http://hub:9000/x", ["192.168.0.9"], options)).toMatchObject({
      addresses: [],
      lookups: ["hub"],
    });
    expect(await judge("http://hub:9001/x", ["8.8.8.8"], options)).toEqual(REFUSED_UNRESOLVED);
    expect(await judge("http://hub/x", ["8.8.8.8"], options)).toEqual(REFUSED_UNRESOLVED);
    expect(await judge("http://sub.hub:9000/x", ["8.8.8.8"], options)).toEqual(REFUSED_UNRESOLVED);
    expect(await judge("https://cards.example/x", ["10.0.0.1"], options)).toMatchObject({ addresses: [] });
  },
);

test(
  "allowed networks are reachable on any port, as literals and under any name",
  { tags: ["E06", "E07"] },
  async () => {
    const options = { allow: ["192.168.7.0/24", "fd07::/64"] };
    expect(await judge("http://192.168.7.4:8123/", [], options)).toMatchObject({ addresses: ["192.168.7.4"] });
    expect(await judge("http://[fd07::4]:8123/", [], options)).toMatchObject({ addresses: ["fd07::4"] });
    expect(await judge("http://nas.home.arpa:8123/", ["192.168.7.4"], options)).toMatchObject({
      addresses: ["192.168.7.4"],
    });
    expect(await judge("http://nas.home.arpa/", ["192.168.8.4"], options)).toMatchObject({ addresses: [] });
    expect(await judge("http://nas.home.arpa/", ["8.8.8.8"], options)).toMatchObject({ addresses: [] });
    expect(await judge("http://mixed.example:8123/", ["192.168.7.4", "8.8.8.8"], options)).toMatchObject({
      addresses: [],
    });
    expect(await judge("http://mixed.example/", ["192.168.7.4", "8.8.8.8"], options)).toMatchObject({
      addresses: ["192.168.7.4", "8.8.8.8"],
    });
    expect(await judge("http://192.168.8.4/", [], options)).toEqual(REFUSED_UNRESOLVED);
    expect(await judge("http://[::ffff:192.168.7.4]/", [], options)).toEqual(REFUSED_UNRESOLVED);
  },
);

test.each([1, 22, 25, 79, 81, 442, 444, 3000, 8000, 8080, 8443, 11434, 65535])(
  "rejects port %i",
  { tags: ["E07"] },
  async (port) => {
    expect(await judge(`http://cards.example:${port}/`, ["8.8.8.8"])).toEqual(REFUSED_UNRESOLVED);
    expect(await judge(`http://8.8.8.8:${port}/`, [])).toEqual(REFUSED_UNRESOLVED);
  },
);

test("allows ports 80 and 443 with either scheme", { tags: ["E07"] }, async () => {
  for (const url of ["http://a.example:443/", "https://a.example:80/"]) {
    expect(await judge(url, ["8.8.8.8"])).toMatchObject({ addresses: ["8.8.8.8"] });
  }
});

test.each([
  ["http://127.0.0.1:8787/", []],
  ["http://23.45.67.89/", []],
  ["http://any.example:8787/", ["127.0.0.1"]],
  ["http://any.example/", ["8.8.8.8", "23.45.67.89"]],
])(
  "refuses %s with %j, where Parlor listens, even if it's allowed otherwise",
  { tags: ["J09"] },
  async (url, found) => {
    const allow = ["127.0.0.0/8"];
    const ownListeners = new OwnListeners({
      listeners: [{ hostname: "127.0.0.1", port: 8787 }, { hostname: "23.45.67.89", port: 80 }],
    });
    expect((await judge(url, found, { allow })).addresses).not.toEqual([]);
    expect((await judge(url, found, { allow, ownListeners })).addresses).toEqual([]);
  },
);

test("an invalid configuration is rejected when the policy is created", () => {
  const resolve = () => Promise.resolve([]);
  expect(() => createTargetPolicy({ allow: ["nonsense"], exactOrigins: [], resolve })).toThrow();
  expect(() => createTargetPolicy({ allow: [], exactOrigins: ["nonsense"], resolve })).toThrow();
});
