import { expect, test } from "vitest";
import { requestFactsFor } from "../../middleware/trusted_proxies.ts";
import { rejectionOf } from "../helpers/app/rejection.ts";

interface Asked {
  url?: string;
  peer?: string;
  host?: string | null;
  headers?: Record<string, string>;
  trusted?: string[];
  listener?: "main" | "tailnet";
}

function factsOf({ url, peer = "127.0.0.1", host = "localhost:8787", headers = {}, trusted = [], listener }: Asked) {
  // Not `new Request`, whose parser normalizes the URL: the runtime passes it as it was sent.
  const request = {
    url: url ?? `http://${host}/api/models`,
    headers: new Headers(host === null ? headers : { ...headers, host }),
  } as Request;
  return requestFactsFor(trusted)(request, {
    peerAddress: peer,
    listener: listener ?? "main",
    closing: new AbortController().signal,
  });
}

test("a request from this machine is local, in any loopback form of its peer and host", () => {
  for (const peer of ["127.0.0.1", "::1", "::ffff:127.0.0.1"]) {
    for (const host of ["localhost:8787", "127.0.0.1:8787", "[::1]:8787", "parlor.localhost:8787"]) {
      expect([peer, host, factsOf({ peer, host }).isLocal]).toEqual([peer, host, true]);
    }
  }
});

test("determines the facts of a plain request", () => {
  expect(factsOf({ peer: "::ffff:192.168.1.5", host: "Desk.Example.:8787" })).toEqual({
    peerAddress: "192.168.1.5",
    clientAddress: "192.168.1.5",
    scheme: "http",
    host: "desk.example",
    port: 8787,
    origin: "http://desk.example:8787",
    hostHeader: "Desk.Example.:8787",
    isPeerLoopback: false,
    isLocal: false,
    isSameMachine: false,
    hasForwardingHeader: false,
    untrustedProxy: false,
    listener: "main",
    requestOrigin: null,
  });
});

test("an explicit default port is the same origin as none", { tags: ["H11"] }, () => {
  expect(factsOf({ host: "LOCALHOST.:80", url: "http://localhost/" })).toMatchObject({
    origin: "http://localhost",
    isLocal: true,
  });
  expect(factsOf({ host: "desk.example:443", url: "https://desk.example/" }).origin).toBe("https://desk.example");
});

test.each(["2130706433", "0x7f.1", "127.1", "0.0.0.0"])("the host %s isn't local", { tags: ["H11"] }, (host) => {
  expect(factsOf({ host, url: `http://${host}/`, peer: "127.0.0.1" }).isLocal).toBe(false);
});

test.each([
  ["X-Forwarded-For", "1.2.3.4"],
  ["X-Forwarded-For", "127.0.0.1"],
  ["X-Forwarded-Host", "localhost"],
  ["X-Forwarded-Proto", "http"],
  ["X-Forwarded-Port", "8787"],
  ["Forwarded", "for=127.0.0.1"],
  ["X-Real-IP", "127.0.0.1"],
  ["Via", "1.1 proxy"],
  ["Via", "1.1 parlor"],
  ["CF-Connecting-IP", "127.0.0.1"],
  ["Client-IP", "127.0.0.1"],
  ["X-Originating-IP", "[127.0.0.1]"],
  ["X-Client-IP", "127.0.0.1"],
  ["X-Cluster-Client-IP", "127.0.0.1"],
  ["X-Remote-IP", "127.0.0.1"],
  ["X-Remote-Addr", "127.0.0.1"],
  ["X-Forwarded", "for=127.0.0.1"],
  ["Forwarded-For", "127.0.0.1"],
  ["True-Client-IP", "127.0.0.1"],
  ["Fastly-Client-IP", "127.0.0.1"],
  ["CloudFront-Viewer-Address", "127.0.0.1:4711"],
  ["X-Azure-ClientIP", "127.0.0.1"],
  ["CDN-Loop", "cdn.example"],
  ["Tailscale-User-Login", "me@example.com"],
  ["Tailscale-User-Name", "Me"],
])(
  "a loopback peer that sends %s: %s isn't local, and nothing else changes",
  { tags: ["H05"] },
  (name, value) => {
    const facts = factsOf({ headers: { [name]: value } });
    expect(facts).toMatchObject({
      isLocal: false,
      hasForwardingHeader: true,
      untrustedProxy: true,
      clientAddress: "127.0.0.1",
      scheme: "http",
      host: "localhost",
    });
  },
);

