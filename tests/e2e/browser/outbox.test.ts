/**
 * What the page keeps while the server or the network is away, in a real browser with the real server.
 * @slow Each test has a browser of its own, because a browser's storage is what is tested.
 */
import { type BrowserContext, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { type ChildServer, connectModel, startChildServer } from "../../helpers/app/child_server.ts";
import { PATIENCE_MS } from "../../helpers/app/patience.ts";
import { openFakeSearxng } from "../../helpers/fakes/fake_searxng.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { noise } from "../../helpers/files/pictures.ts";
import { isLong } from "../../helpers/files/sample.ts";
import { chooseMessageAction, eventually, PHONE, sendMessage } from "../../helpers/browser/ui_page.ts";
import type { StoredConversation } from "../../helpers/app/stored_chat.ts";
import { freePort } from "../../real/helpers/free_port.ts";

const CHROMIUM = Deno.env.get("CHROMIUM") ?? "/usr/bin/chromium";

let llm: FakeLlm;
let server: ChildServer;
let dataDir: string;
let port: string;
beforeAll(async () => {
  await builtUi();
  llm = await openFakeLlm();
  dataDir = await Deno.makeTempDir({ prefix: "parlor-outbox-" });
  port = String(freePort());
  server = await start();
  await connectModel(server, llm.url);
  await server.json("POST", "/api/setup/complete");
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await llm[Symbol.asyncDispose]();
  await Deno.remove(dataDir, { recursive: true });
});

function start(): Promise<ChildServer> {
  // The same port as before, because a browser's storage belongs to an address.
  return startChildServer({ dataDir, port, args: ["--discover-hosts", "127.0.0.1:9"] });
}

/** A phone whose storage outlives its browser. */
class Phone implements AsyncDisposable {
  context!: BrowserContext;
  page!: Page;
  readonly #folder = Deno.makeTempDirSync({ prefix: "parlor-phone-" });

  async open(path: string, script?: () => void): Promise<void> {
    this.context = await chromium.launchPersistentContext(this.#folder, {
      ...PHONE,
      executablePath: CHROMIUM,
      args: ["--no-sandbox"],
      locale: "en-US",
    });
    this.context.setDefaultTimeout(PATIENCE_MS);
    this.page = this.context.pages()[0] ?? await this.context.newPage();
    await this.page.clock.install();
    if (script) await this.context.addInitScript(script);
    await this.page.goto(`http://localhost:${port}${path}`);
  }

  /** Ends the browser at once, as a system without memory does. */
  async kill(): Promise<void> {
    const ended = new Promise((resolve) => this.context.once("close", resolve));
    for await (const { name } of Deno.readDir("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      const command = await Deno.readTextFile(`/proc/${name}/cmdline`).catch(() => "");
      const isBrowser = command.includes(`--user-data-dir=${this.#folder}`) && !command.includes("--type=");
      if (isBrowser) Deno.kill(Number(name), "SIGKILL");
    }
    await ended;
    for (const lock of ["SingletonLock", "SingletonSocket", "SingletonCookie"]) {
      await Deno.remove(`${this.#folder}/${lock}`).catch(() => {});
    }
  }

  async openTab(path: string): Promise<void> {
    this.page = await this.context.newPage();
    await this.page.goto(`http://localhost:${port}${path}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.context.close();
    await Deno.remove(this.#folder, { recursive: true });
  }
}

const AWAY = ["server", "network"] as const;
const ENDS = ["the tab is closed", "the page is reloaded", "another chat is shown", "the browser is killed"] as const;
const DELAYS_MS = [2000, 15_000];
const WAYS = AWAY.flatMap((away) =>
  ENDS.flatMap((end) => DELAYS_MS.map((delayMs) => ({ away, end, delayMs, seconds: delayMs / 1000 })))
);
/** Each kind of absence and each end once. */
const SAMPLE = [0, 4, 10, 14];

let n = 0;
test.each(WAYS.filter((_, i) => isLong() || SAMPLE.includes(i)))(
  "a message that is sent while the $away is away is in the chat once if $end after $seconds s",
  async ({ away, end, delayMs }) => {
    const id = `chat${++n}`;
    const text = `Ask keeper ${n} 🌿\nfor two more keys`;
    const path = `/api/conversations/${id}`;
    const messages = [{ id: "m0", role: "user", content: "How old?" }, {
      id: "m1",
      role: "assistant",
      content: "Very.",
    }];
    for (const each of [id, "other"]) {
      await server.json("PUT", `/api/conversations/${each}`, { title: `About ${each}`, messages });
    }
    await using phone = new Phone();
    await phone.open(`/c/${id}`);
    await phone.page.getByText("Very.").first().waitFor();
    if (away === "server") await server.kill();
    else await phone.context.setOffline(true);
    await sendMessage(phone.page, text);
    await phone.page.getByText("Not sent yet").first().waitFor();
    await expect.poll(() => phone.page.locator("main").innerText()).not.toContain("continues on the server");
    await phone.page.clock.runFor(delayMs); // the page tries again meanwhile
    if (end === "the tab is closed") await phone.page.close();
    if (end === "the page is reloaded") await phone.page.reload().catch(() => {});
    if (end === "another chat is shown") {
      await phone.page.evaluate(() => {
        history.pushState(null, "", "/c/other");
        dispatchEvent(new PopStateEvent("popstate"));
      });
    }
    if (end === "the browser is killed") await phone.kill();
    if (away === "server") server = await start();
    else if (end !== "the browser is killed") await phone.context.setOffline(false);
    if (end === "the browser is killed") await phone.open("/new");
    else if (end !== "another chat is shown") await phone.openTab("/new");
    const read = async () => (await server.json<StoredConversation>("GET", path)).messages;
    const stored = await eventually(read, (all) => all.length === 4 && all[3]!.status === "complete");
    expect(stored.filter(({ content }) => content === text)).toHaveLength(1);
    const asked = llm.chats.filter(({ body }) => JSON.stringify(body).includes(`keeper ${n} `));
    expect(asked).toHaveLength(1);
  },
);

async function openChat(path: string, phone: Phone, script?: () => void): Promise<void> {
  await server.json("PUT", `/api${path.replace("/c/", "/conversations/")}`, {
    title: "Keys",
    messages: [{ id: "m0", role: "user", content: "How old?" }, { id: "m1", role: "assistant", content: "Very." }],
  });
  await phone.open("/new", script);
  await phone.page.goto(`http://localhost:${port}${path}`);
  await phone.page.getByText("Very.").first().waitFor();
}

async function readMessages(id: string) {
  return (await server.json<StoredConversation>("GET", `/api/conversations/${id}`)).messages;
}

/** Waits until the chat of `openChat` has one more reply. */
function readReplied(id: string) {
  return eventually(() => readMessages(id), (all) => all.length === 4 && all[3]!.status === "complete");
}

function findAsked(text: string): string[] {
  return llm.chats.map(({ body }) => JSON.stringify(body)).filter((body) => body.includes(text));
}

/** Attaches files and sends a message without network. */
async function sendFiles(phone: Phone, text: string, files: { name: string; mimeType: string; buffer: Buffer }[]) {
  const { page } = phone;
  // What is loaded on demand comes from the service worker's cache.
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await phone.context.setOffline(true);
  await page.locator('.composer input[type="file"]').setInputFiles(files);
  await page.locator(".document-chip").getByText("Not sent yet").waitFor();
  if (files.length > 1) await page.locator(".composer img").waitFor();
  await sendMessage(page, text);
  await page.locator(".unsent").getByText("Not sent yet").waitFor();
}

test.each(["killed", "open"])(
  "a message that was written without network is sent once, after its files, from a tab that is %s",
  async (tab) => {
    await using phone = new Phone();
    await openChat(`/c/files-${tab}`, phone);
    const text = `Where is the key of ${tab}?`;
    await sendFiles(phone, text, [
      { name: `${tab}.md`, mimeType: "text/markdown", buffer: Buffer.from(`The key lies under the ${tab} linden.`) },
      { name: "gate.png", mimeType: "image/png", buffer: Buffer.from(noise(8, 8)) },
    ]);
    if (tab === "killed") await phone.page.close();
    await phone.context.setOffline(false);
    if (tab === "killed") await phone.openTab("/new");
    const stored = await readReplied(`files-${tab}`);
    const documents = await server.json<{ id: string; name: string }[]>("GET", "/api/documents");
    const [document, ...others] = documents.filter(({ name }) => name === `${tab}.md`);
    expect(others).toEqual([]);
    expect(stored[2]).toMatchObject({ documents: [{ id: document!.id, sent: { pages: "1" } }] });
    const asked = findAsked(text);
    expect(asked).toHaveLength(1);
    expect(asked[0]).toContain(`under the ${tab} linden`);
    expect(asked[0]).toContain("data:image/");
  },
);

test("a message waits while the server refuses its file, and is sent when that is discarded", async () => {
  await using phone = new Phone();
  await openChat("/c/refused", phone);
  const bytes = Buffer.from([0, 1, 2, 3, 0, 255]);
  await sendFiles(phone, "Can you read it?", [{ name: "broken.pdf", mimeType: "application/pdf", buffer: bytes }]);
  await phone.context.setOffline(false);
  const refused = phone.page.locator(".unsent").filter({ hasText: "The server refused this" });
  await refused.getByText("broken.pdf", { exact: true }).waitFor();
  await expect.poll(() => readMessages("refused")).toHaveLength(2);
  await refused.getByRole("button", { name: "Discard" }).click();
  await expect.poll(async () => (await readReplied("refused"))[2]!.content).toBe("Can you read it?");
  await expect.poll(() => findAsked("Can you read it?")).toHaveLength(1);
});

test("two tabs send what waits once", async () => {
  await using phone = new Phone();
  await openChat("/c/tabs", phone);
  const first = phone.page;
  await phone.openTab("/new");
  await phone.page.getByLabel("Message", { exact: true }).waitFor();
  await phone.context.setOffline(true);
  await sendMessage(first, "Which tab?");
  await first.getByText("Not sent yet").first().waitFor();
  await phone.page.getByText("1 change isn’t sent yet").waitFor();
  await phone.context.setOffline(false);
  const stored = await readReplied("tabs");
  expect(stored[2]!.content).toBe("Which tab?");
  await expect.poll(() => findAsked("Which tab?")).toHaveLength(1);
});

test("the service worker sends what waits, without a page", async () => {
  await using phone = new Phone();
  await openChat("/c/worker", phone);
  await phone.page.waitForFunction(() => navigator.serviceWorker.controller !== null);
  await phone.context.setOffline(true);
  await sendMessage(phone.page, "Who wakes you?");
  await phone.page.getByText("Not sent yet").first().waitFor();
  await phone.page.goto("about:blank");
  await phone.context.setOffline(false);
  const origin = `http://localhost:${port}`;
  await phone.page.goto(`${origin}/api/health`);
  const session = await phone.context.newCDPSession(phone.page);
  const registered = new Promise<string>((resolve) =>
    session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      const own = registrations.find(({ scopeURL }) => scopeURL.startsWith(origin));
      if (own) resolve(own.registrationId);
    })
  );
  await session.send("ServiceWorker.enable");
  const registrationId = await registered;
  await session.send("ServiceWorker.dispatchSyncEvent", {
    origin,
    registrationId,
    tag: "parlor.outbox",
    lastChance: false,
  });
  await expect.poll(async () => (await readReplied("worker"))[2]!.content).toBe("Who wakes you?");
  await expect.poll(() => findAsked("Who wakes you?")).toHaveLength(1);
});

test("a reply that was asked for anew without network is written once, after a killed tab", async () => {
  await using phone = new Phone();
  await openChat("/c/again", phone);
  await phone.context.setOffline(true);
  const asked = llm.chats.length;
  await phone.page.getByRole("button", { name: "Regenerate", exact: true }).click();
  await phone.page.getByText("Not sent yet").first().waitFor();
  await phone.page.close();
  await phone.context.setOffline(false);
  await phone.openTab("/new");
  const read = () => server.json<StoredConversation>("GET", "/api/conversations/again?variants=1");
  const isDone = ({ messages }: StoredConversation) =>
    messages[1]!.content === "Hello" && messages[1]!.status === "complete";
  const { messages } = await eventually(read, isDone);
  expect(messages).toHaveLength(2);
  expect(messages[1]!.variants).toHaveLength(2);
  await expect.poll(() => llm.chats.length - asked).toBe(1);
});

test("a decision about a tool that was made without network counts once, and the last one of several", async () => {
  await using searxng = openFakeSearxng();
  await using phone = new Phone();
  await server.json("PUT", "/api/tools/web", { search_url: searxng.origin });
  llm.switches.manual = "on";
  try {
    await openChat("/c/decided", phone);
    await sendMessage(phone.page, "When was the gate built?");
    const first = await llm.nextCall();
    await first.callTools({ id: "call_1", name: "web_search", arguments: '{"query":"gate"}' });
    const card = phone.page.locator(".tool-call");
    await card.getByRole("button", { name: "Allow once" }).waitFor();
    await phone.context.setOffline(true);
    await card.getByRole("button", { name: "Deny" }).click();
    const waiting = phone.page.locator(".unsent").filter({ hasText: "A decision about a tool" });
    await waiting.getByText("Not sent yet").waitFor();
    await card.getByRole("button", { name: "Allow once" }).click();
    await eventually(() => card.getByRole("button", { name: "Allow once" }).isEnabled(), Boolean);
    await expect.poll(() => waiting.count()).toBe(1);
    await phone.page.close();
    await phone.context.setOffline(false);
    await phone.openTab("/new");
    const second = await llm.nextCall();
    await second.emit("In May.");
    await second.finish();
    const stored = await eventually(() => readMessages("decided"), (all) => all.at(-1)!.status === "complete");
    expect(stored.at(-1)!.content).toBe("In May.");
    await expect.poll(() => searxng.queries.map(({ q }) => q)).toEqual(["gate"]);
  } finally {
    llm.switches.manual = "off";
    await server.json("PUT", "/api/tools/web", { search: false, read_page: false });
  }
});

test("an edit that meets one of another device is shown beside it, and the user chooses", async () => {
  await using phone = new Phone();
  await openChat("/c/clash", phone);
  const { page } = phone;
  const message = page.locator("[data-message-id=m1]");
  await chooseMessageAction(message, "Edit");
  const field = page.getByRole("textbox", { name: "Message text" });
  await field.waitFor(); // loaded on demand
  await phone.context.setOffline(true);
  await field.fill("Older than the mill.");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const waiting = page.locator(".unsent");
  await waiting.getByText("Not sent yet").waitFor();
  const path = "/api/conversations/clash";
  await server.json("PATCH", `${path}/messages/m1`, { content: "Built in May." });
  await phone.context.setOffline(false);
  await waiting.getByText("Changed on another device").waitFor();
  await waiting.getByText("Older than the mill.").waitFor();
  await waiting.getByText("Built in May.").waitFor();
  await waiting.getByRole("button", { name: "Keep this one" }).click();
  await waiting.waitFor({ state: "detached" });
  const { messages } = await server.json<StoredConversation>("GET", path);
  expect(messages[1]!.content).toBe("Older than the mill.");
});

test("a change of what another device deleted is refused in words, and made once that is restored", async () => {
  const path = "/api/memories/tea";
  await server.json("PUT", path, { text: "Likes tea." });
  await using phone = new Phone();
  await phone.open("/settings/memory");
  const { page } = phone;
  await page.getByText("Likes tea.").waitFor();
  await phone.context.setOffline(true);
  await page.getByRole("button", { name: "Actions for “Likes tea.”" }).click();
  await page.getByRole("menuitem", { name: "Always send first" }).click();
  const banner = page.locator('a[href="/activity"]').first();
  await banner.waitFor();
  await server.json("DELETE", path);
  const [item] = await server.json<{ id: string }[]>("GET", "/api/trash");
  await phone.context.setOffline(false);
  await banner.click();
  const waiting = page.locator(".unsent");
  await waiting.getByText("It’s in the trash.").waitFor();
  await server.json("POST", `/api/trash/${item!.id}/restore`);
  await waiting.getByRole("button", { name: "Send now" }).click();
  await waiting.waitFor({ state: "detached" });
  expect(await server.json("GET", path)).toMatchObject({ pinned: true });
});

test("a browser without IndexedDB says that the page has to stay open, and sends the message once", async () => {
  await using phone = new Phone();
  await openChat("/c/private", phone, () => Object.defineProperty(globalThis, "indexedDB", { value: undefined }));
  await phone.context.setOffline(true);
  await sendMessage(phone.page, "Whose keys?");
  await phone.page.getByText("Leave this page open").waitFor();
  await phone.context.setOffline(false);
  const read = async () => (await server.json<StoredConversation>("GET", "/api/conversations/private")).messages;
  const stored = await eventually(read, (all) => all.length === 4 && all[3]!.status === "complete");
  expect(stored.filter(({ content }) => content === "Whose keys?")).toHaveLength(1);
});

test("what waits is on the disk without its text", async () => {
  await using phone = new Phone();
  await openChat("/c/sealed", phone);
  await phone.context.setOffline(true);
  await sendMessage(phone.page, "Under the seventh stone");
  await phone.page.getByText("Not sent yet").first().waitFor();
  const stored = await phone.page.evaluate(async () => {
    const database = await new Promise<IDBDatabase>((resolve) => {
      const request = indexedDB.open("parlor");
      request.onsuccess = () => resolve(request.result);
    });
    const read = (name: string) =>
      new Promise<unknown[]>((resolve) => {
        const request = database.transaction(name).objectStore(name).getAll();
        request.onsuccess = () => resolve(request.result);
      });
    const [rows, [key]] = await Promise.all([read("outbox"), read("keys")]) as [
      { sealed: { data: ArrayBuffer } }[],
      [CryptoKey],
    ];
    database.close();
    const texts = rows.map(({ sealed }) => new TextDecoder().decode(sealed.data));
    return { count: rows.length, text: texts.join() + JSON.stringify(rows), isExtractable: key.extractable };
  });
  expect(stored).toMatchObject({ count: 1, isExtractable: false });
  expect(stored.text).not.toContain("seventh");
});
