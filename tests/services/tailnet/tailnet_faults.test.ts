import { expect, test } from "vitest";
import { startChildServer } from "../../helpers/app/child_server.ts";
import { FakeTailscaled } from "../../helpers/fakes/tailscaled/fake_tailscaled.ts";
import { isGone } from "../../helpers/processes/processes.ts";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { openTailnetBench, type TailnetBench, type WireStatus } from "../../helpers/app/tailnet_fixture.ts";

async function expectMainServiceWorks({ app }: TailnetBench): Promise<void> {
  expect((await app.put("/api/conversations/c1", { messages: [] })).status).toBeLessThan(300);
}

const givenUp = ({ state, error }: WireStatus) => state === "error" && /stopped after/.test(error ?? "");

test("a node that dies is restarted and needs no new sign-in", { tags: ["T03"] }, async () => {
  await using bench = await openTailnetBench();
  await bench.run();
  await bench.double.die(7);
  const { error } = await bench.untilStatus(({ state }) => state === "error");
  expect(error).toMatch(/ended with code 7.*restarting it/);
  await expectMainServiceWorks(bench);
  await bench.until("running");
  expect(await bench.double.starts()).toHaveLength(2);
});

test(
  "a node that ends at every start fails without secrets in the message, and can be retried",
  { tags: ["T03"] },
  async () => {
    await using bench = await openTailnetBench({ exitsWith: 1 });
    await bench.enable();
    const { error, enabled } = await bench.untilStatus(givenUp);
    expect(enabled).toBe(true);
    expect(error).toMatch(/ended with code 1\. Its last message: cannot visit https:\/\/login.example with \(key\)/);
    expect(await bench.double.starts()).toHaveLength(6);
    await expectMainServiceWorks(bench);
    await bench.double.set({});
    await bench.enable();
    expect((await bench.until("needs_auth")).error).toBeNull();
  },
);

