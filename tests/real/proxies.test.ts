/** Caddy and nginx in front of the server, with the configuration of docs/guide/reverse-proxy.md. */
import { connect } from "node:tls";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { openPage } from "../helpers/browser/browser.ts";
import { openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { type Device, openDevice, openPasskeyBrowser } from "../helpers/browser/passkey_browser.ts";
import { makeCertificate } from "../helpers/files/tls_certificate.ts";
import { readTexts } from "../helpers/files/doc_blocks.ts";
import { PHONE } from "../helpers/browser/ui_page.ts";
import { runParlor } from "../helpers/processes/parlor_command.ts";
import { realPart } from "./helpers/real_part.ts";
import { startTimes } from "./helpers/times.ts";
import { freePort } from "./helpers/free_port.ts";

const PROXIES = realPart("REAL_PROXIES_DIR", "proxies.sh");
const NAME = "chat.example.org";
/** Above nginx's default limit. */
const LARGE = "x".repeat(3_000_000);

/** Options of a proxy. Only its name, ports and certificate differ from the guide. */
interface Setup {
  folder: string;
  https: number;
  http: number;
  upstream: string;
}

/** The proxies: the command, the file it reads, and its text. */
const KINDS = {
  Caddy: async ({ folder, https, http, upstream }: Setup) => {
    const own = [
      "admin off",
      "local_certs",
      "skip_install_trust",
      "grace_period 1s",
      `https_port ${https}`,
      `http_port ${http}`,
    ];
    const text = (await printed("caddy")).replace("127.0.0.1:8787", upstream);
    return {
      args: ["run", "--adapter", "caddyfile", "--config", `${folder}/config`],
      text: `{\n${own.join("\n")}\nstorage file_system ${folder}\n}\n${text}`,
    };
  },
  nginx: async ({ folder, https, http, upstream }: Setup) => {
    const { cert, key } = await makeCertificate();
    await Deno.writeTextFile(`${folder}/cert.pem`, cert);
    await Deno.writeTextFile(`${folder}/key.pem`, key);
    const text = (await printed("nginx")).replace("127.0.0.1:8787", upstream)
      .replace("listen 443", `listen 127.0.0.1:${https}`).replace("listen 80", `listen 127.0.0.1:${http}`)
      .replace(/\/etc\/letsencrypt\S+fullchain\.pem/, `${folder}/cert.pem`)
      .replace(/\/etc\/letsencrypt\S+privkey\.pem/, `${folder}/key.pem`);
    const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) =>
      `${kind}_temp_path ${folder}/${kind};`
    );
    return {
      args: ["-p", folder, "-c", `${folder}/config`, "-e", `${folder}/log`, "-g", `daemon off; pid ${folder}/pid;`],
      text: `${Deno.uid() === 0 ? "user root;\n" : ""}events {}\nhttp {\naccess_log off;\n${
        paths.join("\n")
      }\n${text}\n}\n`,
    };
  },
};

/** Returns the code blocks of a language in the guide. */
async function printed(language: string): Promise<string> {
  const [text] = await readTexts("docs/guide/reverse-proxy.md", language);
  return text!;
}

/** Starts a proxy in front of a server. Returns its address and a function that stops it. */
async function startProxy(kind: keyof typeof KINDS, server: ChildServer) {
  const folder = await Deno.makeTempDir({ prefix: "parlor-proxy-" });
  const [https, http] = [freePort(), freePort()];
  const { args, text } = await KINDS[kind]({ folder, https, http, upstream: new URL(server.url).host });
  await Deno.writeTextFile(`${folder}/config`, text);
  const child = new Deno.Command(`${PROXIES}/bin/${kind.toLowerCase()}`, {
    args,
    env: { HOME: folder },
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const said = new Response(child.stderr).text();
  let hasEnded = false;
  child.status.then(() => hasEnded = true);
  await expect.poll(async () => {
    if (hasEnded) throw new Error(`${kind} has ended: ${await said}`);
    // Caddy listens before it has a certificate.
    return await hasCertificate(https);
  }).toBe(true);
  return {
    url: `https://${NAME}:${https}`,
    http,
    async [Symbol.asyncDispose]() {
      if (!hasEnded) child.kill("SIGTERM");
      await child.status;
      await said;
      await Deno.remove(folder, { recursive: true });
    },
  };
}

/** Whether a server on this machine ends a handshake for the name. */
function hasCertificate(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port, servername: NAME, rejectUnauthorized: false });
    const end = (isOpen: boolean) => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once("secureConnect", () => end(true));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
  });
}

/** Creates the first passkey with the code that the server printed. */
async function createFirstPasskey({ page }: Device, { logs }: ChildServer): Promise<void> {
  const [, code] = /Pairing code: (\S+)/.exec(logs.join("\n"))!;
  await page.getByLabel("Code").fill(code!);
  await page.getByRole("button", { name: "Create passkey" }).click();
}

/** Starts a reply in the page. Returns how much of its stream has arrived, and whether it has ended. */
async function followReply({ page }: Device) {
  await page.evaluate(() => {
    const seen = { text: "", isOver: false };
    Object.assign(globalThis, { seen });
    // Not awaited: the response starts with the model's first token.
    (async () => {
      const body = { conversation_id: "c", messages: [{ role: "user", content: "Well?" }] };
      const headers = { "Content-Type": "application/json" };
      const answer = await fetch("/api/chat", { method: "POST", headers, body: JSON.stringify(body) });
      const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) seen.text += part.value;
      seen.isOver = true;
    })();
  });
  return () => page.evaluate(() => (globalThis as unknown as { seen: { text: string; isOver: boolean } }).seen);
}