test.each([
  ["X-Acme-Client", "203.0.113.9"],
  ["X-Acme-Client", "for 203.0.113.9, now"],
  ["X-Acme-Peer", "2001:db8::1"],
  ["X-Acme-Peer", "[::1]:443"],
  ["X-Acme-Host", "chat.example.org:443"],
  ["X-Acme-Host", "web:8080"],
  ["X-Acme-Url", "https://chat.example.org/x"],
  ["Acme-Forwarded-Host", "10.0.0.1"],
])("an unknown header %s: %s ends the bypass", { tags: ["H05"] }, (name, value) => {
  expect(factsOf({ headers: { [name]: value } })).toMatchObject({ isLocal: false, untrustedProxy: true });
});

test.each([
  ["X-Stainless-Package-Version", "4.104.0"],
  ["X-Title", "My editor 1.2"],
  ["X-Host", "chat.example.org"],
  ["X-Time", "12:30"],
  ["X-Parlor-Page", "http://localhost:8787"],
  ["Accept", "203.0.113.9"],
])("a header %s: %s says nothing about a proxy", (name, value) => {
  expect(factsOf({ headers: { [name]: value } })).toMatchObject({ isLocal: true });
});

test.each([
  ["127.0.0.1, 203.0.113.9", "203.0.113.9"],
  ["203.0.113.9, 127.0.0.1", "203.0.113.9"],
  ["127.0.0.1, 203.0.113.9:443", "203.0.113.9"],
  ["[2001:db8::1]:443", "2001:db8::1"],
  ["[2001:db8::1]", "2001:db8::1"],
  ["2001:db8::1", "2001:db8::1"],
  ["::ffff:203.0.113.9", "203.0.113.9"],
  ["127.0.0.1, unknown", "unknown"],
  ["_hidden", "unknown"],
  [", ,203.0.113.9, ,", "203.0.113.9"],
  [`${"127.0.0.1, ".repeat(1000)}203.0.113.9`, "203.0.113.9"],
  ["nonsense, 203.0.113.9", "203.0.113.9"],
])("behind a trusted proxy the client of %s is %s, and not local", { tags: ["H06", "H07"] }, (header, client) => {
  const facts = factsOf({ headers: { "X-Forwarded-For": header }, trusted: ["127.0.0.1"] });
  expect(facts).toMatchObject({ clientAddress: client, isLocal: false, untrustedProxy: false });
});

test("a header sent twice is one list", { tags: ["H07"] }, () => {
  const headers = new Headers([["X-Forwarded-For", "127.0.0.1"], ["X-Forwarded-For", "203.0.113.9"]]);
  const facts = factsOf({ headers: Object.fromEntries(headers), trusted: ["127.0.0.1"] });
  expect(facts).toMatchObject({ clientAddress: "203.0.113.9", isLocal: false });
});

test.each(["nonsense", "203.0.113.9, 127.1", "2130706433", "999.1.1.1", "[::1", "localhost"])(
  "rejects an entry that isn't an address: %s",
  { tags: ["H07"] },
  (header) => {
    expect(rejectionOf(() => factsOf({ headers: { "X-Forwarded-For": header }, trusted: ["127.0.0.1"] })))
      .toMatchObject({ code: "invalid_request" });
  },
);

test("a trusted proxy on this machine makes only requests local that it declares as local", () => {
  const trusted = ["127.0.0.1"];
  expect(factsOf({ trusted, headers: { "X-Forwarded-For": "127.0.0.1" } }).isLocal).toBe(true);
  expect(factsOf({ trusted }).isLocal).toBe(false);
  expect(factsOf({ trusted, headers: { "X-Forwarded-For": "" } }).isLocal).toBe(false);
  expect(factsOf({ trusted, headers: { "X-Forwarded-Proto": "http" } }).isLocal).toBe(false);
});