test("a node that never answers is restarted a limited number of times", { tags: ["T03"] }, async () => {
  await using bench = await openTailnetBench({ isMute: true }, { tailnetTimes: { socketMs: 400 } });
  await bench.enable();
  expect((await bench.untilStatus(givenUp)).error).toMatch(/didn't respond within/);
  for (const pid of await bench.double.starts()) expect(await isGone(pid)).toBe(true);
  await expectMainServiceWorks(bench);
});

test(
  "a hanging node is killed, also if it ignores SIGTERM, and restarted",
  { tags: ["T03"] },
  async () => {
    await using bench = await openTailnetBench({ isStubborn: true }, { tailnetTimes: { responseTimeoutMs: 1_500 } });
    await bench.run();
    await bench.double.set({ hangs: true });
    const { error } = await bench.untilStatus(({ state }) => state === "error");
    expect(error).toMatch(/no longer responded/);
    await expectMainServiceWorks(bench);
    await bench.double.set({});
    await bench.until("running");
    const [first] = await bench.double.starts();
    expect(await isGone(first!)).toBe(true);
  },
);

test("a state folder that can't be created is reported, and the server continues", { tags: ["T03"] }, async () => {
  await using bench = await openTailnetBench();
  await Deno.writeTextFile(`${bench.app.dataDir}/tsnet`, "in the way");
  await bench.enable();
  const { error } = await bench.untilStatus(givenUp);
  expect(error).toMatch(/Can't create the folder.*tsnet/);
  await expectMainServiceWorks(bench);
});

test("a sign-in without a reachable control server says so and keeps trying", async () => {
  await using bench = await openTailnetBench({ isControlDown: true });
  await bench.enable();
  const { state } = await bench.untilStatus(({ error }) => /connection refused/.test(error ?? ""));
  expect(state).toBe("starting");
  await bench.double.set({});
  expect(await bench.until("needs_auth")).toMatchObject({ error: null });
  expect(await bench.double.faults()).toEqual([]);
});

test("messages of the control server are shown", async () => {
  await using bench = await openTailnetBench({ isControlDown: true });
  await bench.enable();
  await bench.until("starting");
  await expect.poll(() => bench.double.count("POST login-interactive")).toBeGreaterThan(0);
  await bench.double.complain("authkey tskey-auth-secret already used");
  expect((await bench.until("error")).error).toBe("authkey (key) already used");
});

test("a node that an admin must approve waits for the approval", async () => {
  await using bench = await openTailnetBench({ needsApproval: true });
  await bench.enable();
  await bench.until("needs_auth");
  await bench.double.approve();
  const waiting = await bench.untilStatus(({ error }) => /approval/.test(error ?? ""));
  expect(waiting).toMatchObject({ state: "needs_auth", auth_url: null });
  await bench.double.admit();
  await bench.until("running");
});

test("an expired key leads back to the sign-in, and from there to the same address", async () => {
  await using bench = await openTailnetBench();
  const { url } = await bench.run();
  await bench.double.expire();
  expect((await bench.until("needs_auth")).auth_url).toMatch(/authreq/);
  await bench.double.approve();
  expect((await bench.until("running")).url).toBe(url);
  expect(await bench.double.faults()).toEqual([]);
});

test("a watch that ends is reopened, and nothing is missed", async () => {
  await using bench = await openTailnetBench();
  await bench.run();
  await bench.double.fallBehind();
  await expect.poll(() => bench.double.count("GET watch-ipn-bus")).toBeGreaterThan(1);
  await bench.double.expire();
  await bench.until("needs_auth");
  expect(await bench.double.starts()).toHaveLength(1);
});

test("changing the name while it runs changes the address and what is served there", async () => {
  await using bench = await openTailnetBench();
  await bench.run();
  expect(await bench.enable("study")).toMatchObject({ hostname: "study" });
  await bench.untilStatus(({ fqdn }) => fqdn === "study.fox-owl.ts.net");
  const { servedNames } = await bench.double.facts();
  expect(servedNames).toEqual(["study.fox-owl.ts.net:80"]);
  expect((await bench.double.ask({ path: "/api/auth/status" })).status).toBe(200);
  expect(await bench.double.faults()).toEqual([]);
});

test.each(
  [
    ["refused", /does not support getting TLS certs/],
    ["limited", /429.*too many certificates/],
  ] as const,
)("a certificate that is %s leaves plain HTTP with the reason, and HTTPS once it is there", async (kind, why) => {
  await using bench = await openTailnetBench({ certificate: kind });
  expect(await bench.run()).toMatchObject({ url: "http://parlor.fox-owl.ts.net", error: expect.stringMatching(why) });
  await bench.double.set({ certificate: "good" });
  const https = await bench.untilStatus(({ port }) => port === 443);
  expect(https).toMatchObject({ state: "running", error: null });
  expect(await bench.double.faults()).toEqual([]);
});

test("ports that were served differently before are configured again, with shields up meanwhile", async () => {
  await using bench = await openTailnetBench({}, { config: { tailnetEnabled: true } });
  await bench.run();
  await bench.double.serve(JSON.stringify({ TCP: { 80: { HTTPS: true }, 8787: { HTTP: true } } }));
  await bench.app.restart();
  expect((await bench.until("running")).url).toBe("http://parlor.fox-owl.ts.net");
  expect((await bench.double.facts()).servedPorts).toBe(65_535);
  expect(await bench.double.faults()).toEqual([]);
});

test("a node that rejects the serve configuration is reported as an error, and ended", async () => {
  await using bench = await openTailnetBench({ refusesServing: true });
  await bench.enable();
  await bench.until("needs_auth");
  await bench.double.approve();
  expect((await bench.until("error")).error).toMatch(/Can't serve.*not now/);
  expect((await bench.double.facts()).prefs.ShieldsUp).toBe(true);
  await bench.double.set({});
  await bench.until("running");
});

test("a data folder too deep for a socket gets a short path for it, which is deleted with the state", async () => {
  await using folder = await tempFolder();
  await using runtime = await tempFolder();
  const before = Deno.env.get("XDG_RUNTIME_DIR");
  Deno.env.set("XDG_RUNTIME_DIR", runtime.path);
  try {
    await using bench = await openTailnetBench({}, { dataDir: `${folder.path}/${"deep/".repeat(20)}data` });
    await bench.enable();
    await bench.until("needs_auth");
    const { args } = await bench.double.facts();
    expect(args.find((arg) => arg.startsWith("--socket"))).toMatch(`--socket=${runtime.path}/parlor-`);
    for await (const { name } of Deno.readDir(runtime.path)) {
      expect((await Deno.stat(`${runtime.path}/${name}`)).mode! & 0o777).toBe(0o700);
    }
    await bench.disable();
    await bench.until("disabled");
    expect(await Array.fromAsync(Deno.readDir(runtime.path))).toEqual([]);
  } finally {
    if (before === undefined) Deno.env.delete("XDG_RUNTIME_DIR");
    else Deno.env.set("XDG_RUNTIME_DIR", before);
  }
});

test("the node ends with the server, even after SIGKILL, and the next start needs no sign-in", async () => {
  await using folder = await tempFolder();
  const dataDir = folder.file("data");
  await Deno.mkdir(folder.file("ts"));
  const double = await FakeTailscaled.write(folder.file("ts"));
  const args = ["--tailscaled-path", double.program, "--tailnet-control-url", "http://control.test"];
  const start = () => startChildServer({ dataDir, args });
  const until = async (state: string, server: Awaited<ReturnType<typeof start>>) => {
    const ask = async () => (await server.json<WireStatus>("GET", "/api/tailnet/status")).state;
    await expect.poll(ask).toBe(state);
  };
  let server = await start();
  await server.json("POST", "/api/tailnet/enable", {});
  await until("needs_auth", server);
  await double.approve();
  await until("running", server);
  await server.kill("SIGKILL");
  server = await start();
  await until("running", server);
  await server.kill("SIGTERM");
  const starts = await double.starts();
  expect(starts).toHaveLength(2);
  for (const pid of starts) await expect.poll(() => isGone(pid)).toBe(true);
  expect(await double.count("POST login-interactive")).toBe(1);
  expect(await double.faults()).toEqual([]);
}, 300_000);