describe.skipIf(PROXIES === undefined)("behind a reverse proxy as the docs print it", { timeout: 600_000 }, () => {
  let browser: Browser;
  let dataDir: string;
  let server: ChildServer;

  beforeAll(async () => {
    browser = await openPasskeyBrowser([NAME]);
  });
  afterAll(() => browser?.close());

  async function openServer(): Promise<ChildServer> {
    dataDir = await Deno.makeTempDir({ prefix: "parlor-proxied-" });
    await Deno.writeTextFile(`${dataDir}/config.toml`, await printed("toml"), { mode: 0o600 });
    await Deno.chmod(dataDir, 0o700);
    return server = await startChildServer({ dataDir, args: ["--setup-completed", "true"] });
  }

  test.each(Object.keys(KINDS) as (keyof typeof KINDS)[])("%s", async (kind) => {
    await using _server = await openServer();
    await using llm = await openFakeLlm({ switches: { manual: "on" } });
    await using proxy = await startProxy(kind, server);
    const plain = await fetch(`http://127.0.0.1:${proxy.http}/`, { redirect: "manual", headers: { Host: NAME } });
    expect(plain.status).toBeGreaterThanOrEqual(301);
    expect(plain.status).toBeLessThanOrEqual(308);
    await plain.body?.cancel();

    // The public origin is the one that the passkey and its cookie are for, and nobody is taken for the owner.
    const owner = await openDevice(browser, proxy.url);
    const ask = (path: string, init?: RequestInit) =>
      owner.page.evaluate(async ([path, init]) => {
        const answer = await fetch(path as string, init as RequestInit);
        const text = await answer.text();
        return { status: answer.status, json: text.startsWith("{") ? JSON.parse(text) : text };
      }, [path, init] as const);
    const put = (path: string, body: unknown, method = "PUT") =>
      ask(path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    await createFirstPasskey(owner, server);
    await owner.page.getByLabel("Message", { exact: true }).waitFor();
    expect((await owner.context.cookies()).map(({ name, secure }) => [name, secure])).toContainEqual([
      "__Host-app_sess",
      true,
    ]);
    const status = await ask("/api/auth/status");
    expect(status.json).toMatchObject({ passkeys_supported: true });
    expect(status.json).not.toHaveProperty("hint");
    const stranger = await openDevice(browser, proxy.url);
    await stranger.page.getByRole("heading", { name: "Sign in to Parlor" }).waitFor();

    // A body larger than the proxy's own limit, and a stream of which each word comes when it is said.
    expect((await put("/api/conversations/large", { messages: [{ id: "m", role: "user", content: LARGE }] })).status)
      .toBe(201);
    const connection = { id: "d", kind: "openai", base_url: llm.url, model: "fake-model" };
    expect((await put("/api/connections", connection)).status).toBe(201);
    expect((await put("/api/connections/d/activate", {}, "POST")).status).toBe(200);
    const call = llm.nextCall();
    const seenSoFar = await followReply(owner);
    const answer = await call;
    for (const word of ["first", "second", "third"]) {
      await answer.emit(`${word} `);
      await expect.poll(async () => (await seenSoFar()).text).toContain(word);
      expect((await seenSoFar()).isOver).toBe(false);
    }
    await answer.finish();
    await expect.poll(async () => (await seenSoFar()).isOver).toBe(true);

    // The set-up of the guide is as it should be, and the server says where to open it.
    expect(server.readyLine).toContain(`is at https://${NAME}, listening on `);
    const { code, stdout } = await runParlor(["doctor", "--data-dir", dataDir]);
    expect([code, stdout.trimEnd().split("\n").at(-1)], stdout).toEqual([0, "No problems found."]);
    expect(stdout).toContain(`The server responds at "${server.url}"`);

    // A change on one device appears on another at once.
    await owner.page.reload();
    await owner.page.getByLabel("Message", { exact: true }).waitFor();
    expect((await put("/api/conversations/told", { title: "Told through the proxy", messages: [] })).status).toBe(201);
    await owner.page.getByText("Told through the proxy").first().waitFor();
    expect(owner.errors).toEqual([]);
    await Promise.all([owner.context.close(), stranger.context.close()]);
    await Deno.remove(dataDir, { recursive: true }).catch(() => {});
  });

  test("leads from a configured proxy to a phone that is signed in, and localhost says where to go", async () => {
    await using server = await openServer();
    await using proxy = await startProxy("Caddy", server);
    const local = await openPage(browser, server.url);
    await local.page.goto(server.url);
    await local.page.getByText("Parlor is available only through the proxy in trusted_proxies").waitFor();
    await local.context.close();

    const times = startTimes();
    const desk = await openDevice(browser, proxy.url);
    await createFirstPasskey(desk, server);
    await desk.page.getByRole("link", { name: "Settings" }).click();
    await desk.page.getByRole("link", { name: "Access" }).click();
    times.note("this machine is signed in");
    await desk.page.getByRole("button", { name: "Set up a phone" }).click();
    await desk.page.getByRole("img", { name: "QR code with the address and code" }).waitFor();
    const code = await desk.page.getByLabel("Code", { exact: true }).innerText();
    times.note("QR code");
    const phone = await openDevice(browser, `${proxy.url}/pair#code=${code}`, PHONE);
    await phone.page.getByRole("button", { name: "Create passkey" }).click();
    await phone.page.getByLabel("Message", { exact: true }).waitFor();
    times.note("the phone is signed in");
    await desk.page.getByText(/is signed in$/).waitFor();
    expect(await phone.countPasskeys()).toBe(1);
    expect([desk.errors, phone.errors]).toEqual([[], []]);
    times.print();
    await Promise.all([desk.context.close(), phone.context.close()]);
    await Deno.remove(dataDir, { recursive: true }).catch(() => {});
  });
});
