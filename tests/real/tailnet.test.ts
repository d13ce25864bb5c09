/** Parlor's node in a real tailnet: sign-in, a request from a second node, direct connections, restarts, and the end. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ChildServer, ownEnvironment, startChildServer } from "../helpers/app/child_server.ts";
import { enrol } from "../helpers/app/enrolled.ts";
import { findProcesses, isGone } from "../helpers/processes/processes.ts";
import type { WireStatus } from "../helpers/app/tailnet_fixture.ts";
import { isIsolated, PrivateTailnet, runIsolated, type TailnetAnswer } from "./helpers/private_tailnet.ts";
import { realPart } from "./helpers/real_part.ts";

const INSTALLED = realPart("REAL_TAILNET_DIR", "tailnet.sh");
const SLOW_MS = 300_000;
/** For all of them. */
const ALL_MS = 1_800_000;
const PATIENT = { timeout: 120_000, interval: 200 };
const ADDRESS = "http://parlor.tail.test";

if (INSTALLED === undefined || !isIsolated()) {
  test.skipIf(INSTALLED === undefined)(
    "where only this machine can be reached, the tests of the node pass",
    async () => {
      expect(await runIsolated("tests/real/tailnet.test.ts")).toBe(true);
    },
    ALL_MS,
  );
} else {
  describe("in a tailnet of real nodes", { timeout: SLOW_MS }, () => defineTests(INSTALLED));
}

