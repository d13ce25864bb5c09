import { expect, test } from "vitest";
import { startChildServer } from "../helpers/app/child_server.ts";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { runParlor } from "../helpers/processes/parlor_command.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";

/** Servers and commands start one after another; on a busy machine each takes up to half a minute. */
const SEVERAL_STARTS_MS = 10 * 60_000;

/** Log lines of one level, without the level. */
function linesOf(stdout: string, level: string): string[] {
  return stdout.split("\n").filter((line) => line.startsWith(level)).map((line) => line.slice(9));
}

test("doctor finds nothing wrong with a new folder, or with a running server whose model responds", async () => {
  await using folder = await tempFolder();
  await using llm = await openFakeLlm();
  const data = folder.file("data");
  const before = await runParlor(["doctor", "--data-dir", data, "--port", "9"]);
  expect(before).toMatchObject({ code: 0, stderr: "" });
  expect(before.stdout).toContain("the first start creates it");
  await using server = await startChildServer({ dataDir: data });
  await server.json("PUT", "/api/connections", { id: "d", kind: "openai", base_url: llm.url, model: "fake-model" });
  await server.json("POST", "/api/connections/d/activate");
  const port = new URL(server.url).port;
  const after = await runParlor(["doctor", "--data-dir", data, "--port", port]);
  expect(after).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("No problems found.") });
  expect(linesOf(after.stdout, "ok").join("\n")).toMatch(
    /database is intact[^]*The server responds[^]*responds in \d+ ms/,
  );
}, SEVERAL_STARTS_MS);

test("a server behind a proxy on the same machine, as in the guide, is asked and found well", async () => {
  await using folder = await tempFolder();
  const data = folder.file("data");
  const setup = ["--trusted-proxies", "127.0.0.1", "--allowed-hosts", "chat.example.org"];
  const args = [...setup, "--loopback-auth-bypass", "false", "--pairing", "code"];
  await using server = await startChildServer({ dataDir: data, args });
  const port = new URL(server.url).port;
  const { code, stdout } = await runParlor(["doctor", "--data-dir", data, "--port", port, ...args]);
  expect(linesOf(stdout, "problem")).toEqual([]);
  expect([code, stdout.trimEnd().split("\n").at(-1)]).toEqual([0, "No problems found."]);
  // It answers the questions of its operator, too.
  expect(linesOf(stdout, "ok").join("\n")).toMatch(/The server responds[^]*responds in \d+ ms/);
}, SEVERAL_STARTS_MS);

test("a running server is found and judged by the options that it got as flags and from its environment", async () => {
  await using folder = await tempFolder();
  const data = folder.file("data");
  const env = {
    ...Object.fromEntries(Object.entries(Deno.env.toObject()).filter(([name]) => !name.startsWith("PARLOR_"))),
    PARLOR_TRUSTED_PROXIES: "127.0.0.1",
    PARLOR_LOOPBACK_AUTH_BYPASS: "false",
    PARLOR_BACKUP_DIR: folder.file("backups"),
  };
  const args = ["--allowed-hosts", "chat.example.org", "--pairing", "code"];
  const server = await startChildServer({ dataDir: data, args, env });
  const port = new URL(server.url).port;
  try {
    expect(server.readyLine).toContain(`is at https://chat.example.org, listening on http://localhost:${port}`);
    // Neither its port nor its other options are said again.
    const { code, stdout } = await runParlor(["doctor", "--data-dir", data]);
    expect(linesOf(stdout, "problem")).toEqual([]);
    expect([code, stdout.trimEnd().split("\n").at(-1)]).toEqual([0, "No problems found."]);
    expect(linesOf(stdout, "ok").join("\n")).toContain(`The server responds at "http://localhost:${port}"`);
    expect(stdout).toContain(folder.file("backups"));
    expect((await Deno.stat(`${data}/server.json`)).mode! & 0o777).toBe(0o600);
  } finally {
    await server.kill();
  }
  // After a kill, what it left says nothing.
  const { stdout } = await runParlor(["doctor", "--data-dir", data, "--port", "9"]);
  expect(stdout).toContain('No server is running at "http://localhost:9"');
  await using next = await startChildServer({ dataDir: data });
  expect(next.readyLine).not.toContain("is at");
  await next.kill("SIGTERM");
  await expect(Deno.stat(`${data}/server.json`)).rejects.toThrow(Deno.errors.NotFound);
}, SEVERAL_STARTS_MS);

