import { parse as parseToml } from "smol-toml";
import { expect, test } from "vitest";
import { createRestoredConfig } from "../../../services/backup/restored_config.ts";

const refuse = () => false;

test.each([
  ["a program after each backup", 'backup_after = ["/bin/sh", "-c", "x"]'],
  ["programs of tool servers", "tools_allow_programs = true"],
  ["the path of a program", 'yt_dlp_path = "/srv/yt-dlp"'],
  ["an address to listen on", 'host = "0.0.0.0"'],
  ["a certificate", 'tls_key = "/srv/key.pem"'],
  ["no sign-in", "require_auth = false"],
  ["the loopback bypass", "loopback_auth_bypass = true"],
  ["who may pair", 'pairing = "open"'],
  ["trusted proxies", 'trusted_proxies = ["0.0.0.0/0"]'],
  ["other hosts", 'allowed_hosts = ["*.example.org"]'],
  ["other origins", 'cors_origins = ["https://example.org"]'],
  ["private addresses for the guard", 'guard_allow = ["10.0.0.0/8"]'],
  ["the tailnet", 'tailnet_control_url = "https://control.example.org"'],
  ["another hub", 'hub_url = "https://hub.example.org"'],
  ["another folder", 'backup_dir = "/mnt/x"'],
  ["an unknown key", "power = true"],
])("leaves %s out and names it", { tags: ["J13"] }, async (_, line) => {
  const { text, settings } = await createRestoredConfig({
    backup: `${line}\nlog_level = "warn"\n`,
    present: undefined,
    accept: refuse,
  });
  expect(settings).toMatchObject([{ line: line.replace(/", "/g, '","'), isAccepted: false }]);
  expect(parseToml(text)).toEqual({ log_level: "warn" });
  expect(text).toContain(`# ${settings[0]!.line}\n`);
});

test("applies only the keys that are accepted, each for itself", { tags: ["J13"] }, async () => {
  const backup = 'yt_dlp_path = "/a"\nllama_server_path = "/b"\n';
  const accept = ({ key }: { key: string }) => key === "yt_dlp_path";
  const { text, settings } = await createRestoredConfig({ backup, present: undefined, accept });
  expect(parseToml(text)).toEqual({ yt_dlp_path: "/a" });
  expect(settings.map(({ key, isAccepted }) => [key, isAccepted])).toEqual([
    ["yt_dlp_path", true],
    ["llama_server_path", false],
  ]);
});

test("keeps what the data folder sets already, and doesn't ask about it", { tags: ["J13"] }, async () => {
  const present = 'host = "10.0.0.5"\nport = 9000\nlog_level = "info"\n';
  const backup = 'host = "0.0.0.0"\nport = 9000\nlog_level = "warn"\n';
  const { text, settings } = await createRestoredConfig({ backup, present, accept: refuse });
  expect(settings.map(({ key }) => key)).toEqual(["host"]);
  expect(parseToml(text)).toEqual({ host: "10.0.0.5", port: 9000, log_level: "warn" });
});

test("a file without such keys stays as it was written, and one that can't be read is left out", async () => {
  const backup = '# mine\nlog_level = "warn" # quiet\n';
  expect(await createRestoredConfig({ backup, present: undefined, accept: refuse })).toEqual({
    text: backup,
    settings: [],
  });
  const broken = await createRestoredConfig({ backup: "= [", present: undefined, accept: refuse });
  expect(broken).toMatchObject({ text: "", settings: [{ key: "config.toml", isAccepted: false }] });
});

test("a value can't hide characters in the report or break out of its comment", { tags: ["J10", "J13"] }, async () => {
  const backup = 'yt_dlp_path = "/a\\nrequire_auth = false \\u202E\\u001B[2K"\n';
  const { text, settings } = await createRestoredConfig({ backup, present: undefined, accept: refuse });
  expect(parseToml(text)).toEqual({});
  expect(settings[0]!.line).toBe(String.raw`yt_dlp_path = "/a\nrequire_auth = false \U0000202E\u001b[2K"`);
});
