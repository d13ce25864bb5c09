/** The image, built and run by a real Docker Engine: the first visit through its published port, and refused options. */
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeDebianPackage } from "../../build/deb.ts";
import { framesOf } from "../helpers/app/chat_client.ts";
import { connectModel } from "../helpers/app/child_server.ts";
import { openDevice, openPasskeyBrowser } from "../helpers/browser/passkey_browser.ts";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { isLong } from "../helpers/files/sample.ts";
import { BUILD_MS, buildForTests } from "./helpers/built_executable.ts";
import { openDocker } from "./helpers/docker.ts";
import { freePort } from "./helpers/free_port.ts";
import { realPart } from "./helpers/real_part.ts";
import {
  prepareCasaOs,
  prepareHomeAssistant,
  prepareUmbrel,
  prepareUnraid,
  type StoreContainer,
  writeStores,
} from "./helpers/store_containers.ts";

const DENORT = realPart("REAL_DENORT_DIR", "denort.sh");
const ENGINE = realPart("REAL_CONTAINER_DIR", "container.sh");
const IMAGE = "parlor:test";
const BASE = "debian:bookworm-slim";
const [NAME, VOLUME] = ["parlor-test", "parlor-test-data"];
/** The options of compose.yaml. */
const HARDENED = [
  "--init",
  "--read-only",
  "--tmpfs",
  "/tmp",
  "--cap-drop",
  "ALL",
  "--security-opt",
  "no-new-privileges",
  "--add-host",
  "host.docker.internal:host-gateway",
];
const SLOW_MS = 600_000;

