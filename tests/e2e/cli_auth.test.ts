import { expect, test } from "vitest";
import { startCli } from "../helpers/processes/cli_child.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";
import { openAuthority } from "../helpers/files/net_certificates.ts";
import { makeCertificate } from "../helpers/files/tls_certificate.ts";
import { Visitor } from "../helpers/app/visitor.ts";

/** An empty home folder. */
async function emptyHome() {
  const path = await Deno.makeTempDir({ prefix: "parlor-home-" });
  const token = `${path}/.config/app/cli.token`;
  return { path, token, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

/** What the page reads from its URL. */
function askedFor(url: string) {
  return Object.fromEntries(new URLSearchParams(url.slice(url.indexOf("#") + 1))) as Record<string, string>;
}

/** Exchanges the challenge for a code with the session of the signed-in user, as the page does. */
async function approve(owner: Visitor, challenge: string): Promise<string> {
  const { status, json } = await owner.post("/api/auth/cli/approve", { challenge });
  expect(status).toBe(201);
  return json.code;
}

/** Calls the listener of the command line, as the page does in the end. */
async function callBack({ port, state }: Record<string, string>, answer: Record<string, string>): Promise<string> {
  const query = new URLSearchParams({ state: state!, ...answer });
  const response = await fetch(`http://127.0.0.1:${port}/callback?${query}`);
  return `${response.status} ${await response.text()}`;
}

/** A server without the loopback bypass: the command line needs its token. */
function openServer(config: Parameters<typeof openTestApp>[0] = {}): Promise<TestApp> {
  return openTestApp({ ...config, config: { loopbackAuthBypass: false, ...config.config } });
}

test("login by the browser, whoami, logout: the token is private, works, and ends", async () => {
  await using home = await emptyHome();
  await using app = await openServer();
  const owner = new Visitor(app);
  await owner.enrol();

  const login = startCli(["auth", "login", "--base-url", `${app.url}/`], home.path);
  const [, url] = await login.told(/^ {2}(http:\S+)$/m);
  expect(url!.startsWith(`${app.url}/cli#`)).toBe(true);
  const asked = askedFor(url!);
  expect(asked.name).toBe(Deno.hostname());
  // A page that guesses the port doesn't know the state.
  expect(await callBack({ ...asked, state: "guessed" }, { code: "x" })).toMatch(/^404 /);
  const page = await callBack(asked, { code: await approve(owner, asked.challenge!) });
  expect(page).toMatch(/^200 .*Return to the terminal/);
  const signedIn = await login.ended;
  expect([signedIn.code, signedIn.stdout]).toEqual([
    0,
    `Signed in to ${app.url}; the token "CLI on ${Deno.hostname()}" is in ${home.token}\n`,
  ]);

  const token = (await Deno.readTextFile(home.token)).trim();
  expect(token).toMatch(/^parlor_/);
  for (const path of [home.token, home.token.replace("cli.token", "cli.json")]) {
    expect((await Deno.stat(path)).mode! & 0o777).toBe(0o600);
  }
  expect((await app.get("/api/settings", { headers: { Authorization: `Bearer ${token}` } })).status).toBe(200);
  const listed = (await owner.get("/api/auth/tokens")).json;
  expect(listed).toMatchObject([{ label: `CLI on ${Deno.hostname()}` }]);

  const whoami = await startCli(["auth", "whoami"], home.path).ended;
  const day = listed[0].created_at.slice(0, 10);
  expect([whoami.code, whoami.stdout]).toEqual([0, `${app.url} as "CLI on ${Deno.hostname()}", since ${day}\n`]);

  const logout = await startCli(["auth", "logout"], home.path).ended;
  expect([logout.code, logout.stdout]).toEqual([0, `Signed out of ${app.url}\n`]);
  await expect(Deno.stat(home.token)).rejects.toThrow(Deno.errors.NotFound);
  expect((await app.get("/api/settings", { headers: { Authorization: `Bearer ${token}` } })).status).toBe(401);
  const nobody = await startCli(["auth", "whoami"], home.path).ended;
  expect([nobody.code, nobody.stderr]).toEqual([1, "parlor: Not signed in. Run parlor auth login\n"]);
});

test("login over HTTPS with a pasted code, for a server with its own authority; the next login replaces its token", async () => {
  await using home = await emptyHome();
  const { cert, key } = await makeCertificate();
  await Deno.writeTextFile(`${home.path}/ca.pem`, cert);
  await using app = await openServer({ tls: { cert, key } });
  // The client speaks plain HTTP, so the ceremony runs inside the server.
  const session = await openSessionOf(app);

  const untrusted = await startCli(["auth", "login", "--base-url", app.url], home.path).ended;
  expect([untrusted.code, untrusted.stderr]).toEqual([
    1,
    expect.stringMatching(/^parlor: Can't reach Parlor at "https:.*--ca-cert FILE .*\n$/),
  ]);
  for (const label of ["first", "second"]) {
    const login = startCli(
      ["auth", "login", "--base-url", app.url, "--ca-cert", `${home.path}/ca.pem`, "--label", label],
      home.path,
    );
    const [, url] = await login.told(/^ {2}(https:\S+)$/m);
    await login.type("not a code");
    await login.told(/isn't a code from the page/);
    await login.type(app.services.auth.cliCodes.issue(session, askedFor(url!).challenge!));
    expect((await login.ended).code).toBe(0);
  }
  expect((await app.services.auth.listTokens()).map(({ label }) => label)).toEqual(["second"]);
  expect((await startCli(["auth", "whoami"], home.path).ended).stdout).toContain(`${app.url} as "second"`);
});

/** Stores a passkey and returns what its session is bound to. */
async function openSessionOf(app: TestApp): Promise<{ rpId: string; credentialId: string }> {
  const { credentialRecord } = await import("../helpers/app/enrolled.ts");
  await app.services.auth.credentials.add(credentialRecord("key1", "localhost"), true);
  return { rpId: "localhost", credentialId: "key1" };
}

test("denied in the browser, timed out, offline, at an address without passkeys: each has its own message", async () => {
  await using home = await emptyHome();
  await using app = await openServer({ config: { allowedHosts: ["127.0.0.1"], pairing: "code" } });
  const denied = startCli(["auth", "login", "--base-url", app.url], home.path);
  const [, url] = await denied.told(/^ {2}(http:\S+)$/m);
  expect(await callBack(askedFor(url!), { error: "denied" })).toMatch(/Not signed in/);
  const late = startCli(["auth", "login", "--base-url", app.url, "--timeout", "0.01"], home.path);
  const offline = startCli(["auth", "login", "--base-url", "http://127.0.0.1:65000"], home.path);
  const address = startCli(["auth", "login", "--base-url", `http://127.0.0.1:${app.port}`], home.path);
  const wrong = startCli(["auth", "login", "--base-url", "nonsense"], home.path);
  const sentences = [
    [denied, /\nparlor: The request was denied in the browser\n$/],
    [late, /\nparlor: No sign-in within 0.01 s. Run parlor auth login again\n$/],
    [offline, /^parlor: Can't reach Parlor at "http:\/\/127.0.0.1:65000": connection refused, .*\n$/],
    [address, /^parlor: Browsers don't support passkeys at "http:\/\/127.0.0.1:\d+": .*\n$/],
    [wrong, /^parlor: Bad value for --base-url: .*\n$/],
  ] as const;
  for (const [command, sentence] of sentences) {
    const { code, stderr } = await command.ended;
    expect([code, stderr]).toEqual([1, expect.stringMatching(sentence)]);
  }
  await expect(Deno.stat(home.token)).rejects.toThrow(Deno.errors.NotFound);
});

test("the server rejects a wrong code, and logging out offline deletes the token and says that it is still valid", async () => {
  await using home = await emptyHome();
  const app = await openServer();
  const owner = new Visitor(app);
  await owner.enrol();
  const wrong = startCli(["auth", "login", "--base-url", app.url], home.path);
  await wrong.told(/^ {2}(http:\S+)$/m);
  await wrong.type("A".repeat(22));
  expect(await wrong.ended).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/The code is invalid/),
  });

  const login = startCli(["auth", "login", "--base-url", app.url], home.path);
  const [, url] = await login.told(/^ {2}(http:\S+)$/m);
  await login.type(await approve(owner, askedFor(url!).challenge!));
  expect((await login.ended).code).toBe(0);
  await app[Symbol.asyncDispose]();
  const whoami = await startCli(["auth", "whoami"], home.path).ended;
  expect([whoami.code, whoami.stderr]).toEqual([1, expect.stringMatching(/^parlor: Can't reach Parlor at/)]);
  const logout = await startCli(["auth", "logout"], home.path).ended;
  expect(logout).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/stays valid until you revoke it in the settings of http/),
  });
  await expect(Deno.stat(home.token)).rejects.toThrow(Deno.errors.NotFound);
});

test("login starts the browser in BROWSER", async () => {
  await using home = await emptyHome();
  await using app = await openServer();
  const browser = `${home.path}/browser`;
  await Deno.writeTextFile(
    browser,
    `#!/bin/sh\necho "$1" > "${home.path}/opened.tmp"\nmv "${home.path}/opened.tmp" "${home.path}/opened"\n`,
    {
      mode: 0o755,
    },
  );
  const login = startCli(["auth", "login", "--base-url", app.url], home.path, { environment: { BROWSER: browser } });
  const [, url] = await login.told(/^ {2}(http:\S+)$/m);
  await expect.poll(() => Deno.readTextFile(`${home.path}/opened`).catch(() => "")).toBe(`${url}\n`);
  await callBack(askedFor(url!), { error: "denied" });
  expect((await login.ended).stderr).toContain("in the browser");
});

test("invite prints a code of the server that uses the data folder, or says that none is running", async () => {
  await using home = await emptyHome();
  await using app = await openServer();
  await new Visitor(app).enrol();
  const args = ["auth", "invite", "--data-dir", app.dataDir, "--port", String(app.port)];
  const { code, stdout } = await startCli(args, home.path).ended;
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^Invite: \w{4}-\w{4}\n$/)]);
  expect((await new Visitor(app).enrol({ code: stdout.slice(8, 17) })).status).toBe(200);
  const elsewhere = await startCli(["auth", "invite", "--data-dir", home.path], home.path).ended;
  expect([elsewhere.code, elsewhere.stderr]).toEqual([
    1,
    expect.stringMatching(/session-key.*Is --data-dir correct\?\n$/),
  ]);
  await Deno.writeFile(`${home.path}/session-key`, new Uint8Array(32).fill(3), { mode: 0o600 });
  const foreign = ["auth", "invite", "--data-dir", home.path, "--port", String(app.port), "--rp-id", "localhost"];
  expect((await startCli(foreign, home.path).ended).stderr).toMatch(/^parlor: Sign in/);
});

