import { expect, test } from "vitest";
import { ownEnvironment, startChildServer } from "../helpers/app/child_server.ts";
import { makeCertificate } from "../helpers/files/tls_certificate.ts";

const MAIN = new URL("../../main.ts", import.meta.url).pathname;

async function parlor(args: string[], env: Record<string, string> = {}) {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", MAIN, ...args],
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
    /parlor auth [^]*parlor import KIND PATH[^]*parlor backup [^]*parlor key [^]*parlor doctor [^]*parlor licenses/,
  ],
  [["serve", "--help"], /Usage: parlor \[serve\]/],
  [["--print-config", "--port", "1"], /^port = 1 # flag$/m],
])("parlor %j answers and ends well", async (args, expected) => {
  const { code, stdout, stderr } = await parlor(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(expected);
});

test.each([
  [["dance"], {}, 'parlor: Unknown command "dance". See parlor --help\n'],
  [["key"], {}, "parlor: Usage: parlor key export | import | rotate. See parlor key --help\n"],
  [["auth"], {}, "parlor: Usage: parlor auth login | logout | whoami | invite. See parlor auth --help\n"],
  [["backup", "one", "two"], {}, 'parlor: "two" belongs to no option; parlor --help lists them all\n'],
  [["auth", "logout", "now"], {}, 'parlor: "now" belongs to no option. See parlor auth --help\n'],
  [["--port", "x"], {}, "parlor: Bad value for port (--port): expected a whole number\n"],
  [[], { PARLOR_PROT: "1" }, "parlor: Unknown environment variable PARLOR_PROT. See parlor --help\n"],
  [
    ["--tls-cert", "/none.pem", "--tls-key", "/none.pem", "--data-dir", "DIR"],
    {},
    `parlor: Bad value for tls_cert: can't read "/none.pem"`,
  ],
  [["--data-dir", "/proc/none"], {}, "parlor: Can't open"],
])("parlor %j with %j ends with one clear sentence", async (args, env, sentence) => {
  const dataDir = await Deno.makeTempDir();
  try {
    const { code, stderr } = await parlor(args.map((arg) => (arg === "DIR" ? dataDir : arg)), env);
    expect(code).toBe(1);
    expect(stderr.startsWith(sentence), stderr).toBe(true);
    expect(stderr.trim().split("\n").length).toBe(1);
  } finally {
    await Deno.remove(dataDir, { recursive: true });
  }
});

test("a port that is taken is told of with the way out", async () => {
  const dataDir = await Deno.makeTempDir();
  using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  try {
    const { code, stderr } = await parlor(["--data-dir", dataDir, "--port", `${taken.addr.port}`]);
    expect(code).toBe(1);
    expect(stderr).toBe(
      `parlor: Can't listen on 127.0.0.1, port ${taken.addr.port}: something listens there already, ` +
        "perhaps another Parlor; name another port by --port\n",
    );
  } finally {
    await Deno.remove(dataDir, { recursive: true });
  }
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