describe.skipIf(DENORT === undefined || ENGINE === undefined)("the image", { timeout: SLOW_MS }, () => {
  const docker = openDocker(ENGINE!);
  let browser: Browser;

  /** Starts it and returns its address on this machine once its health check succeeds. */
  async function start(...args: string[]): Promise<string> {
    await docker.run("rm", "--force", NAME);
    await docker.must("run", "--detach", "--name", NAME, ...HARDENED, "--publish", "127.0.0.1::8787", ...args, IMAGE);
    await expect.poll(() => docker.must("inspect", "--format", "{{.State.Health.Status}}", NAME), {
      timeout: SLOW_MS / 2,
    })
      .toBe("healthy\n");
    const [, port] = /:(\d+)\s/.exec(await docker.must("port", NAME, "8787"))!;
    return `http://localhost:${port}`;
  }

  /** Sends a request from inside the container, with the shell, since the image has no HTTP client. */
  async function fromInside(path: string): Promise<string> {
    const asked = `GET ${path} HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n`;
    const script = `exec 3<>/dev/tcp/127.0.0.1/8787 && printf '${asked}' >&3 && cat <&3`;
    return (await docker.must("exec", NAME, "bash", "-c", script)).split("\r\n", 1)[0]!;
  }

  async function logs(): Promise<string> {
    const { stdout, stderr } = await docker.run("logs", NAME);
    return stdout + stderr;
  }

  beforeAll(async () => {
    await buildForTests(DENORT!);
    await docker.build(IMAGE, ["--build-arg", "EXECUTABLE=given"]);
    browser = await openPasskeyBrowser();
  }, BUILD_MS + SLOW_MS);

  afterAll(async () => {
    await browser?.close();
    await docker.run("rm", "--force", "--volumes", NAME);
    await docker.run("volume", "rm", "--force", VOLUME);
  });

  test(
    "grants nothing to clients inside the container; the first visit through the port pairs with the code in the log, then chats",
    {
      tags: ["H18"],
    },
    async () => {
      const url = await start("--volume", `${VOLUME}:/data`);
      expect(await fromInside("/healthz")).toBe("HTTP/1.1 204 No Content");
      for (const path of ["/api/conversations", "/api/settings", "/api/auth/tokens"]) {
        expect(await fromInside(path), path).toBe("HTTP/1.1 401 Unauthorized");
      }
      expect((await fetch(`${url}/api/conversations`)).status).toBe(401);
      expect((await fetch(url)).status).toBe(200);

      const owner = await openDevice(browser, url);
      await owner.page.getByRole("heading", { name: "Add this device" }).waitFor();
      await owner.page.getByLabel("Code").fill("AAAA-AAAA");
      await owner.page.getByRole("button", { name: "Create passkey" }).click();
      await owner.page.getByRole("alert").first().waitFor();
      const [, code] = /Pairing code: (\S+)/.exec(await logs())!;
      await owner.page.getByLabel("Code").fill(code!);
      await owner.page.getByRole("button", { name: "Create passkey" }).click();
      // The first visit asks for a model, which is skipped here, and for a name.
      for (const question of ["Choose a model", "Your name"]) {
        await owner.page.getByRole("heading", { name: question }).waitFor();
        await owner.page.getByRole("button", { name: "Skip" }).click();
      }
      await owner.page.getByText("This address already has a passkey.").waitFor();
      await owner.page.getByRole("button", { name: "Start chatting" }).click();
      const composer = owner.page.getByLabel("Message", { exact: true });
      await composer.waitFor();
      await composer.fill("Is anybody there?");
      await composer.press("Enter");
      await owner.page.locator(".reply .prose").getByText("not a language model").waitFor();
      await owner.page.getByRole("button", { name: "Regenerate" }).waitFor();

      // A second container on the volume, as after an update: the passkey signs in again, and the chat is there.
      // Docker kills it after ten seconds otherwise, which a busy machine may take.
      await docker.must("stop", "-t", "60", NAME);
      expect(await docker.must("inspect", "--format", "{{.State.ExitCode}}", NAME)).toBe("0\n");
      const port = new URL(url).port;
      await docker.must("start", NAME);
      await expect.poll(() => docker.must("inspect", "--format", "{{.State.Health.Status}}", NAME), {
        timeout: SLOW_MS / 2,
      })
        .toBe("healthy\n");
      const [, again] = /:(\d+)\s/.exec(await docker.must("port", NAME, "8787"))!;
      expect((await fetch(`http://localhost:${again}/api/conversations`)).status).toBe(401);
      if (again === port) await owner.page.reload();
      else await owner.page.goto(`http://localhost:${again}`);
      await owner.page.locator(".reply .prose").or(owner.page.getByText("Is anybody there?").first()).first().waitFor();
      expect({
        foreign: owner.foreign.filter((address) => !address.startsWith("http://localhost:")),
        errors: owner.errors,
      })
        .toEqual({ foreign: [], errors: [] });
      await owner.context.close();
    },
  );

  test("it runs unprivileged, keeps its data private, and contains the license notices", async () => {
    await start();
    expect(await docker.must("exec", NAME, "id", "--user")).toBe("10001\n");
    expect(await docker.must("exec", NAME, "id", "--group")).toBe("10001\n");
    expect(await docker.must("exec", NAME, "getent", "hosts", "host.docker.internal")).toMatch(/^[\d.]+ /);
    expect(await docker.must("exec", NAME, "stat", "--format", "%a %U", "/data", "/data/app.db")).toBe(
      "700 parlor\n600 parlor\n",
    );
    expect(await docker.must("exec", NAME, "parlor", "licenses")).toContain("hono");
    expect(await docker.run("exec", NAME, "touch", "/usr/local/bin/x")).toMatchObject({ code: 1 });
    const doctor = await docker.run("exec", NAME, "parlor", "doctor");
    expect(doctor.stdout).toContain("The database is intact");
    // The health check has sent requests in the meantime, which aren't logged.
    expect(await logs()).not.toContain("/healthz");
  });

  test("any user runs it on a new volume, without chown; files are private to it", async () => {
    const volume = `${VOLUME}-any`;
    try {
      await start("--user", "1234:1235", "--volume", `${volume}:/data`);
      expect(await docker.must("exec", NAME, "id", "--user")).toBe("1234\n");
      expect(await docker.must("exec", NAME, "stat", "--format", "%a %u", "/data", "/data/app.db", "/data/replies"))
        .toBe(
          "777 10001\n600 1234\n700 1234\n",
        );
      expect(await logs()).toContain("The data folder belongs to another user");
      expect((await docker.run("exec", NAME, "parlor", "doctor")).stdout).toContain(
        '"/data" belongs to another user (uid 10001, mode 0777)',
      );
      await docker.must("rm", "--force", NAME);
      const other = await docker.run("run", "--rm", ...HARDENED, "--user", "77", "--volume", `${volume}:/data`, IMAGE);
      expect(other.code).toBe(1);
      expect(other.stderr).toMatch(
        /as uid 77, because \\"\/data\/(config\.toml|lock)\\" belongs to uid 1234 and has mode 0600/,
      );
    } finally {
      await docker.run("rm", "--force", NAME);
      await docker.run("volume", "rm", "--force", volume);
    }
  });

  // Not skipped in a usual run, because a run with real parts must skip nothing.
  if (isLong()) {
    describe("started as root", () => {
      const asRoot = ["--user", "0:0", "--env", "PUID=1234", "--env", "PGID=1235"];
      const capabilities = ["CHOWN", "DAC_OVERRIDE", "KILL", "SETGID", "SETUID"].flatMap((name) => ["--cap-add", name]);
      let folder: string;

      beforeAll(async () => {
        folder = await Deno.makeTempDir();
      });

      afterAll(async () => {
        await docker.run("rm", "--force", NAME);
        await Deno.remove(folder, { recursive: true });
      });

      test("becomes PUID and PGID, which get the data folder; so do commands in the container", async () => {
        // As Docker creates the folder of a bind mount.
        await Deno.chmod(folder, 0o755);
        await start(...asRoot, ...capabilities, "--group-add", "44", "--volume", `${folder}:/data`);
        const status = await docker.must(
          "exec",
          NAME,
          "bash",
          "-c",
          "grep -hE '^(Uid|Gid|Groups|CapEff)' /proc/[0-9]*/status",
        );
        expect(status).toMatch(
          /Uid:\t1234\t1234\t1234\t1234\nGid:\t1235\t1235\t1235\t1235\nGroups:\t44 \nCapEff:\t0+\n/,
        );
        expect(await docker.must("exec", NAME, "stat", "--format", "%a %u:%g", "/data", "/data/app.db")).toBe(
          "700 1234:1235\n600 1234:1235\n",
        );
        const passphrase = ["--env", "PARLOR_BACKUP_PASSPHRASE=spring tide"];
        await docker.must("exec", ...passphrase, NAME, "parlor", "backup", "/tmp/parlor.backup");
        expect(await docker.must("exec", NAME, "stat", "--format", "%u:%g", "/tmp/parlor.backup")).toBe("1234:1235\n");
        expect(await docker.must("exec", NAME, "find", "/data", "!", "-user", "1234")).toBe("");
      });

      test("says what it lacks without the capabilities, and needs numbers", async () => {
        const lacking = await docker.run("run", "--rm", ...HARDENED, ...asRoot, IMAGE);
        expect(lacking).toMatchObject({
          code: 1,
          stderr: expect.stringContaining("the container lacks the capabilities SETUID and SETGID"),
        });
        const named = await docker.run("run", "--rm", ...HARDENED, "--user", "0", "--env", "PUID=ann", IMAGE);
        expect(named).toMatchObject({ code: 1, stderr: expect.stringContaining("PUID and PGID must be numbers") });
      });

      test("leaves a folder with other files to its owner", async () => {
        const other = await Deno.makeTempDir();
        try {
          await Deno.writeTextFile(`${other}/letter.txt`, "");
          const run = await docker.run(
            ...["run", "--rm", ...HARDENED, ...asRoot, ...capabilities, "--volume", `${other}:/data`, IMAGE],
          );
          expect(run).toMatchObject({
            code: 1,
            stderr: expect.stringContaining(
              `as uid 1234, because \\"/data\\" belongs to uid 0 and has mode 0700. Give \\"/data\\" and its files to uid 1234`,
            ),
          });
          expect((await Deno.stat(`${other}/letter.txt`)).uid).toBe(0);
        } finally {
          await Deno.remove(other, { recursive: true });
        }
      });

      test("PUID of a container that isn't root's doesn't count, and says so", async () => {
        const { code, stderr } = await docker.run(
          ...["run", "--rm", ...HARDENED, "--user", "77:77", "--env", "PUID=1234", IMAGE, "--version"],
        );
        expect({ code, stderr }).toEqual({
          code: 0,
          stderr: expect.stringContaining("PUID and PGID don't count, because the container runs as 77:77"),
        });
      });
    });
  }

  test("the storage key comes as a secret, and without it the data is refused rather than sealed by a new one", async () => {
    const secrets = await Deno.makeTempDir();
    try {
      // As compose.secret.yaml makes it: Compose mounts the file as it lies on the machine, with its owner and mode.
      await Deno.writeTextFile(`${secrets}/key`, "ab".repeat(32), { mode: 0o600 });
      await Deno.chown(`${secrets}/key`, 10_001, null);
      const volume = ["--volume", `${VOLUME}-key:/data`];
      const key = [
        "--volume",
        `${secrets}/key:/run/secrets/key:ro`,
        "--env",
        "PARLOR_STORAGE_KEY_FILE=/run/secrets/key",
      ];
      await start(...volume, ...key);
      expect((await docker.run("exec", NAME, "test", "-e", "/data/storage-key")).code).toBe(1);
      await docker.must("rm", "--force", NAME);
      const { code, stderr } = await docker.run("run", "--rm", ...HARDENED, ...volume, IMAGE);
      expect(code).toBe(1);
      expect(stderr).toContain("Can't find the storage key");
    } finally {
      await docker.run("rm", "--force", NAME);
      await docker.run("volume", "rm", "--force", `${VOLUME}-key`);
      await Deno.remove(secrets, { recursive: true });
    }
  });

  describe("as a home server starts it", () => {
    let folder: string;

    beforeAll(async () => {
      folder = await Deno.makeTempDir({ prefix: "parlor-stores-" });
      await writeStores(folder, IMAGE);
    });
    afterAll(async () => {
      await docker.run("rm", "--force", NAME);
      await Deno.remove(folder, { recursive: true });
    });

    /** Starts it, asks it, and stops it; its files belong to the expected user. */
    async function tryStore({ args, folder: data, owner }: StoreContainer, image = IMAGE) {
      await docker.run("rm", "--force", NAME);
      await docker.must("run", "--detach", "--name", NAME, ...args, "--publish", "127.0.0.1::8787", image);
      const [, port] = /:(\d+)\s/.exec(await docker.must("port", NAME, "8787"))!;
      const ask = () => fetch(`http://localhost:${port}/healthz`).then(({ status }) => status, () => undefined);
      await expect.poll(async () => [await ask(), await logs()], { timeout: SLOW_MS / 2 })
        .toEqual([204, expect.stringContaining("Pairing code: ")]);
      const { uid, gid, mode } = await Deno.stat(`${data}/app.db`);
      expect([uid, gid, mode! & 0o777]).toEqual([...owner, 0o600]);
      await docker.must("stop", "-t", "60", NAME);
      expect(await docker.must("inspect", "--format", "{{.State.ExitCode}}", NAME)).toBe("0\n");
    }

    test("Umbrel", async () => await tryStore(await prepareUmbrel(folder)));

    // Not skipped, because a run with real parts must skip nothing.
    if (!isLong()) return;
    test("Unraid", async () => await tryStore(await prepareUnraid(folder)));
    test("CasaOS", async () => await tryStore(await prepareCasaOs(folder)));
    test("Home Assistant, whose options are read", async () => {
      const image = "parlor-home-assistant:test";
      await docker.build(image, [], `${folder}/home-assistant/parlor`);
      const { args } = await prepareHomeAssistant(folder, {});
      const { code, stderr } = await docker.run("run", "--rm", ...args, image);
      expect([code, stderr]).toEqual([1, expect.stringContaining("There is no /ssl/fullchain.pem")]);
      const hosts = { allowed_hosts: ["chat.example.org", "10.0.0.2"], trusted_proxies: ["172.30.33.1"] };
      await prepareHomeAssistant(folder, hosts, true);
      const config = await docker.must("run", "--rm", ...args, image, "--print-config");
      expect(config).toMatch(/^allowed_hosts = .*"localhost".*"chat\.example\.org".*"10\.0\.0\.2"/m);
      expect(config).toMatch(/^trusted_proxies = .*"172\.30\.33\.1"/m);
      expect(config).toMatch(/^tls_cert = "\/tmp\/tls\/certfile\.pem"/m);
      await tryStore(await prepareHomeAssistant(folder, { ...hosts, ssl: false }), image);
    });
  });
});

