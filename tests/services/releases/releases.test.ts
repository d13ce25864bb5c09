import { expect, test } from "vitest";
import { runUpgrade } from "../../../services/cli/upgrade.ts";
import { fetchRelease, isNewer, parseRelease, type ReleaseTransport } from "../../../services/releases/releases.ts";
import { openTestApp, testConfig } from "../../helpers/app/test_app.ts";
import { openTestGuard, PRIVATE, PUBLIC } from "../../helpers/network/loopback_guard.ts";
import { openSilentListener, openStreamServer } from "../../helpers/network/loopback_servers.ts";
import { readHead, writeAll } from "../../../services/http/guard/sockets.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** A release of GitHub, without the fields that aren't used. */
const RELEASE = {
  tag_name: "v9.1.0",
  html_url: "https://example.org/releases/v9.1.0",
  url: "https://api.example.org/releases/1",
  body: "### Added\r\n\r\n- A tree",
  draft: false,
  prerelease: false,
};

/** A server of releases that counts its requests. */
function openReleases(respond: () => Response = () => Response.json(RELEASE)) {
  const requests: { method: string; url: string; headers: Record<string, string> }[] = [];
  const server = Deno.serve({ hostname: PUBLIC, port: 0, onListen() {} }, (request) => {
    const { method, url, headers } = request;
    requests.push({ method, url, headers: Object.fromEntries(headers) });
    return respond();
  });
  return {
    requests,
    url: `http://${PUBLIC}:${server.addr.port}/latest`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

async function openTransport(): Promise<ReleaseTransport & AsyncDisposable> {
  const guard = await openTestGuard({});
  return { openGuard: () => Promise.resolve(guard), [Symbol.asyncDispose]: () => guard.close() };
}

test.each([
  ["9.1.0", "0.2.0", true],
  ["0.2.1", "0.2.0", true],
  ["0.10.0", "0.9.9", true],
  ["0.2.0", "0.2.0", false],
  ["0.1.9", "0.2.0", false],
  ["0.3.0-rc.1", "0.2.0", false],
  ["0.3.0-rc.10", "0.3.0-rc.9", true],
  ["0.3.0-rc.1", "0.3.0-rc.beta", false],
  ["0.3.0-rc", "0.3.0-rc.1", false],
  ["0.3.0", "0.3.0-rc.1", true],
  ["0.3.0-rc.1", "0.3.0", false],
  ["0.2.0+build", "0.2.0", false],
  ["next", "0.2.0", false],
  ["1.0.0", "unknown", false],
])("announces %s to %s: %s", (version, own, isAnnounced) => {
  expect(isNewer(version, own)).toBe(isAnnounced);
});

test.each([
  [RELEASE, { version: "9.1.0", url: RELEASE.html_url, notes: "### Added\n\n- A tree" }],
  [{ version: "1.2.3", url: "https://example.org/", notes: "Text" }, {
    version: "1.2.3",
    url: "https://example.org/",
    notes: "Text",
  }],
  [{ tag_name: "v1.2.3", html_url: "javascript:alert(1)", body: 7 }, { version: "1.2.3" }],
  [{ version: "1.2.3", url: "http://example.org/" }, { version: "1.2.3" }],
  [{ ...RELEASE, draft: true }, undefined],
  [{ ...RELEASE, prerelease: true }, undefined],
  [{ tag_name: "nightly" }, undefined],
  [[RELEASE], undefined],
  ["1.2.3", undefined],
  [null, undefined],
])("reads %j as %j", (json, release) => {
  expect(parseRelease(json)).toEqual(release);
});

test("long notes are cut, and other long values aren't used", () => {
  expect(parseRelease({ version: "1.2.3", url: `https://example.org/${"a".repeat(2000)}` })).toEqual({
    version: "1.2.3",
  });
  expect(parseRelease({ tag_name: `v1.2.${"3".repeat(200)}` })).toBeUndefined();
  expect(parseRelease({ version: "1.2.3", notes: "x".repeat(100_000) })?.notes).toHaveLength(65_536);
});

test("the request says nothing about the installation", async () => {
  await using releases = openReleases();
  await using transport = await openTransport();
  expect(await fetchRelease({ url: releases.url, proxy: null }, transport)).toMatchObject({ version: "9.1.0" });
  const [request] = releases.requests;
  const { accept, "user-agent": agent, cookie, authorization } = request!.headers;
  expect({ accept, agent, cookie, authorization }).toEqual({ accept: "application/json", agent: "Parlor" });
  expect([request!.method, new URL(request!.url).search]).toEqual(["GET", ""]);
});

test.each([
  ["an error", () => new Response("No", { status: 404 }), "status 404"],
  ["a page", () => new Response("<!doctype html>"), "the response isn't JSON"],
  ["no version", () => Response.json({ name: "1.2.3" }), "the response has no version"],
  ["much", () => new Response(" ".repeat(300_000)), "larger than 262144 bytes"],
  ["a private address", () => Response.redirect(`http://${PRIVATE}/`), "the address is not allowed"],
])("a server that responds with %s is named, with the reason", async (_, respond, message) => {
  await using releases = openReleases(respond);
  await using transport = await openTransport();
  const { host } = new URL(releases.url);
  const failed = expect(fetchRelease({ url: releases.url, proxy: null }, transport)).rejects;
  await failed.toThrow(new RegExp(`"${host}": .*${message}`));
});

test.each([null, "proxy"])("a server that is silent fails at the time limit (proxy: %s)", async (proxy) => {
  await using silent = openSilentListener(PUBLIC);
  await using transport = await openTransport();
  const url = `http://${PUBLIC}:${silent.port}/`;
  const source = proxy === null ? { url, proxy } : { url: "http://releases.example/", proxy: url.slice(0, -1) };
  const failure = await fetchRelease(source, { ...transport, timeoutMs: 300 }).catch((error) => error);
  expect(failure.code).toMatch(/^upstream_/);
});

test("a proxy gets the whole address, and nothing else resolves its name", async () => {
  const lines: string[] = [];
  await using proxy = openStreamServer(async (conn) => {
    lines.push((await readHead(conn, 10_000)).head.startLine);
    const body = JSON.stringify(RELEASE);
    const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    await writeAll(conn, new TextEncoder().encode(head + body));
  });
  const source = { url: "http://releases.example/latest", proxy: `http://127.0.0.1:${proxy.port}` };
  const openGuard = () => Promise.reject(new Error("The guard isn't asked"));
  expect(await fetchRelease(source, { openGuard })).toMatchObject({ version: "9.1.0" });
  expect(lines).toEqual(["GET http://releases.example/latest HTTP/1.1"]);
});

test("Parlor asks only when that is on, and once a day", async () => {
  await using releases = openReleases();
  let nowMs = Date.now();
  const config = { releasesUrl: releases.url, guardAllow: [`${PUBLIC}/32`] };
  await using app = await openTestApp({ config, now: () => nowMs });
  const read = async () => await (await app.get("/api/releases")).json();
  const { version } = app.services;
  const host = new URL(releases.url).host;
  await app.services.runMaintenance();
  expect(await read()).toEqual({ version, host, checked_at: null, newer: null });

  await app.patch("/api/settings", { check_releases: true });
  const newer = { version: "9.1.0", url: RELEASE.html_url, notes: "### Added\n\n- A tree" };
  const checked_at = new Date(nowMs).toISOString();
  await expect.poll(read).toEqual({ version, host, checked_at, newer });
  nowMs += DAY_MS - 1;
  await app.services.runMaintenance();
  await app.restart();
  await app.services.runMaintenance();
  // The check would begin with the maintenance; another one waits for it.
  await app.patch("/api/settings", { display_name: "Ann" });
  expect(await read()).toEqual({ version, host, checked_at, newer });
  expect(releases.requests).toHaveLength(1);
  nowMs += 1;
  await app.services.runMaintenance();
  await expect.poll(() => releases.requests.length).toBe(2);
  await app.patch("/api/settings", { check_releases: false });
  nowMs += DAY_MS;
  await app.services.runMaintenance();
  expect(releases.requests).toHaveLength(2);
});

test("a failed request is said, isn't repeated on the same day, and keeps what was known", async () => {
  let isDown = false;
  await using releases = openReleases(() => isDown ? new Response(null, { status: 503 }) : Response.json(RELEASE));
  let nowMs = Date.now();
  const config = { releasesUrl: releases.url, guardAllow: [`${PUBLIC}/32`] };
  await using app = await openTestApp({ config, now: () => nowMs });
  const read = async () => await (await app.get("/api/releases")).json();
  await app.patch("/api/settings", { check_releases: true });
  await expect.poll(read).toMatchObject({ newer: { version: "9.1.0" } });
  isDown = true;
  nowMs += DAY_MS;
  await app.services.runMaintenance();
  await expect.poll(read).toMatchObject({
    newer: { version: "9.1.0" },
    error: expect.stringContaining("status 503"),
  });
  await app.services.runMaintenance();
  expect(releases.requests).toHaveLength(2);
});

test("without an address, no request is sent, and the API says so", async () => {
  await using app = await openTestApp({ config: { releasesUrl: null } });
  await app.patch("/api/settings", { check_releases: true });
  await app.services.runMaintenance();
  expect(await (await app.get("/api/releases")).json()).toMatchObject({ host: null, checked_at: null, newer: null });
  const { text } = await (await app.get("/api/changelog")).json();
  expect(text).toMatch(/^# Changelog\n/);
});

test("parlor upgrade --check prints the newest version", async () => {
  await using releases = openReleases();
  const lines: string[] = [];
  const run = (args: string[], version: string, releasesUrl: string | null = releases.url) =>
    runUpgrade(args, {
      readConfig: () => ({ ...testConfig("/nowhere"), releasesUrl, guardAllow: [`${PUBLIC}/32`] }),
      version,
      print: (line) => lines.push(line),
    });
  expect([await run(["--check"], "0.2.0"), await run(["--check"], "9.1.0")]).toEqual([10, 0]);
  expect(lines).toEqual([
    `Parlor 9.1.0 is available; this is 0.2.0. See ${RELEASE.html_url}`,
    "Parlor 9.1.0 is the newest version",
  ]);
  await expect(run([], "0.2.0")).rejects.toThrow("doesn't upgrade itself");
  await expect(run(["--check"], "0.2.0", null)).rejects.toThrow("Set releases_url");
  expect(releases.requests).toHaveLength(2);
});
