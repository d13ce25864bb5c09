import { expect, test } from "vitest";
import { until } from "../helpers/app/chat_client.ts";
import { enrol } from "../helpers/app/enrolled.ts";
import { fetchAs } from "../helpers/network/fetch_as.ts";
import { isGone } from "../helpers/processes/processes.ts";
import { openTailnetBench } from "../helpers/app/tailnet_fixture.ts";
import { openTestApp } from "../helpers/app/test_app.ts";
import { openStoredDatabase } from "../helpers/files/stored_database.ts";

const OFF = {
  enabled: false,
  mode: "off",
  state: "disabled",
  hostname: "parlor",
  fqdn: null,
  port: null,
  url: null,
  auth_url: null,
  error: null,
};
const EXISTS = (path: string) => Deno.stat(path).then(() => true, () => false);

test("the node is off at first and has no files", async () => {
  await using bench = await openTailnetBench();
  expect(await bench.status()).toEqual(OFF);
  expect(await bench.double.starts()).toEqual([]);
  expect(await EXISTS(`${bench.app.dataDir}/tsnet`)).toBe(false);
});

test("after it is turned on, the node waits for a sign-in, then runs over plain HTTP with the reason", async () => {
  await using bench = await openTailnetBench({ nameSuffix: "-1" });
  expect(await bench.enable("study")).toMatchObject({
    enabled: true,
    mode: "userspace",
    state: "starting",
    fqdn: null,
  });
  const waiting = await bench.until("needs_auth");
  expect(waiting).toMatchObject({ hostname: "study", url: null, error: null });
  expect(waiting.auth_url).toBe("http://control.test/register/hskey-authreq-secret");
  await bench.double.approve();
  expect(await bench.until("running")).toEqual({
    enabled: true,
    mode: "userspace",
    state: "running",
    hostname: "study",
    auth_url: null,
    ...{ fqdn: "study-1.fox-owl.ts.net", port: 80, url: "http://study-1.fox-owl.ts.net" },
    error: expect.stringMatching(/doesn't issue HTTPS certificates/),
  });
  const { args, environment, prefs } = await bench.double.facts();
  expect(args).toEqual(expect.arrayContaining(["--tun=userspace-networking", "--port=0", "--no-logs-no-support"]));
  expect(Object.keys(environment).filter((name) => /^(PORT|PARLOR_|TS_)/.test(name)).sort())
    .toEqual(["TS_DISABLE_PORTMAPPER", "TS_LOGS_DIR"]);
  expect(prefs).toMatchObject({ ControlURL: "http://control.test", CorpDNS: false, RouteAll: false, ShieldsUp: false });
  expect(prefs, "what it does not know of its settings is kept").toHaveProperty("AdvertiseRoutes", null);
  expect(await bench.double.faults()).toEqual([]);
  expect(bench.app.logLines.join("\n")).toMatch(/"warn","message":"Parlor is reachable .* a passkey can't protect it/);
});

test("the setting is stored in config.toml", async () => {
  await using bench = await openTailnetBench();
  await bench.enable("study");
  const config = () => Deno.readTextFile(`${bench.app.dataDir}/config.toml`);
  expect(await config()).toContain('tailnet_hostname = "study"\n');
  expect(await config()).toContain("tailnet_enabled = true\n");
  await bench.disable();
  expect(await config()).toContain("tailnet_enabled = false");
  // Written to the same file in the background after the start.
  await expect.poll(config).toContain("builtin_app_installed = true\n");
  expect(await config()).toContain('tailnet_hostname = "study"\n');
  expect(await config()).toContain("tailnet_enabled = false");
});

test.each([
  ["empty", ""],
  ["long", "a".repeat(64)],
  ["with a dot", "a.b"],
  ["with a line end", "a\nb"],
  ["with a flag", "--socket=/x"],
  ["with an underscore", "a_b"],
  ["in capitals", "Parlor"],
  ["with a hyphen at its end", "a-"],
  ["beyond ASCII", "bücher"],
  ["that is no text", 5],
])("a host name %s gets 400 and starts nothing", { tags: ["T02"] }, async (_, hostname) => {
  await using bench = await openTailnetBench();
  const answer = await bench.app.post("/api/tailnet/enable", { hostname });
  expect([answer.status, (await answer.json()).error.code]).toEqual([400, "invalid_request"]);
  expect(await bench.status()).toEqual(OFF);
  expect(await bench.double.starts()).toEqual([]);
});

test("turning it on twice, even at the same time, starts one node", { tags: ["T02"] }, async () => {
  await using bench = await openTailnetBench();
  await Promise.all([bench.enable(), bench.enable()]);
  await bench.until("needs_auth");
  expect((await bench.enable()).state).toBe("needs_auth");
  await bench.double.approve();
  await bench.until("running");
  expect((await bench.enable()).state).toBe("running");
  expect(await bench.double.starts()).toHaveLength(1);
  expect(await bench.double.count("POST start")).toBe(1);
  expect(await bench.double.faults()).toEqual([]);
});

test("a request without a body turns the node on under its known name", async () => {
  await using bench = await openTailnetBench();
  const answer = await bench.app.post("/api/tailnet/enable");
  expect([answer.status, await answer.json()]).toMatchObject([200, { enabled: true, hostname: "parlor" }]);
});

test("a body of another type is rejected, not ignored", { tags: ["T02"] }, async () => {
  await using bench = await openTailnetBench();
  const headers = { "Content-Type": "application/octet-stream" };
  expect((await bench.app.post("/api/tailnet/enable", '{"hostname":"../x"}', { headers })).status).toBe(400);
  expect(await bench.double.starts()).toEqual([]);
});

test("turning it off during the sign-in ends it cleanly and leaves nothing behind", { tags: ["T02"] }, async () => {
  await using bench = await openTailnetBench();
  await bench.enable();
  await bench.until("needs_auth");
  const { pid } = await bench.double.facts();
  expect(await bench.disable()).toMatchObject({ enabled: false, state: "stopped", auth_url: null });
  expect(await bench.until("disabled")).toEqual(OFF);
  expect(await isGone(pid)).toBe(true);
  expect(await EXISTS(`${bench.app.dataDir}/tsnet`)).toBe(false);
});

test("turning it off logs the node out and deletes its state, so that it must be signed in again", async () => {
  await using bench = await openTailnetBench();
  await bench.run();
  await bench.disable();
  await bench.until("disabled");
  expect(await bench.double.count("POST logout")).toBe(1);
  expect(await EXISTS(`${bench.app.dataDir}/tsnet`)).toBe(false);
  await bench.enable();
  expect((await bench.until("needs_auth")).auth_url).not.toBeNull();
});

test.each(["fails", "hangs"] as const)("the node can be turned off even if its logout %s", async (logout) => {
  await using bench = await openTailnetBench({ logout }, { tailnetTimes: { logoutMs: 100 } });
  await bench.run();
  await bench.disable();
  await bench.until("disabled");
  expect(await EXISTS(`${bench.app.dataDir}/tsnet`)).toBe(false);
});

test("state that wasn't deleted because of a crash is deleted at the next start", async () => {
  await using bench = await openTailnetBench();
  await bench.run();
  await (await bench.app.services.tailnet()).disable();
  await bench.app.restart(); // in the middle of it, or behind it
  await bench.until("disabled");
  await expect.poll(() => EXISTS(`${bench.app.dataDir}/tsnet`)).toBe(false);
});

test("a stranger at a gated origin learns and changes nothing", { tags: ["T02"] }, async () => {
  await using bench = await openTailnetBench({}, { config: { loopbackAuthBypass: false } });
  await bench.enable();
  await bench.until("needs_auth");
  await enrol(bench.app, "localhost");
  for (const [method, path] of [["GET", "status"], ["POST", "enable"], ["POST", "disable"]] as const) {
    const answer = await fetchAs(bench.app, { method, path: `/api/tailnet/${path}` });
    expect([path, answer.status]).toEqual([path, 401]);
    expect(answer.body).not.toContain("authreq");
  }
  expect((await bench.app.services.tailnet()).getStatus()).toMatchObject({ enabled: true, state: "needs_auth" });
});

test("the log contains no sign-in URL", { tags: ["T02"] }, async () => {
  await using bench = await openTailnetBench();
  await bench.run();
  await bench.double.die(3);
  await bench.untilStatus(({ state }) => state === "error");
  expect(bench.app.logLines.join("\n")).not.toMatch(/authreq|tskey/);
});

test("without tailscaled, turning the node on gets 503 with instructions, and changes nothing", async () => {
  await using bench = await openTailnetBench({}, { config: { tailscaledPath: "/nowhere/tailscaled" } });
  const answer = await bench.app.post("/api/tailnet/enable", {});
  expect([answer.status, (await answer.json()).error]).toMatchObject([503, {
    code: "not_available",
    message: expect.stringMatching(/doesn't exist.*Install Tailscale/),
  }]);
  expect(await bench.status()).toEqual(OFF);
});

test("without tailscaled the server runs and says what is missing", async () => {
  const config = { tailscaledPath: "/nowhere/tailscaled", tailnetEnabled: true };
  await using bench = await openTailnetBench({}, { config });
  const { error } = await bench.until("error");
  expect(error).toMatch(/Install Tailscale/);
  expect((await bench.app.get("/api/health")).status).toBe(200);
});

test("a setting set by a flag can't be changed: 409 names the flag", async () => {
  await using probe = await openTestApp();
  const sources = { ...probe.services.config.sources, tailnet_enabled: "flag" as const };
  await using bench = await openTailnetBench({}, { config: { sources } });
  const answer = await bench.app.post("/api/tailnet/enable", {});
  expect([answer.status, (await answer.json()).error.message]).toEqual([409, expect.stringMatching(/tailnet_enabled/)]);
  expect(await bench.double.starts()).toEqual([]);
});

test(
  "reports damaged state of the node, and gets the names again from the node",
  { tags: ["K03"] },
  async () => {
    await using bench = await openTailnetBench({}, { config: { tailnetEnabled: true } });
    await bench.run();
    await bench.app.restart(() => {
      using db = openStoredDatabase(bench.app.dataDir);
      db.exec("UPDATE setting SET sealed = zeroblob(40) WHERE key = 'tailnet_node'");
      return Promise.resolve();
    });
    expect(bench.app.logLines.join("\n")).toContain("Can't read the stored state of the tailnet node");
    await bench.until("running");
    expect((await bench.app.services.tailnet()).own).toEqual({
      fqdn: "parlor.fox-owl.ts.net",
      suffix: "fox-owl.ts.net",
    });
  },
);

test("the node can be turned on without a writable configuration file, also for the next start", async () => {
  await using bench = await openTailnetBench();
  const path = `${bench.app.dataDir}/config.toml`;
  await bench.app.services.characters(); // writes that the built-in character is installed
  await until(() => Deno.remove(path).then(() => true, () => false), "the file is written");
  await Deno.mkdir(path);
  await bench.enable("study");
  await bench.until("needs_auth");
  await bench.app.restart();
  expect(await bench.status()).toMatchObject({ enabled: true, hostname: "study" });
});