// Not skipped in a usual run, because a run with real parts must skip nothing.
if (isLong()) {
  describe.skipIf(DENORT === undefined || ENGINE === undefined)(
    "the Debian package, on a Debian without systemd",
    { timeout: SLOW_MS },
    () => {
      const docker = openDocker(ENGINE!);
      const name = "parlor-test-deb";
      const port = freePort();
      const url = `http://127.0.0.1:${port}`;
      let packages: string;

      const execute = (...command: string[]) => docker.must("exec", name, ...command);
      const isHealthy = () => fetch(`${url}/healthz`).then(({ status }) => status === 204, () => false);
      const send = async (method: string, path: string, body?: unknown) => {
        const headers = { "Content-Type": "application/json" };
        const response = await fetch(url + path, { method, headers, body: JSON.stringify(body) });
        if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
        return response;
      };
      const json = async <T>(...args: Parameters<typeof send>): Promise<T> => await (await send(...args)).json();
      const readReply = async () =>
        (await json<{ messages: { content: string; status: string }[] }>("GET", "/api/conversations/c1")).messages[1]!;

      beforeAll(async () => {
        const executable = await buildForTests(DENORT!);
        packages = await Deno.makeTempDir();
        for (const version of ["1.2.3", "1.2.4"]) {
          await writeDebianPackage({
            ...{ executable, version, path: `${packages}/${version}.deb`, architecture: "amd64" },
            ...{ home: "https://example.org/parlor", day: "2026-11-20", notices: "" },
            compression: { method: "gzip", level: 1 },
          });
        }
        const systemctl = fileURLToPath(new URL("tools/systemctl.sh", import.meta.url));
        await docker.run("rm", "--force", name);
        await docker.must(
          ...["run", "--detach", "--init", "--name", name, "--network", "host", "--volume", `${packages}:/packages:ro`],
          ...["--volume", `${systemctl}:/usr/local/bin/systemctl:ro`, BASE, "sleep", "infinity"],
        );
        // What the scripts take for a running systemd.
        await execute("mkdir", "--parents", "/run/systemd/system");
        await execute("bash", "-c", `echo PARLOR_PORT=${port} >/environment`);
      }, BUILD_MS + SLOW_MS);

      afterAll(async () => {
        await docker.run("rm", "--force", name);
        if (packages !== undefined) await Deno.remove(packages, { recursive: true });
      });

      test("installs a service with a user, upgrades it under a running reply, and leaves the data", async () => {
        await using llm = await openFakeLlm({ personality: "llama.cpp", switches: { manual: "on" } });
        expect(await execute("dpkg", "--install", "/packages/1.2.3.deb")).toContain(
          "Parlor: open http://localhost:8787",
        );
        await expect.poll(isHealthy, { timeout: SLOW_MS / 4 }).toBe(true);
        expect(await execute("getent", "passwd", "parlor")).toMatch(/:\/var\/lib\/parlor:\/usr\/sbin\/nologin\n$/);
        expect(await execute("stat", "--format", "%a %U:%G", "/var/lib/parlor", "/var/lib/parlor/app.db")).toBe(
          "700 parlor:parlor\n600 parlor:parlor\n",
        );
        expect(await execute("systemctl", "is-enabled", "parlor.service")).toBe("enabled\n");

        await connectModel({ json }, llm.url);
        const frames = framesOf(
          await send("POST", "/api/chat", {
            ...{ conversation_id: "c1", user_message_id: "u1", assistant_message_id: "a1", context: "server" },
            messages: [{ role: "user", content: "Tell me about the sea" }],
          }),
        );
        const call = await llm.nextCall();
        await call.emit("The sea ");
        await expect.poll(async () => (await readReply()).content).toBe("The sea ");
        await execute("dpkg", "--install", "/packages/1.2.4.deb");
        // The stream of the old server ends.
        await Array.fromAsync(frames).catch(() => {});
        await expect.poll(isHealthy, { timeout: SLOW_MS / 4 }).toBe(true);
        const log = await execute("cat", "/log");
        expect(log.match(/"message":"(Started|Stopped)"/g)).toEqual(
          ["Started", "Stopped", "Started"].map((message) => `"message":"${message}"`),
        );
        await call.emit("is wide.");
        await call.finish();
        await expect.poll(readReply, { timeout: SLOW_MS / 4 }).toMatchObject({
          content: "The sea is wide.",
          status: "complete",
        });

        await execute("dpkg", "--remove", "parlor");
        expect(await isHealthy()).toBe(false);
        await execute("dpkg", "--install", "/packages/1.2.4.deb");
        await expect.poll(isHealthy, { timeout: SLOW_MS / 4 }).toBe(true);
        expect((await readReply()).content).toBe("The sea is wide.");
        expect(await execute("dpkg", "--purge", "parlor")).toContain("Parlor: the data stays in /var/lib/parlor");
        expect((await docker.run("exec", name, "test", "-s", "/var/lib/parlor/app.db")).code).toBe(0);
        expect((await docker.run("exec", name, "test", "-e", "/usr/bin/parlor")).code).toBe(1);
        expect((await docker.run("exec", name, "ls", "/etc/systemd/system/multi-user.target.wants")).stdout).not
          .toContain("parlor");
      });
    },
  );
}
