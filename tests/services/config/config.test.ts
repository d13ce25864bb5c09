import { expect, test } from "vitest";
import { type ConfigInput, formatConfig, loadConfig, saveConfigKey, withKey } from "../../../services/config/config.ts";
import { CONFIG_ROWS, renderConfigurationPage, renderHelp } from "../../../services/config/config_keys.ts";
import { parse as parseToml } from "smol-toml";
import { tempFolder } from "../../helpers/files/storage_folder.ts";
import { testConfig } from "../../helpers/app/test_app.ts";

function load({ args = [], environment = {}, file, os = "linux" as const }: {
  args?: string[];
  environment?: Record<string, string>;
  file?: string;
  os?: ConfigInput["os"];
} = {}) {
  return loadConfig({ args, environment: { HOME: "/home/a", ...environment }, readTextFile: () => file, os });
}

test("without options every key has its default, and the data folder is the system's default", () => {
  expect(load()).toMatchObject({
    host: "127.0.0.1",
    port: 8787,
    requireAuth: true,
    discoverHosts: ["127.0.0.1"],
    dataDir: "/home/a/.local/share/parlor",
  });
  expect(load({ environment: { XDG_DATA_HOME: "/x" } }).dataDir).toBe("/x/parlor");
  expect(load({ os: "darwin" }).dataDir).toBe("/home/a/Library/Application Support/parlor");
  expect(load({ os: "windows", environment: { APPDATA: "C:\\A" } }).dataDir).toBe("C:\\A\\parlor");
});

test("flags take precedence over the environment, the environment over the file, and the file over defaults", () => {
  const file = "port = 3\nhost = '10.0.0.1'\nlog_level = 'warn'";
  const environment = { PARLOR_PORT: "2", PARLOR_HOST: "10.0.0.2" };
  const config = load({ args: ["--port", "1"], environment, file });
  expect(config).toMatchObject({ port: 1, host: "10.0.0.2", logLevel: "warn" });
  expect(config.sources).toMatchObject({ port: "flag", host: "environment", log_level: "file", pairing: "default" });
});

test.each([
  [["--allowed-hosts", "a.test, b.test"], { allowedHosts: ["a.test", "b.test"] }],
  [["--discover-hosts", "a.test:9000,::1,[::1]:9000"], { discoverHosts: ["a.test:9000", "::1", "[::1]:9000"] }],
  [["--allowed-hosts=*.fox.test,10.0.0.0/8"], { allowedHosts: ["*.fox.test", "10.0.0.0/8"] }],
  [["--require-auth", "false"], { requireAuth: false }],
  [["--log-requests"], { logRequests: true }],
  [["--log-requests", "0", "--metrics", "1"], { logRequests: false, metrics: true }],
  [["--log-requests=false", "--port=0"], { logRequests: false, port: 0 }],
  [["--tls-cert", "c.pem", "--tls-key", "k.pem"], { tlsCert: "c.pem", tlsKey: "k.pem" }],
])("%j becomes %j", (args, values) => {
  expect(load({ args })).toMatchObject(values);
});

