/** The compiled executable on a machine without Deno, and the source on the Deno that compiles it. */
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import denoConfig from "../../deno.json" with { type: "json" };
import { builtUi } from "../helpers/browser/built_ui.ts";
import { type ChildServer, ownEnvironment, startChildServer } from "../helpers/app/child_server.ts";
import { startCli } from "../helpers/processes/cli_child.ts";
import { sniffImage } from "../../services/attachments/images/image_header.ts";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { openFakeHub } from "../helpers/fakes/fake_hub.ts";
import { ggufFile } from "../helpers/files/gguf_file.ts";
import { fixtureImage, makeGif } from "../helpers/files/image_files.ts";
import { runParlor } from "../helpers/processes/parlor_command.ts";
import { openDevice, openPasskeyBrowser } from "../helpers/browser/passkey_browser.ts";
import { PATIENCE_MS } from "../helpers/app/patience.ts";
import { printPdf, writePdf } from "../helpers/files/document_files.ts";
import * as kinds from "../helpers/files/document_kinds.ts";
import { dataUrl } from "../helpers/files/pictures.ts";
import { makeRgbaPng } from "../helpers/files/png_files.ts";
import { BUILD_MS, buildForTests } from "./helpers/built_executable.ts";
import { realPart } from "./helpers/real_part.ts";
import { readReply } from "./helpers/reply_stream.ts";

const INSTALLED = realPart("REAL_DENORT_DIR", "denort.sh");
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Maximum size that the program adds to the runtime. */
const MAX_ADDED_BYTES = 25_000_000;
/** UID of the user `nobody` on Debian. */
const NOBODY_UID = 65_534;

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

/** Sends a message to the demo connection and checks that it is stored. Returns the reply's text. */
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

/** Downloads a small model from the fake hub and checks the file. */
async function expectDownload(dataDir: string, start: (args: string[]) => Promise<ChildServer>): Promise<void> {
  const model = ggufFile({ sizeBytes: 2_500_000 });
  await using hub = openFakeHub({ "owner/name": { files: { "small-Q8_0.gguf": model } } });
  await using server = await start(["--hub-url", hub.url, "--guard-allow", "127.0.0.2/31"]);
  const asked = { repo: "owner/name", format: "gguf", file: "small-Q8_0.gguf" };
  await server.json("POST", "/api/models/download", asked);
  await expect.poll(async () => (await server.json<{ state: string }[]>("GET", "/api/models/downloads"))[0])
    .toMatchObject({ state: "done", received_bytes: model.length });
  expect(await server.json("GET", "/api/models/local")).toMatchObject([
    { path: "owner/name/small-Q8_0.gguf", format: "gguf", architecture: "llama", quantization: "Q8_0" },
  ]);
  expect(await Deno.readFile(`${dataDir}/models/owner/name/small-Q8_0.gguf`)).toEqual(model);
}

/** Decodes images of every format in the Worker, with the embedded WebAssembly codecs. */
async function expectPictures(server: ChildServer): Promise<void> {
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
}

/** Extracts documents of every format in the Worker, and a scanned page as an image. */
async function expectDocuments(server: ChildServer): Promise<void> {
  const fixture = (name: string) => Deno.readFile(`${ROOT}tests/fixtures/documents/${name}`);
  const files: Record<string, { bytes: Uint8Array<ArrayBuffer>; says: string }> = {
    "plain.pdf": { bytes: writePdf(["Alpha is one.", "Beta is two."]), says: "Beta is two." },
    "minutes.docx": { bytes: await fixture("minutes.docx"), says: "33 | Heron | 375" },
    "almanac.epub": { bytes: await fixture("almanac.epub"), says: "Admiral Biscuit" },
  };
  const writers: Record<string, kinds.DocumentWriter> = {
    ...{ html: kinds.writeHtml, pptx: kinds.writePptx, xlsx: kinds.writeXlsx, odt: kinds.writeOdt },
    ...{ ods: kinds.writeOds, odp: kinds.writeOdp, rtf: kinds.writeRtf, msg: kinds.writeMsg, eml: kinds.writeEml },
    ...{ mhtml: kinds.writeMhtml, ipynb: kinds.writeNotebook, srt: kinds.writeSrt, vtt: kinds.writeVtt },
    csv: kinds.writeCsv,
  };
  for (const [ending, write] of Object.entries(writers)) {
    const content = await write(["Gamma is three.", "Δέλτα is four."]);
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    files[`sample.${ending}`] = { bytes, says: "Δέλτα is four." };
  }
  const add = async (name: string, bytes: Uint8Array<ArrayBuffer>) => {
    const body = new FormData();
    body.append("file", new File([bytes], name));
    const added = await fetch(`${server.url}/api/documents`, { method: "POST", body });
    expect(added.status, await added.clone().text()).toBe(201);
    const { id } = await added.json();
    await expect.poll(
      async () => (await server.json<{ state: string }>("GET", `/api/documents/${id}`)).state,
      { timeout: PATIENCE_MS },
    ).not.toBe("extracting");
    return id as string;
  };
  for (const [name, { bytes, says }] of Object.entries(files)) {
    const id = await add(name, bytes);
    const { pages } = await server.json<{ pages: { text: string }[] }>("GET", `/api/documents/${id}/text`);
    expect(pages.map(({ text }) => text).join("\n"), name).toContain(says);
  }
  const scan = await printPdf([`<img src="${dataUrl(fixtureImages().png)}" style="width: 100%">`]);
  const id = await add("scan.pdf", scan);
  const image = await server.request("GET", `/api/documents/${id}/pages/1/image`);
  expect(image.status).toBe(200);
  expect(sniffImage(new Uint8Array(await image.arrayBuffer()))).toMatchObject({ type: "image/jpeg" });
}