test("each problem is printed with its fix, and the exit code is 1", async () => {
  await using folder = await tempFolder();
  const data = folder.file("data");
  {
    await using server = await startChildServer({ dataDir: data });
    await server.json("PUT", "/api/connections", {
      id: "d",
      kind: "openai",
      base_url: "http://127.0.0.1:9",
      model: "m",
    });
    await server.json("POST", "/api/connections/d/activate");
    const args = ["doctor", "--data-dir", data, "--port", new URL(server.url).port, "--url", "http://127.0.0.1:9"];
    const { code, stdout } = await runParlor(args);
    expect(code).toBe(1);
    expect(linesOf(stdout, "problem")).toEqual([
      expect.stringContaining("doesn't respond"),
      expect.stringContaining(`Can't reach "http://127.0.0.1:9"`),
    ]);
  }
  await Deno.chmod(data, 0o755);
  await Deno.chmod(`${data}/session-key`, 0o644);
  await Deno.rename(`${data}/storage-key`, folder.file("key"));
  const { code, stdout } = await runParlor([
    ...["doctor", "--data-dir", data, "--port", "9", "--host", "0.0.0.0", "--trusted-proxies", "127.0.0.1"],
    ...[
      "--allowed-hosts",
      "192.168.1.9,chat.example.org",
      "--yt-dlp-path",
      "/none/yt-dlp",
      "--hub-token-file",
      "/none/t",
    ],
  ]);
  expect(code).toBe(1);
  expect(linesOf(stdout, "problem")).toEqual([
    expect.stringContaining('hub_token_file is "/none/t"'),
    expect.stringContaining("chat.example.org: anyone who can reach the server"),
    expect.stringContaining("Anyone who reaches 192.168.1.9"),
    expect.stringContaining("A proxy on this machine is trusted"),
    expect.stringMatching(/data" \(mode 0755\)/),
    expect.stringMatching(/session-key" \(mode 0644\)/),
    expect.stringMatching(/storage key of .* is missing/),
    expect.stringContaining("yt_dlp_path is"),
  ]);
  expect(stdout.split("\n").filter((line) => line.includes("→")).length).toBeGreaterThanOrEqual(8);
  expect(stdout).toContain("8 problems found.");

  await Deno.rename(folder.file("key"), `${data}/storage-key`);
  await Deno.writeFile(`${data}/app.db`, new Uint8Array(4096).fill(7));
  const damaged = await runParlor(["doctor", "--data-dir", data, "--port", "9"]);
  expect(linesOf(damaged.stdout, "problem")).toContainEqual(expect.stringMatching(/damaged/));
  const wrong = await runParlor(["doctor", "--data-dir", data, "--port", "x"]);
  expect(wrong).toMatchObject({ code: 1, stdout: expect.stringContaining("Bad value for port") });
}, SEVERAL_STARTS_MS);

test("names without HTTPS, open sign-in and a host without users are reported", async () => {
  await using folder = await tempFolder();
  const doctor = (...args: string[]) => runParlor(["doctor", "--data-dir", folder.path, "--port", "9", ...args]);
  expect((await doctor("--allowed-hosts", "chat.example.org")).stdout).toContain(
    "A passkey can never protect chat.example.org",
  );
  expect((await doctor("--require-auth", "false")).stdout).toContain("Sign-in is off");
  expect((await doctor("--host", "0.0.0.0")).stdout).toContain("no host name is allowed");
  expect((await doctor("--guard-allow", "10.0.0.0/8")).stdout).toMatch(/^note .* reach 10.0.0.0\/8.*\n +→ /m);
}, SEVERAL_STARTS_MS);
