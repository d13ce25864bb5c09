/** The compiled executable, started as a stranger's machine would; and the source on the Deno that it is compiled with. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import denoConfig from "../../deno.json" with { type: "json" };
import { type ChildServer, ownEnvironment, startChildServer } from "../helpers/child_server.ts";
import { sniffImage } from "../../services/attachments/image_type.ts";
import { openFakeHub } from "../helpers/fake_hub.ts";
import { ggufFile } from "../helpers/gguf_file.ts";
import { fixtureImage, makeGif } from "../helpers/image_files.ts";
import { makeRgbaPng } from "../helpers/png_files.ts";
import { realPart } from "./helpers/real_part.ts";
import { readReply } from "./helpers/reply_stream.ts";

const INSTALLED = realPart("REAL_DENORT_DIR", "denort.sh");
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** What the program may add to the runtime it is compiled into. BENCH.md */
const MAX_ADDED_BYTES = 25_000_000;
const BUILD_MS = 180_000;

interface StoredMessage {
  role: string;
  content: string;
  status: string;
}

function demoBody(id: string) {
  return {
    conversation_id: id,
    user_message_id: `${id}-u`,
    assistant_message_id: `${id}-a`,
    messages: [{ role: "user", content: "Is anybody there?" }],
  };
}

async function messagesOf(server: ChildServer, id: string): Promise<StoredMessage[]> {
  return (await server.json<{ messages: StoredMessage[] }>("GET", `/api/conversations/${id}`)).messages;
}

function fixtureImages() {
  return {
    jpeg: fixtureImage("quarters.jpg"),
    webp: fixtureImage("quarters_lossy.webp"),
    png: makeRgbaPng(48, 32, (x, y) => [x, y, 9, 255]),
  };
}

/** Has a conversation with the demo connection and sees it stored. Gives the reply's text. */
async function expectDemoChat(server: ChildServer, id: string): Promise<string> {
  const seen = await readReply(await server.request("POST", "/api/chat", demoBody(id)));
  expect(seen.isDone).toBe(true);
  expect(seen.steps.length).toBeGreaterThan(20);
  expect(await messagesOf(server, id)).toEqual([
    expect.objectContaining({ role: "user", content: "Is anybody there?", status: "complete" }),
    expect.objectContaining({ role: "assistant", content: seen.text, status: "complete" }),
  ]);
  return seen.text;
}

/** Downloads a model of a few blocks from a hub's double, and sees it whole on the disk. */
async function expectDownload(dataDir: string, start: (args: string[]) => Promise<ChildServer>): Promise<void> {
  const model = ggufFile({ sizeBytes: 2_500_000 });
  await using hub = openFakeHub({ "owner/name": { files: { "small-Q8_0.gguf": model } } });
  await using server = await start(["--hub-url", hub.url, "--guard-allow", "127.0.0.2/31"]);
  const asked = { repo: "owner/name", format: "gguf", file: "small-Q8_0.gguf" };
  await server.json("POST", "/api/models/download", asked);
  await expect.poll(async () => (await server.json<{ state: string }[]>("GET", "/api/models/downloads"))[0], {
    timeout: 30_000,
  }).toMatchObject({ state: "done", received_bytes: model.length });
  expect(await server.json("GET", "/api/models/local")).toMatchObject([
    { path: "owner/name/small-Q8_0.gguf", format: "gguf", architecture: "llama", quantization: "Q8_0" },
  ]);
  expect(await Deno.readFile(`${dataDir}/models/owner/name/small-Q8_0.gguf`)).toEqual(model);
}