test("invite reaches a server with a certificate through loopback, even if its name can't be resolved", async () => {
  await using home = await emptyHome();
  await using authority = await openAuthority();
  const name = "chat.parlor.invalid";
  const tls = await authority.issue({ name });
  const [cert, key] = [`${home.path}/cert.pem`, `${home.path}/key.pem`];
  await Deno.writeTextFile(cert, tls.cert + authority.cert);
  await Deno.writeTextFile(key, tls.key);
  await using app = await openServer({ tls, config: { allowedHosts: [name] } });
  const { code, stdout, stderr } = await startCli([
    ...["auth", "invite", "--data-dir", app.dataDir, "--port", String(app.port), "--rp-id", name],
    ...["--allowed-hosts", name, "--tls-cert", cert, "--tls-key", key],
  ], home.path).ended;
  expect([code, stdout, stderr]).toEqual([0, expect.stringMatching(/^Invite: \w{4}-\w{4}\n$/), expect.any(String)]);
});

test("parlor auth prints its commands, and rejects others", async () => {
  await using home = await emptyHome();
  const help = await startCli(["auth", "--help"], home.path).ended;
  expect([help.code, help.stdout]).toEqual([0, expect.stringMatching(/auth login[^]*logout[^]*whoami[^]*invite/)]);
  expect((await startCli(["auth", "dance"], home.path).ended).stderr).toBe(
    'parlor: Unknown command "auth dance". See parlor auth --help\n',
  );
  expect((await startCli(["auth", "login", "--nonsense"], home.path).ended).stderr).toMatch(/^parlor: Unknown option/);
});