test.each([
  [{ args: ["--prot", "1"] }, "Unknown option --prot"],
  [{ args: ["--port"] }, "Bad value for port (--port): no value given"],
  [{ args: ["--port", "70000"] }, "Bad value for port (--port): expected a number from 0 to 65535"],
  [{ environment: { PARLOR_PROT: "1" } }, "Unknown environment variable PARLOR_PROT"],
  [
    { environment: { PARLOR_REQUIRE_AUTH: "maybe" } },
    "Bad value for require_auth (PARLOR_REQUIRE_AUTH): expected true or false",
  ],
  [{ file: "\n  prot = 1" }, 'Unknown key prot in "/home/a/.local/share/parlor/config.toml", line 2, column 3'],
  [{ file: "[server]\nport = 1" }, 'Unknown key server in "/home/a/.local/share/parlor/config.toml", line 1, column 1'],
  [
    { file: "host = '::1'\nport = '1'" },
    /^Bad value for port \(.*config.toml", line 2, column 1\): expected a whole number$/,
  ],
  [{ file: "# mine\nport = " }, /^Can't read ".*config.toml", line 2, column \d+: [a-z ]+/],
  [{ file: "port = 1\nport = 2" }, /, line 2, column 1: /],
  [
    { args: ["--allowed-hosts", "a.test", "b.test"] },
    'Unexpected argument "b.test". Separate multiple values of --allowed-hosts with commas: --allowed-hosts a.test,b.test',
  ],
  [{ args: ["--log-requests", "no"] }, "Bad value for log_requests (--log-requests): expected true or false"],
  [
    { environment: { PARLOR_PORT: "tcp://10.96.0.7:8787" } },
    'Bad value for PARLOR_PORT: Kubernetes sets it to "tcp://10.96.0.7:8787" for a Service named "parlor". ' +
    "Set enableServiceLinks: false in the pod, or give the Service another name",
  ],
  [{ environment: { PARLOR_SERVICE_HOST: "10.96.0.7" } }, "Kubernetes sets it"],
  [{ environment: { PARLOR_PORT_8787_TCP_ADDR: "10.96.0.7" } }, "Kubernetes sets it"],
  [{ file: "data_dir = '/x'" }, "Bad value for data_dir"],
  [{ file: "pairing = 'never'" }, 'expected "open" or "code"'],
  [{ args: ["--tls-cert", "c.pem"] }, "Bad value for tls_key: set both tls_cert and tls_key"],
  [{ args: ["--trusted-proxies", "proxy.test"] }, '"proxy.test" is neither an IP address nor a CIDR'],
  [{ args: ["--cors-origins", "https://a.test/"] }, "isn't an origin"],
  [{ args: ["--allowed-hosts", "https://a.test"] }, "isn't a host name"],
  [{ args: ["--allowed-hosts", "a.test:80"] }, "isn't a host name"],
  [{ args: ["--discover-hosts", "http://a.test:80"] }, "isn't a host name"],
  [{ args: ["--discover-hosts", "a.test:port"] }, "isn't a host name"],
  [{ args: ["--hub-url", "https://u:p@hub.test"] }, "without credentials"],
])("%j stops startup with one sentence that names the key", (given, sentence) => {
  expect(() => load(given)).toThrow(sentence);
});

test(
  "a loopback name in allowed_hosts is refused while anyone could enroll the first passkey",
  { tags: ["H19"] },
  () => {
    for (const host of ["localhost", "127.0.0.1", "LOCALHOST.", "[::1]"]) {
      expect(() => load({ args: ["--allowed-hosts", host] })).toThrow('set pairing = "code" or require_auth = false');
      expect(load({ args: ["--allowed-hosts", host, "--pairing", "code"] }).allowedHosts).toEqual([host]);
      expect(load({ args: ["--allowed-hosts", host, "--require-auth", "false"] }).allowedHosts).toEqual([host]);
    }
  },
);

test("an empty value means the default", () => {
  expect(load({ environment: { PARLOR_HUB_URL: "" } }).hubUrl).toBe("https://huggingface.co");
});

test("the configuration is immutable", () => {
  const config = load();
  expect(() => (config as { port: number }).port = 1).toThrow();
  expect(() => (config.allowedHosts as string[]).push("a")).toThrow();
});

test("--help lists every option, and --print-config is TOML of the same configuration", () => {
  const help = renderHelp("1.2.3");
  for (const [key] of CONFIG_ROWS) expect(help).toContain(`--${key.replaceAll("_", "-")} `);
  expect(help).toMatch(/--port NUMBER .*\n/);
  expect(help).toMatch(/--allowed-hosts A,B,… .*\n/);
  expect(help).toMatch(/--require-auth \[true\|false\] .*\n/);
  expect(help).toContain("A list has commas between its values: --allowed-hosts chat.example.org,10.0.0.0/8");
  const config = load({ args: ["--port", "1", "--card-dirs", "/a,/b"] });
  const again = load({ file: formatConfig(config).replace(/^(\w+) = "" .*$/gm, "") });
  expect({ ...again, sources: undefined }).toEqual({ ...config, sources: undefined });
});

test("docs/configuration.md matches the table", async () => {
  expect(await Deno.readTextFile(new URL("../../../docs/configuration.md", import.meta.url))).toBe(
    renderConfigurationPage(),
  );
});

test.each([
  ["", "setup_completed = true\n"],
  ["# mine\nport = 1", "# mine\nport = 1\nsetup_completed = true\n"],
  ["setup_completed = false # by the wizard\nport = 1\n", "setup_completed = true # by the wizard\nport = 1\n"],
  ["  setup_completed=false\n", "  setup_completed = true\n"],
])("writing a key into %j leaves the rest unchanged", (before, after) => {
  expect(withKey(before, "setup_completed", true)).toBe(after);
  expect(parseToml(after).setup_completed).toBe(true);
});

test("keys written at the same time are all stored, along with what the owner wrote", async () => {
  await using folder = await tempFolder();
  await Deno.writeTextFile(folder.file("config.toml"), "# mine\nport = 1 # one\n");
  const config = testConfig(folder.path);
  await Promise.all([
    saveConfigKey(config, "setup_completed", true),
    saveConfigKey(config, "tailnet_hostname", "study"),
    saveConfigKey(config, "tailnet_enabled", true),
  ]);
  expect(await Deno.readTextFile(folder.file("config.toml"))).toBe(
    '# mine\nport = 1 # one\nsetup_completed = true\ntailnet_hostname = "study"\ntailnet_enabled = true\n',
  );
});