test("a rule for IPv4 also trusts the mapped form of the proxy", { tags: ["H09"] }, () => {
  const headers = {
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "chat.example",
  };
  for (const trusted of [["10.1.0.0/16"], ["10.1.2.3"]]) {
    expect(factsOf({ peer: "::ffff:10.1.2.3", headers, trusted })).toMatchObject({
      clientAddress: "203.0.113.9",
      origin: "https://chat.example",
    });
  }
});

test("headers of an untrusted peer don't change client, scheme or host", { tags: ["H08"] }, () => {
  const headers = { "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "localhost" };
  expect(factsOf({ peer: "192.168.1.5", host: "desk.example", headers, trusted: ["10.0.0.0/8"] })).toMatchObject({
    isLocal: false,
    clientAddress: "192.168.1.5",
    origin: "http://desk.example",
    untrustedProxy: true,
  });
});

test.each(["1.1 parlor", "1.1 parlor, 1.1 nginx", "1.0 nginx, 1.1 Parlor", "HTTP/1.1 parlor (x)"])(
  "a request that Parlor sent itself isn't local, even through a trusted proxy: Via: %s",
  { tags: ["H05", "J09"] },
  (via) => {
    const headers = { "X-Forwarded-For": "127.0.0.1" };
    expect(factsOf({ headers, trusted: ["127.0.0.1"] }).isLocal).toBe(true);
    expect(factsOf({ headers: { ...headers, Via: via }, trusted: ["127.0.0.1"] })).toMatchObject({
      isLocal: false,
      isSameMachine: false,
    });
  },
);

test("a trusted proxy may name itself", () => {
  const headers = { "X-Forwarded-For": "127.0.0.1", Via: "1.1 parlor-gate" };
  expect(factsOf({ headers, trusted: ["127.0.0.1"] }).isLocal).toBe(true);
});

test("of several forwarded schemes and hosts, the nearest proxy's are used", () => {
  const headers = {
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Proto": "http, https",
    "X-Forwarded-Host": "localhost, chat.example:8443",
  };
  expect(factsOf({ headers, trusted: ["127.0.0.1"] }).origin).toBe("https://chat.example:8443");
});

test.each([["X-Forwarded-Proto", "gopher"], ["X-Forwarded-Host", "a/b"], ["X-Forwarded-Host", "a@b"]])(
  "rejects a trusted proxy's %s: %s",
  (name, value) => {
    const headers = { "X-Forwarded-For": "203.0.113.9", [name]: value };
    expect(rejectionOf(() => factsOf({ headers, trusted: ["127.0.0.1"] }))).toMatchObject({ code: "invalid_request" });
  },
);

test("a request from another site's page on this machine isn't local, one from Parlor's page is", () => {
  expect(factsOf({ headers: { Origin: "https://evil.test" } }).isLocal).toBe(false);
  expect(factsOf({ headers: { Origin: "null" } }).isLocal).toBe(false);
  expect(factsOf({ headers: { Origin: "http://localhost:8788" } }).isLocal).toBe(false);
  expect(factsOf({ headers: { Origin: "http://localhost:8787" } }).isLocal).toBe(true);
});

test("nothing on the tailnet's listener is local", { tags: ["T01"] }, () => {
  expect(factsOf({ listener: "tailnet" }).isLocal).toBe(false);
});

test("a request target with another host than the Host header is rejected, but another spelling isn't", {
  tags: ["H12"],
}, () => {
  const refused: Asked[] = [
    { url: "http://evil.test/api/models", host: "localhost:8787" },
    { url: "http://localhost:8788/api/models", host: "localhost:8787" },
    { url: "http://user@localhost:8787/api/models", host: "localhost:8787" },
  ];
  for (const asked of refused) {
    expect(rejectionOf(() => factsOf(asked))).toMatchObject({ code: "invalid_request" });
  }
  expect(factsOf({ url: "http://LocalHost:80/", host: "localhost" }).host).toBe("localhost");
});

test.each([null, ""])(
  "rejects the Host %j, even if the runtime substitutes another",
  { tags: ["H10"] },
  (host) => {
    expect(rejectionOf(() => factsOf({ url: "http://localhost:8787/", host }))).toMatchObject({
      code: "invalid_request",
    });
  },
);
