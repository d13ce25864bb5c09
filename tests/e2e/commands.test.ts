import { expect, test } from "vitest";
import { until } from "../helpers/app/chat_client.ts";
import { ownEnvironment, startChildServer } from "../helpers/app/child_server.ts";
import { openTestApp } from "../helpers/app/test_app.ts";
import { openAuthority } from "../helpers/files/net_certificates.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";
import { runParlor } from "../helpers/processes/parlor_command.ts";
import { makeCertificate } from "../helpers/files/tls_certificate.ts";

const MAIN = new URL("../../main.ts", import.meta.url).pathname;

async function parlor(args: string[], env: Record<string, string> = {}) {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "-A", MAIN, ...args],
    env: { ...ownEnvironment(), ...env },
    clearEnv: true,
  });
  const { code, stdout, stderr } = await command.output();
  return { code, stdout: new TextDecoder().decode(stdout), stderr: new TextDecoder().decode(stderr) };
}

test.each([
  [["--version"], /^Parlor \d+\.\d+\.\d+\n$/],
  [["--help"], /--allowed-hosts/],
  [
    ["--help"],
    /parlor auth [^]*parlor import KIND PATH[^]*parlor backup [^]*parlor key [^]*parlor doctor [^]*parlor stop[^]*parlor licenses/,
  ],
  [["serve", "--help"], /Usage: parlor \[serve\]/],
  [["help"], /Usage: parlor \[serve\]/],
  [["help", "doctor"], /^Usage: parlor doctor/],
  [["stop", "--help"], /^Usage: parlor stop/],
  [["--print-config", "--port", "1"], /^port = 1 # flag$/m],
])("parlor %j responds and ends normally", async (args, expected) => {
  const { code, stdout, stderr } = await parlor(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(expected);
});

test.each([
  [["help", "dance"], 'parlor: Unknown command "dance". See parlor --help\n'],
  [["dance"], 'parlor: Unknown command "dance". See parlor --help\n'],
  [["key"], "parlor: Usage: parlor key export | import | rotate. See parlor key --help\n"],
  [["auth"], "parlor: Usage: parlor auth login | logout | whoami | invite. See parlor auth --help\n"],
  [["backup", "one", "two"], 'parlor: Unexpected argument "two". See parlor --help\n'],
  [["auth", "logout", "now"], 'parlor: Unexpected argument "now". See parlor auth --help\n'],
])("parlor %j ends with one clear message", async (args, sentence) => {
  expect(await parlor(args)).toEqual({ code: 1, stdout: "", stderr: sentence });
});

test.each<[string[], Record<string, string>, string | RegExp]>([
  [["--port", "x"], {}, "Bad value for port (--port): expected a whole number"],
  [["--port", "1", "2"], {}, 'Unexpected argument "2". See parlor --help'],
  [[], { PARLOR_PROT: "1" }, "Unknown environment variable PARLOR_PROT. See parlor --help"],
  [[], { PARLOR_PORT: "tcp://10.96.0.7:8787" }, /^Bad value for PARLOR_PORT: Kubernetes sets it .*enableServiceLinks/],
  [["--data-dir", "DIR"], { CONFIG: "port = 1\nhost = [" }, /^Can't read ".*config.toml", line 2, column \d+: /],
  [
    ["--tls-cert", "/none.pem", "--tls-key", "/none.pem", "--data-dir", "DIR"],
    {},
    /^Bad value for tls_cert: can't read "\/none.pem"/,
  ],
  [["--data-dir", "/proc/none"], {}, /^Can't open/],
])(
  "a start with %j and %j fails with one log line that says why",
  async (args, { CONFIG = "", ...env }, why) => {
    await using folder = await tempFolder();
    await Deno.writeTextFile(folder.file("config.toml"), CONFIG);
    const { code, stdout, stderr } = await parlor(args.map((arg) => (arg === "DIR" ? folder.path : arg)), env);
    expect([code, stdout]).toEqual([1, ""]);
    expect(JSON.parse(stderr)).toEqual({
      time: expect.any(String),
      level: "error",
      message: "The server ended because of an error",
      code: expect.any(String),
      error: typeof why === "string" ? why : expect.stringMatching(why),
    });
  },
);

test.skipIf(Deno.build.os !== "linux")("on a terminal, a failed start ends with one message", async () => {
  const program = [Deno.execPath(), "run", "--quiet", "-A", MAIN, "--port", "x"].join(" ");
  const { code, stdout } = await new Deno.Command("script", {
    args: ["--quiet", "--return", "--command", program, "/dev/null"],
    stdin: "null",
  }).output();
  expect(code).toBe(1);
  expect(new TextDecoder().decode(stdout)).toBe("parlor: Bad value for port (--port): expected a whole number\r\n");
});

test("a port in use is reported with advice", async () => {
  await using folder = await tempFolder();
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { code, stderr } = await parlor(["--data-dir", folder.path, "--port", `${taken.addr.port}`]);
  expect(code).toBe(1);
  expect(JSON.parse(stderr).error).toBe(
    `Can't listen on 127.0.0.1, port ${taken.addr.port}: it's in use, ` +
      "perhaps by another Parlor. Choose another port with --port",
  );
});

test("tls_cert and tls_key serve HTTPS with HSTS, and config.toml is read", async () => {
  const dataDir = await Deno.makeTempDir();
  try {
    const { cert, key } = await makeCertificate();
    await Deno.writeTextFile(`${dataDir}/cert.pem`, cert);
    await Deno.writeTextFile(`${dataDir}/key.pem`, key, { mode: 0o600 });
    await Deno.writeTextFile(
      `${dataDir}/config.toml`,
      `tls_cert = "${dataDir}/cert.pem"\ntls_key = "${dataDir}/key.pem"\n`,
    );
    await using server = await startChildServer({ dataDir });
    expect(server.url).toMatch(/^https:/);
    using client = Deno.createHttpClient({ caCerts: [cert] });
    const response = await fetch(`${server.url}/api/setup/status`, { client });
    expect(await response.json()).toMatchObject({ completed: false });
    expect(response.headers.get("strict-transport-security")).toBe("max-age=31536000; includeSubDomains");
    await (await fetch(`${server.url}/api/setup/complete`, { client, method: "POST" })).body?.cancel();
    expect(await Deno.readTextFile(`${dataDir}/config.toml`)).toContain("setup_completed = true\n");
  } finally {
    await Deno.remove(dataDir, { recursive: true });
  }
});

test("health checks the running server, even over TLS under its public name", async () => {
  await using folder = await tempFolder();
  await using authority = await openAuthority();
  const name = "chat.parlor.invalid";
  const tls = await authority.issue({ name });
  await Deno.writeTextFile(folder.file("cert.pem"), tls.cert + authority.cert);
  await Deno.writeTextFile(folder.file("key.pem"), tls.key);
  await using plain = await openTestApp();
  await using secure = await openTestApp({ tls, config: { allowedHosts: [name] } });
  const ask = (port: number, ...args: string[]) =>
    runParlor(["health", "--data-dir", folder.path, "--port", String(port), ...args]);
  const overTls = ["--tls-cert", folder.file("cert.pem"), "--tls-key", folder.file("key.pem"), "--allowed-hosts", name];
  expect(await ask(plain.port)).toMatchObject({ code: 0, stderr: "" });
  expect(await ask(secure.port, ...overTls)).toMatchObject({ code: 0, stderr: "" });
  expect(await ask(plain.port, ...overTls)).toMatchObject({ code: 1, stderr: expect.stringContaining("Can't reach") });
  expect(await ask(9)).toMatchObject({ code: 1, stderr: expect.stringContaining("Can't reach") });
}, 300_000);

test.skipIf(Deno.build.os === "windows")("a hangup stops the server cleanly", async () => {
  await using folder = await tempFolder();
  await using server = await startChildServer({ dataDir: folder.path, args: ["--log-level", "debug"] });
  await until(() => server.logs.join().includes("SIGHUP stops the server"), "SIGHUP has a listener");
  expect(await server.kill("SIGHUP")).toMatchObject({ success: true, code: 0 });
  expect(server.logs.join("\n")).toContain('"message":"Stopping"');
});