function defineTests(installed: string): void {
  let tailnet: PrivateTailnet;
  let dataDir: string;
  let parlor: ChildServer;
  let neighbour: Deno.HttpServer<Deno.NetAddr>;

  const start = () =>
    startChildServer({
      dataDir,
      args: ["--tailscaled-path", tailnet.program, "--tailnet-control-url", tailnet.controlUrl],
      env: { ...ownEnvironment(), ...tailnet.environment },
    });
  const status = () => parlor.json<WireStatus>("GET", "/api/tailnet/status");
  const until = async (state: string) => {
    await expect.poll(async () => (await status()).state, PATIENT).toBe(state);
    return await status();
  };
  const enable = () => parlor.json<WireStatus>("POST", "/api/tailnet/enable", {});
  /** Asks until there are answers: the first request between two nodes may hang and fail, and any on a busy machine. */
  const untilAnswered = async (ask: () => Promise<TailnetAnswer[]>) => {
    let answers: TailnetAnswer[] = [];
    await expect.poll(async () => (answers = await ask()).map(({ status }) => status), PATIENT).not.toContain(0);
    return answers;
  };
  const reach = async (path: string, options?: Parameters<PrivateTailnet["ask"]>[1]) =>
    (await untilAnswered(async () => [await tailnet.ask(new URL(path, ADDRESS).href, options)]))[0]!;
  const local = (port: number | string) => ({ headers: [`Host: localhost:${port}`], seconds: 3 });
  const rawWays = () => {
    const { port } = new URL(parlor.url);
    return [`http://100.64.0.2:${port}/api/conversations`, `http://100.64.0.2:${neighbour.addr.port}/`];
  };
  const askRaw = async () => {
    const [own, other] = rawWays();
    return [await tailnet.ask(own!, local(new URL(own!).port)), await tailnet.ask(other!, local(new URL(other!).port))];
  };
  const nodePids = () => findProcesses(`--statedir=${dataDir}/tsnet`);

  beforeAll(async () => {
    tailnet = await PrivateTailnet.start(installed);
    dataDir = `${tailnet.folder}/data`;
    neighbour = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, () => new Response("the neighbour"));
    parlor = await start();
  }, SLOW_MS);

  afterAll(async () => {
    await parlor?.kill("SIGTERM");
    await neighbour?.shutdown();
    await tailnet?.stop();
  }, SLOW_MS);

  test(
    "it is signed in by its address and runs, and at no moment the raw way in is open",
    { tags: ["T01"] },
    async () => {
      expect((await enable()).state).toBe("starting");
      const { auth_url } = await until("needs_auth");
      expect(auth_url).toMatch(new RegExp(`^${tailnet.controlUrl}/register/`));
      let isOver = false;
      const seen = new Set<number>();
      const trying = (async () => {
        while (!isOver) for (const { status } of await askRaw()) seen.add(status);
      })();
      await tailnet.approve(auth_url!);
      expect(await until("running")).toMatchObject({
        hostname: "parlor",
        fqdn: "parlor.tail.test",
        port: 80,
        url: ADDRESS,
        error: expect.stringMatching(/doesn't issue HTTPS certificates/),
      });
      await reach("/api/auth/status");
      isOver = true;
      await trying;
      expect([...seen].filter((status) => status === 200)).toEqual([]);
      for (const { status, body } of await untilAnswered(askRaw)) {
        expect([status, body]).toEqual([404, "404 page not found\n"]);
      }
    },
  );

  test("a second node gets the page, an answer as a stream, and nothing as its owner", { tags: ["T01"] }, async () => {
    expect((await reach("/")).body).toContain("<!doctype html>");
    expect(JSON.parse((await reach("/api/auth/status")).body)).toMatchObject({
      origin: ADDRESS,
      rp_id: "tail.test",
      bypass: "grace",
      passkeys_supported: false,
    });
    const reply = await tailnet.ask(`${ADDRESS}/api/chat`, {
      body: JSON.stringify({
        conversation_id: "c1",
        user_message_id: "u1",
        assistant_message_id: "a1",
        messages: [{ role: "user", content: "Is anybody there?" }],
      }),
      seconds: 60,
    });
    expect(reply.body.match(/^data: /gm)!.length).toBeGreaterThan(20);
    await enrol({ dataDir }, "tail.test");
    const headers = ["Tailscale-User-Login: owner", "X-Forwarded-For: 127.0.0.1", "X-Forwarded-Host: localhost"];
    expect((await reach("/api/conversations", { headers })).status).toBe(401);
    expect((await reach("/api/tailnet/status")).status).toBe(401);
    expect((await parlor.request("GET", "/api/conversations")).status, "this machine keeps its bypass").toBe(200);
    const short = await reach("http://parlor/settings");
    expect([short.status, short.body]).toEqual([307, ""]);
  });

  test("after a restart it runs again without a sign-in, and is as closed", async () => {
    await parlor.kill("SIGTERM");
    expect(await nodePids()).toEqual([]);
    parlor = await start();
    await until("running");
    for (const { status } of await askRaw()) expect(status).not.toBe(200);
    expect((await reach("/api/conversations")).status).toBe(401);
  });

  test("a sudden death of Parlor leaves no node behind, and the next start finds its way back", async () => {
    const pids = await nodePids();
    expect(pids.length).toBeGreaterThan(0);
    await parlor.kill("SIGKILL");
    for (const pid of pids) await expect.poll(() => isGone(pid), PATIENT).toBe(true);
    parlor = await start();
    await until("running");
    for (const { status } of await askRaw()) expect(status).not.toBe(200);
    expect((await reach("/api/conversations")).status).toBe(401);
  });

  test("a killed node is restarted", async () => {
    const [pid] = await nodePids();
    Deno.kill(pid!, "SIGKILL");
    await expect.poll(() => isGone(pid!), PATIENT).toBe(true);
    await expect.poll(async () => (await nodePids()).length, PATIENT).toBeGreaterThan(0);
    await until("running");
    expect((await reach("/api/conversations")).status).toBe(401);
  });

  test("an expired key asks for a sign-in, and leads back to the same address", async () => {
    await tailnet.expire("parlor");
    const { auth_url } = await until("needs_auth");
    await tailnet.approve(auth_url!);
    expect((await until("running")).url).toBe(ADDRESS);
    expect((await reach("/api/conversations")).status).toBe(401);
    for (const { status } of await askRaw()) expect(status).not.toBe(200);
  });

  test("another name moves the address, and back", async () => {
    await parlor.json("POST", "/api/tailnet/enable", { hostname: "study" });
    await expect.poll(async () => (await status()).fqdn, PATIENT).toBe("study.tail.test");
    const ask = async () => (await tailnet.ask("http://study.tail.test/api/conversations")).status;
    await expect.poll(ask, PATIENT).toBe(401);
    await parlor.json("POST", "/api/tailnet/enable", { hostname: "parlor" });
    await expect.poll(async () => (await status()).fqdn, PATIENT).toBe("parlor.tail.test");
  });

  test("the raw way is real: without the entries the phone would be the owner", async () => {
    using client = Deno.createHttpClient({ proxy: { transport: "unix", path: `${dataDir}/tsnet/ts.sock` } });
    const api = "http://local-tailscaled.sock/localapi/v0/serve-config";
    const serve = async (body: string) => {
      const answer = await fetch(api, { method: "POST", body, client });
      expect([answer.status, await answer.text()]).toEqual([200, ""]);
    };
    const before = await (await fetch(api, { client })).text();
    expect(Object.keys(JSON.parse(before).TCP)).toHaveLength(65_535);
    await serve("{}");
    const [own, other] = await untilAnswered(askRaw);
    expect([own!.status, other!.body]).toEqual([200, "the neighbour"]);
    await serve(before);
    for (const { status } of await untilAnswered(askRaw)) expect(status).toBe(404);
  });

  test("switching off removes the node and its state; switching on needs a new sign-in", async () => {
    const pids = await nodePids();
    await parlor.json("POST", "/api/tailnet/disable", {});
    await until("disabled");
    for (const pid of pids) expect(await isGone(pid)).toBe(true);
    await expect(Deno.stat(`${dataDir}/tsnet`)).rejects.toThrow(Deno.errors.NotFound);
    expect((await tailnet.ask(`${ADDRESS}/api/auth/status`, { seconds: 3 })).status).toBe(0);
    await enable();
    const { auth_url } = await until("needs_auth");
    await tailnet.approve(auth_url!);
    expect((await until("running")).fqdn).toBe("parlor-1.tail.test");
    expect(await tailnet.nodeLog()).not.toMatch(/panic|tainted client/);
  });
}