/** Checks that the SSRF guard refuses a private address. */
async function expectGuard(server: ChildServer): Promise<void> {
  const answer = await server.request("POST", "/api/characters/import-url", { url: "http://127.0.0.1:80/card.png" });
  expect([answer.status, (await answer.json()).error.code]).toEqual([403, "address_not_allowed"]);
}

describe.skipIf(INSTALLED === undefined)("compiled with the older Deno", { timeout: 600_000 }, () => {
  const executable = `${ROOT}dist/parlor`;
  /** An empty working folder, which is also the temporary folder. */
  let elsewhere: string;
  let dataDir: string;

  const start = (args: string[] = []) =>
    startChildServer({ executable, dataDir, args, cwd: elsewhere, env: { TMPDIR: elsewhere } });

  beforeAll(async () => {
    await buildForTests(INSTALLED!);
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

  test("it prints the version of deno.json and its options without touching the disk", async () => {
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
    const uiFolder = await builtUi();
    expect(html).toBe(await Deno.readTextFile(`${uiFolder}/index.html`));
    const files = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path!);
    expect(files.length).toBeGreaterThanOrEqual(2);
    for (const path of files) {
      const answer = await server.request("GET", path);
      expect(answer.status, path).toBe(200);
      expect(new Uint8Array(await answer.arrayBuffer())).toEqual(await Deno.readFile(`${uiFolder}${path}`));
    }
    const { text } = await (await server.request("GET", "/api/changelog")).json();
    expect(text).toBe(await Deno.readTextFile(`${ROOT}CHANGELOG.md`));
  });

  test("a demo chat is streamed, stored, and there again after a stop by signal", async () => {
    await using first = await start();
    const text = await expectDemoChat(first, "kept");
    expect(await first.kill("SIGTERM")).toMatchObject({ code: 0, signal: null });
    await using second = await start();
    expect((await messagesOf(second, "kept"))[1]).toMatchObject({ content: text, status: "complete" });
    expect(await second.kill("SIGINT")).toMatchObject({ code: 0, signal: null });
  });

  test("it reads documents of every kind, and pages of a scan", async () => {
    await using server = await start();
    await expectDocuments(server);
  });

  test("it downloads a model in the Worker it carries, and reads its head", () => expectDownload(dataDir, start));

  test("a second process is refused the same data", async () => {
    await using _server = await start();
    await expect(start()).rejects.toThrow(/ended with code 1/);
  });

  test.each([["SIGKILL", null], ["SIGTERM", 0]] as const)(
    "%s in the middle of a reply leaves the text that was seen, marked as interrupted",
    async (signal, code) => {
      // The demo may have written all of its reply before this process has read any of it.
      await using llm = await openFakeLlm({ switches: { manual: "on" } });
      await using server = await start();
      const connection = { id: "double", name: "Double", kind: "openai", base_url: llm.url, model: "fake-model" };
      await server.json("PUT", "/api/connections", connection);
      const id = `cut-${signal}`;
      const asked = server.request("POST", "/api/chat", { ...demoBody(id), connection_id: connection.id });
      const call = await llm.nextCall();
      for (let n = 0; n < 10; n++) await call.emit(`word ${n} `);
      let ended: Promise<Deno.CommandStatus> | undefined;
      const seen = await readReply(await asked, ({ steps }) => {
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
      await again.json("DELETE", `/api/connections/${connection.id}`);
      await expectDemoChat(again, `after-${signal}`);
    },
  );

  test("it contains its license notices, with a bill of materials and checksums beside it", async () => {
    const { code, stdout } = await runParlor(["licenses"], { executable });
    expect(code).toBe(0);
    expect(stdout).toBe(await Deno.readTextFile(`${ROOT}dist/licences.txt`));
    const bill = JSON.parse(await Deno.readTextFile(`${ROOT}dist/parlor.cdx.json`));
    expect(bill).toMatchObject({ bomFormat: "CycloneDX", metadata: { component: { version: denoConfig.version } } });
    const parts: { name: string; version: string; hashes?: unknown[] }[] = bill.components;
    expect(parts.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["deno", "hono", "zod", "preact", "@preact/signals", "@jsquash/webp"]),
    );
    for (const tool of ["vitest", "playwright-core", "axe-core"]) {
      expect(parts.find(({ name }) => name === tool)).toBeUndefined();
    }
    for (const { name, version, hashes } of parts) {
      expect(stdout).toContain(`${name} ${version}`.replace("deno ", "Deno "));
      if (name !== "deno") expect(hashes, name).toHaveLength(1);
    }
    const check = new Deno.Command("sha256sum", { args: ["--check", "SHA256SUMS"], cwd: `${ROOT}dist` });
    expect((await check.output()).success).toBe(true);
  });

  test("an unavailable runtime and an unknown target are one sentence each", async () => {
    // Only the compiler is cut off: the bundler may still have to load its packages.
    const compiler = `${dataDir}-compiler`;
    const cutOff = `HTTPS_PROXY=http://127.0.0.1:9 DENO_DIR=${dataDir}-deno exec ${INSTALLED}/deno "$@"`;
    await Deno.writeTextFile(compiler, `#!/bin/sh\n${cutOff}\n`, { mode: 0o755 });
    const build = async (target: string) => {
      const { code, stderr } = await new Deno.Command(Deno.execPath(), {
        args: ["run", "--quiet", "-A", "build.ts", "executable", "--target", target],
        cwd: ROOT,
        env: { DENO_COMPILE_CLI: compiler },
      }).output();
      return { code, stderr: new TextDecoder().decode(stderr) };
    };
    expect(await build("macos-arm64")).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^Can't compile for macos-arm64: the compile runtime [^\n]*\n$/),
    });
    expect(await build("amiga")).toMatchObject({ code: 1, stderr: expect.stringContaining("windows-x64") });
    for (const path of [compiler, `${dataDir}-deno`]) await Deno.remove(path, { recursive: true }).catch(() => {});
  }, BUILD_MS);

  describe("as a stranger without rights, in an empty folder with nothing on PATH", () => {
    /** The folders of the user: the working folder, which stays empty, the data folder, and the home folder. */
    let place: string;
    let program: string;
    let browser: Browser;
    const isRoot = Deno.uid() === 0;
    const environment = () => ({ TMPDIR: `${place}/empty`, PATH: "/none", HOME: `${place}/home` });

    const startHere = (args: string[] = []) =>
      startChildServer({
        executable: program,
        args,
        dataDir: `${place}/data`,
        cwd: `${place}/empty`,
        env: environment(),
      });
    const command = (args: string[], env: Record<string, string> = {}) =>
      startCli(args, `${place}/home`, {
        environment: { ...environment(), ...env },
        executable: program,
        cwd: `${place}/empty`,
      });

    beforeAll(async () => {
      browser = await openPasskeyBrowser();
      place = await Deno.makeTempDir({ prefix: "parlor-stranger-" });
      program = `${place}/parlor`;
      await Deno.copyFile(executable, program);
      await Deno.chmod(program, 0o755);
      for (const folder of ["empty", "home"]) await Deno.mkdir(`${place}/${folder}`);
      if (!isRoot) return;
      for (const path of ["", "/empty", "/home"]) await Deno.chown(place + path, NOBODY_UID, NOBODY_UID);
      const as = `/usr/bin/setpriv --reuid ${NOBODY_UID} --regid ${NOBODY_UID} --clear-groups`;
      await Deno.writeTextFile(`${place}/start`, `#!/bin/sh\nexec ${as} ${program} "$@"\n`, { mode: 0o755 });
      program = `${place}/start`;
    });

    afterAll(async () => {
      await browser?.close();
      if (place !== undefined) await Deno.remove(place, { recursive: true });
    });

    test("its page pairs, chats and lets the command line in; after a stop the token still counts", async () => {
      const closed = ["--loopback-auth-bypass", "false", "--setup-completed", "true"];
      await using server = await startHere(closed);
      const owner = await openDevice(browser, server.url);
      await owner.page.getByRole("button", { name: "Create passkey" }).click();
      const composer = owner.page.getByLabel("Message", { exact: true });
      await composer.fill("Is anybody there?");
      await composer.press("Enter");
      await owner.page.locator(".reply .prose").getByText("not a language model").waitFor();

      const login = command(["auth", "login", "--base-url", server.url, "--no-browser"]);
      const [, address] = await login.told(/^ {2}(http:\S+)$/m);
      await owner.page.goto(address!);
      await owner.page.getByRole("button", { name: "Allow" }).click();
      await owner.page.getByRole("heading", { name: "Return to the terminal" }).waitFor();
      expect(await login.ended).toMatchObject({ code: 0, stdout: expect.stringContaining("Signed in to") });
      expect(await command(["auth", "whoami"]).ended).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(`${server.url} as`),
      });
      const stranger = await openDevice(browser, `${server.url}/sign-in`);
      await stranger.page.getByRole("heading", { name: "Sign in to Parlor" }).waitFor();
      expect({ errors: owner.errors, foreign: owner.foreign }).toEqual({
        errors: [],
        foreign: [expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback\?/)], // of the command line
      });
      expect([...stranger.errors, ...stranger.foreign]).toEqual([]);
      await Promise.all([owner.context.close(), stranger.context.close()]);
      expect(await server.kill("SIGTERM")).toMatchObject({ code: 0, signal: null });

      await using again = await startHere(closed);
      const token = (await Deno.readTextFile(`${place}/home/.config/app/cli.token`)).trim();
      const ask = (headers: HeadersInit) => again.request("GET", "/api/conversations", undefined, { headers });
      expect((await ask({})).status).toBe(401);
      const chats = await (await ask({ Authorization: `Bearer ${token}` })).json();
      expect(chats).toHaveLength(1);
    });

    test("it reads pictures, refuses addresses of the house, backs up and restores, and leaves its folder empty", async () => {
      await using server = await startHere();
      await expectDemoChat(server, "stranger");
      await expectPictures(server);
      await expectGuard(server);
      const env = { PARLOR_BACKUP_PASSPHRASE: "a horse and a battery" };
      for (const args of [["backup", `${place}/home/b`], ["restore", `${place}/home/b`]]) {
        const data = args[0] === "backup" ? `${place}/data` : `${place}/home/restored`;
        expect(await command([...args, "--data-dir", data], env).ended).toMatchObject({ code: 0, stderr: "" });
      }
      for (const folder of [`${place}/data`, `${place}/home/restored`]) {
        expect((await Deno.stat(folder)).mode! & 0o777).toBe(0o700);
        if (isRoot) expect((await Deno.stat(`${folder}/app.db`)).uid).toBe(NOBODY_UID);
      }
      expect(await server.kill("SIGTERM")).toMatchObject({ code: 0, signal: null });
      expect(await Array.fromAsync(Deno.readDir(`${place}/empty`))).toEqual([]);
    });
  });

  test("it backs up beside its running server, restores elsewhere, rotates the key, and finds nothing wrong", async () => {
    const env = { PARLOR_BACKUP_PASSPHRASE: "a horse and a battery" };
    const folder = await Deno.makeTempDir({ prefix: "parlor-moved-" });
    const data = `${folder}/data`;
    const command = (...args: string[]) => runParlor(args, { executable, env });
    try {
      {
        await using server = await start(["--backup-dir", `${folder}/daily`]);
        await server.json("PUT", "/api/conversations/moved", { title: "Moved", messages: [] });
        expect(await command("backup", `${folder}/b`, "--data-dir", dataDir)).toMatchObject({ code: 0, stderr: "" });
        // The daily backup is created in a Worker inside the executable.
        await expect.poll(() => server.json<{ kind: string; state: string }[]>("GET", "/api/jobs"))
          .toContainEqual(expect.objectContaining({ kind: "backup", state: "done" }));
        const invite = await command("auth", "invite", "--data-dir", dataDir, "--base-url", server.url);
        expect(invite).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Invite: \S+/) });
        expect(await command("doctor", "--data-dir", dataDir, "--port", new URL(server.url).port)).toMatchObject({
          code: 0,
        });
      }
      expect(await command("restore", `${folder}/b`, "--data-dir", data)).toMatchObject({ code: 0, stderr: "" });
      expect(await command("key", "rotate", "--data-dir", data)).toMatchObject({ code: 0, stderr: "" });
      await using server = await startChildServer({
        executable,
        dataDir: data,
        cwd: elsewhere,
        env: { TMPDIR: elsewhere },
      });
      expect(await server.json("GET", "/api/conversations/moved")).toMatchObject({ title: "Moved" });
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });

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
      // A separate tree: this Deno would replace the node_modules that the other one uses.
      const root = `${folder}/parlor`;
      await Deno.mkdir(root);
      const parts = ["deno.json", "deno.lock", "project.json", "main.ts", "routes", "services", "middleware", "static"];
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