describe.skipIf(INSTALLED === undefined)("compiled with the older Deno", { timeout: 60_000 }, () => {
  const executable = `${ROOT}dist/parlor`;
  /** An empty folder to start in, which also is all the program knows of a temporary folder. */
  let elsewhere: string;
  let dataDir: string;

  const start = (args: string[] = []) =>
    startChildServer({ executable, dataDir, args, cwd: elsewhere, env: { TMPDIR: elsewhere } });

  beforeAll(async () => {
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["task", "--quiet", "build"],
      cwd: ROOT,
      env: { DENORT_BIN: `${INSTALLED}/denort`, DENO_COMPILE_CLI: `${INSTALLED}/deno`, DENO_TLS_CA_STORE: "system" },
    }).output();
    if (!success) throw new Error(`deno task build failed: ${new TextDecoder().decode(stderr)}`);
    elsewhere = await Deno.makeTempDir({ prefix: "parlor-elsewhere-" });
    dataDir = await Deno.makeTempDir({ prefix: "parlor-executable-data-" });
  }, BUILD_MS);

  afterAll(async () => {
    for (const folder of [elsewhere, dataDir]) {
      if (folder !== undefined) await Deno.remove(folder, { recursive: true });
    }
  });

  test("it adds little to the runtime", async () => {
    const [{ size }, runtime] = [await Deno.stat(executable), await Deno.stat(`${INSTALLED}/denort`)];
    expect(size - runtime.size).toBeGreaterThan(0);
    expect(size - runtime.size).toBeLessThan(MAX_ADDED_BYTES);
  });

  test("it tells the version of deno.json and its options without touching a disk", async () => {
    const ask = async (flag: string) => {
      const { code, stdout } = await new Deno.Command(executable, { args: [flag], cwd: elsewhere, clearEnv: true })
        .output();
      expect(code).toBe(0);
      return new TextDecoder().decode(stdout);
    };
    expect((await ask("--version")).trim()).toBe(`Parlor ${denoConfig.version}`);
    expect(await ask("--help")).toContain("--data-dir");
  });

  test("it serves the page and its files from inside, under the page's policy", async () => {
    await using server = await start();
    expect(server.readyLine).toBe(`Parlor ${denoConfig.version} listening on ${server.url}`);
    const health = await server.request("GET", "/healthz");
    expect([health.status, await health.text()]).toEqual([204, ""]);

    const page = await server.request("GET", "/");
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toMatch(/^text\/html/);
    expect(page.headers.get("content-security-policy")).toMatch(/default-src 'none'.*script-src 'self'/);
    const html = await page.text();
    expect(html).toBe(await Deno.readTextFile(`${ROOT}static/dist/index.html`));
    const files = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path!);
    expect(files.length).toBeGreaterThanOrEqual(2);
    for (const path of files) {
      const answer = await server.request("GET", path);
      expect(answer.status, path).toBe(200);
      expect(new Uint8Array(await answer.arrayBuffer())).toEqual(await Deno.readFile(`${ROOT}static/dist${path}`));
    }
  });

  test("a demo chat is streamed, stored, and there again after a stop by signal", async () => {
    await using first = await start();
    const text = await expectDemoChat(first, "kept");
    expect(await first.kill("SIGTERM")).toMatchObject({ code: 0, signal: null });
    await using second = await start();
    expect((await messagesOf(second, "kept"))[1]).toMatchObject({ content: text, status: "complete" });
    expect(await second.kill("SIGINT")).toMatchObject({ code: 0, signal: null });
  });

  test("it reads pictures of every kind by the codecs it carries", async () => {
    await using server = await start();
    await server.json("PUT", "/api/personas/p1", { name: "Ann" });
    const given = { ...fixtureImages(), gif: makeGif({ width: 48, height: 32 }, { width: 48, height: 32 }) };
    for (const [kind, bytes] of Object.entries(given)) {
      const stored = await fetch(`${server.url}/api/personas/p1/avatar`, {
        method: "PUT",
        body: bytes,
        headers: { "Content-Type": `image/${kind}` },
      });
      expect(stored.status, await stored.text()).toBe(200);
      const shown = await server.request("GET", "/api/personas/p1/avatar");
      expect(sniffImage(new Uint8Array(await shown.arrayBuffer()))).toEqual({
        type: "image/png",
        widthPx: 48,
        heightPx: 32,
      });
    }
  });

  test("it downloads a model in the Worker it carries, and reads its head", () => expectDownload(dataDir, start));

  test("a second process is refused the same data", async () => {
    await using _server = await start();
    await expect(start()).rejects.toThrow(/ended with code 1/);
  });

  test.each([["SIGKILL", null], ["SIGTERM", 0]] as const)(
    "%s in the middle of a reply leaves the text that was seen, marked as interrupted",
    async (signal, code) => {
      await using server = await start();
      const id = `cut-${signal}`;
      let ended: Promise<Deno.CommandStatus> | undefined;
      const seen = await readReply(await server.request("POST", "/api/chat", demoBody(id)), ({ steps }) => {
        if (steps.length >= 8) ended ??= server.kill(signal);
        return false;
      });
      expect(seen.steps.length).toBeGreaterThanOrEqual(8);
      expect(seen.isDone).toBe(false);
      const status = await ended!;
      expect(status.signal).toBe(code === null ? "SIGKILL" : null);
      if (code !== null) expect(status.code).toBe(code);

      await using again = await start();
      const [, reply] = await messagesOf(again, id);
      expect(reply).toMatchObject({ status: "interrupted" });
      expect(reply!.content.startsWith(seen.text)).toBe(true);
      const headers = { "Last-Event-ID": seen.steps.at(-1)!.id! };
      const rest = await readReply(
        await again.request("GET", `/api/chat/replies/${id}-a`, undefined, { headers }),
      );
      expect(seen.text + rest.text).toBe(reply!.content);
      await expectDemoChat(again, `after-${signal}`);
    },
  );

  test("it leaves nothing outside its data folder", async () => {
    await using server = await start();
    await expectDemoChat(server, "tidy");
    await server.kill("SIGTERM");
    expect(await Array.fromAsync(Deno.readDir(elsewhere))).toEqual([]);
  });
});

describe.skipIf(INSTALLED === undefined)("from source on the older Deno", { timeout: BUILD_MS }, () => {
  test("a demo chat is streamed, stored, and there again after a stop by signal; a model is downloaded", async () => {
    const folder = await Deno.makeTempDir({ prefix: "parlor-older-" });
    try {
      // A tree of its own: this Deno would lay out node_modules anew under the feet of the other one.
      const root = `${folder}/parlor`;
      await Deno.mkdir(root);
      const parts = ["deno.json", "deno.lock", "main.ts", "routes", "services", "middleware", "static"];
      const copied = await new Deno.Command("cp", { args: ["-R", ...parts.map((part) => ROOT + part), root] }).output();
      expect(copied.success).toBe(true);
      const env = { ...ownEnvironment(), DENO_TLS_CA_STORE: "system" };
      const options = {
        deno: `${INSTALLED}/deno`,
        root,
        env,
        denoFlags: ["--node-modules-dir=none"],
        dataDir: `${folder}/data`,
      };
      await using first = await startChildServer(options);
      const text = await expectDemoChat(first, "older");
      expect(await first.kill("SIGTERM")).toMatchObject({ code: 0, signal: null });
      await using second = await startChildServer(options);
      expect((await messagesOf(second, "older"))[1]).toMatchObject({ content: text, status: "complete" });
      expect(await second.kill("SIGTERM")).toMatchObject({ code: 0, signal: null });
      await expectDownload(options.dataDir, (args) => startChildServer({ ...options, args }));
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
});
