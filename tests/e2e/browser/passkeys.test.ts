/** @slow Each test pairs a device with a server of its own. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, findAxeProblemsInBothSchemes } from "../../helpers/browser/browser.ts";
import { startCli } from "../../helpers/processes/cli_child.ts";
import { type Device, HOSTS, openDevice, openPasskeyBrowser } from "../../helpers/browser/passkey_browser.ts";
import { credentialRecord } from "../../helpers/app/enrolled.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { makeCertificate } from "../../helpers/files/tls_certificate.ts";
import { PHONE, WIDTHS } from "../../helpers/browser/ui_page.ts";
import { PUSH_KEYS } from "../../helpers/files/push_keys.ts";

let browser: Browser;
let tls: { cert: string; key: string };
beforeAll(async () => {
  browser = await openPasskeyBrowser();
  tls = await makeCertificate();
});
afterAll(() => browser.close());

/** A server reached over HTTPS by the names in HOSTS. */
function openServer(config: NonNullable<Parameters<typeof openTestApp>[0]>["config"] = {}): Promise<TestApp> {
  return openTestApp({ tls, config: { allowedHosts: HOSTS, setupCompleted: true, ...config } });
}

const at = (app: TestApp, host: string, path = "/") => `https://${host}:${app.port}${path}`;

async function expectClean(...devices: Device[]): Promise<void> {
  for (const { foreign, errors, context } of devices) {
    expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
    await context.close();
  }
}

async function pair({ page }: Device): Promise<void> {
  await page.getByRole("heading", { name: "Protect Parlor with a passkey" }).waitFor();
  await page.getByRole("button", { name: "Create passkey" }).click();
  await isIn(page);
}

async function isIn(page: Device["page"]): Promise<void> {
  await page.getByLabel("Message", { exact: true }).waitFor();
}

/** Signs out in the settings, and waits until the page has been loaded again: the sign-in may be shown before that. */
async function signOut({ page }: Device): Promise<void> {
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(({ pathname }) => pathname === "/");
}

async function signIn({ page }: Device): Promise<void> {
  await page.getByRole("heading", { name: "Sign in to Parlor" }).waitFor();
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await isIn(page);
}

/** Requests a protected resource with a token, from a page of the same origin. */
function statusWith({ page }: Device, token: string): Promise<number> {
  return page.evaluate(async (token) => {
    const answer = await fetch("/api/settings", { headers: { authorization: `Bearer ${token}` } });
    return answer.status;
  }, token);
}

/** Creates a token in the settings and returns its text. */
async function mint({ page }: Device, label: string): Promise<string> {
  await page.getByLabel("What’s this token for?").fill(label);
  await page.getByRole("button", { name: "Create token" }).click();
  const token = await page.getByRole("dialog").locator("code").innerText();
  await page.getByRole("dialog").getByRole("img", { name: `Token “${label}”` }).waitFor();
  await page.getByRole("button", { name: "Done" }).click();
  return token;
}

/** Revokes the item of this name and confirms. */
async function revoke({ page }: Device, name: string): Promise<void> {
  await page.getByRole("button", { name: `Revoke ${name}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
}

test("over HTTPS: pair, gated for everyone else, sign out, sign in, a token, revoked: 401", async () => {
  await using app = await openServer();
  const owner = await openDevice(browser, at(app, "chat.example"));
  await pair(owner);
  expect(await owner.countPasskeys()).toBe(1);
  const cookie = (await owner.context.cookies()).find(({ name }) => name.endsWith("app_sess"));
  expect(cookie).toMatchObject({ name: "__Host-app_sess", secure: true, httpOnly: true, sameSite: "Lax" });

  const stranger = await openDevice(browser, at(app, "chat.example"));
  await stranger.page.getByRole("heading", { name: "Sign in to Parlor" }).waitFor();
  await stranger.page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await stranger.page.getByText("The passkey request was canceled").waitFor();

  await owner.page.goto(at(app, "chat.example", "/settings/privacy"));
  await owner.page.getByText("Signed in with a passkey.").waitFor();
  await subscribeToPush(owner);
  const listSubscriptions = async () => (await (await app.services.push()).list()).map(({ id }) => id);
  await expect.poll(() => listSubscriptions()).toEqual(["owner"]);
  await signOut(owner);
  await signIn(owner);
  await expect.poll(() => listSubscriptions()).toEqual([]);

  await owner.page.goto(at(app, "chat.example", "/settings/privacy"));
  const token = await mint(owner, "curl");
  expect(await statusWith(stranger, token)).toBe(200);
  await revoke(owner, "curl");
  await owner.page.getByText("No tokens yet").waitFor();
  expect(await statusWith(stranger, token)).toBe(401);
  await expectClean(owner, stranger);
});

test("signing out says that something isn't sent yet, and deletes it", async () => {
  await using app = await openTestApp({ config: { loopbackAuthBypass: false, setupCompleted: true } });
  const owner = await openDevice(browser, app.url);
  await pair(owner);
  const { page } = owner;
  await page.evaluate(async () => {
    const messages = [{ id: "m0", role: "user", content: "How old?" }];
    const headers = { "content-type": "application/json" };
    await fetch("/api/conversations/c1", { method: "PUT", headers, body: JSON.stringify({ messages }) });
  });
  await page.route("**/api/conversations/c1/draft", (route) => route.abort());
  await page.goto(`${app.url}/c/c1`);
  await page.getByLabel("Message", { exact: true }).fill("Older than the mill");
  const readStore = () =>
    page.evaluate(async () => {
      const database = await new Promise<IDBDatabase>((resolve) => {
        const request = indexedDB.open("parlor");
        request.onsuccess = () => resolve(request.result);
      });
      const count = (name: string) =>
        new Promise<number>((resolve) => {
          const request = database.transaction(name).objectStore(name).count();
          request.onsuccess = () => resolve(request.result);
        });
      const counts = await Promise.all([count("outbox"), count("keys")]);
      database.close();
      return counts;
    });
  await expect.poll(readStore).toEqual([1, 1]);
  // The button is pressed before the page knows what isn't sent: the outbox opens with the first click.
  await page.addInitScript(() => {
    if (location.pathname !== "/settings/privacy") return;
    const clicked = new Promise((resolve) => addEventListener("click", resolve, { capture: true, once: true }));
    const { open } = IDBFactory.prototype;
    IDBFactory.prototype.open = function (name, version) {
      const request = open.call(this, name, version);
      const set = (act: (event: Event) => void) =>
        request.addEventListener("success", (event) => void clicked.then(() => act.call(request, event)));
      if (name === "parlor") Object.defineProperty(request, "onsuccess", { set });
      return request;
    };
    const { setTimeout } = globalThis;
    // Parts of the browser have 5 s to answer: PART_TIMEOUT_MS.
    Object.assign(globalThis, { setTimeout: (act: () => void, ms?: number) => ms === 5000 ? 0 : setTimeout(act, ms) });
  });
  await page.goto(`${app.url}/settings/privacy`);
  await page.getByRole("button", { name: "Sign out" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("1 change isn’t sent yet. Signing out deletes it.").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  expect(await readStore()).toEqual([1, 1]);
  await page.getByRole("button", { name: "Sign out" }).click();
  await dialog.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(({ pathname }) => pathname === "/");
  await page.getByRole("heading", { name: "Sign in to Parlor" }).waitFor();
  expect(await readStore()).toEqual([0, 0]);
});

test("on localhost over HTTP the same works, with the cookie of plain HTTP", async () => {
  await using app = await openTestApp({ config: { loopbackAuthBypass: false, setupCompleted: true } });
  const owner = await openDevice(browser, app.url);
  await pair(owner);
  expect((await owner.context.cookies()).map(({ name }) => name)).toContain("app_sess");
  await owner.page.goto(`${app.url}/settings/privacy`);
  // Nothing else can be clicked until the page has been loaded again.
  const held = Promise.withResolvers<void>();
  await owner.page.route("**/api/auth/logout", async (route) => {
    await held.promise;
    await route.continue();
  });
  const leaving = signOut(owner);
  await expect.poll(() => owner.page.evaluate(() => document.body.inert)).toBe(true);
  held.resolve();
  await leaving;
  await signIn(owner);
  await expectClean(owner);
});

test("declining the passkey ends the offer, and it stays in the settings", async () => {
  await using app = await openServer();
  const owner = await openDevice(browser, at(app, "chat.example"));
  await owner.page.getByRole("button", { name: "Not now" }).click();
  await isIn(owner.page);
  await owner.page.reload();
  await isIn(owner.page);
  await owner.page.goto(at(app, "chat.example", "/settings/privacy"));
  await owner.page.getByText("anyone who can reach it can use Parlor").waitFor();
  await owner.page.getByRole("link", { name: "Create passkey" }).click();
  await pair(owner);
  await expectClean(owner);
});

test("a second device signs in with an invite, and is signed out immediately when revoked", async () => {
  await using app = await openServer();
  const owner = await openDevice(browser, at(app, "chat.example"));
  await pair(owner);
  await owner.page.goto(at(app, "chat.example", "/settings/privacy"));
  await owner.page.getByRole("button", { name: "Add another device" }).click();
  await owner.page.getByRole("img", { name: "QR code with the address and code" }).waitFor();
  const code = await owner.page.getByRole("dialog").locator("code").innerText();
  await owner.page.keyboard.press("Escape");

  const phone = await openDevice(browser, at(app, "chat.example"), PHONE);
  await phone.page.getByRole("link", { name: "I have a code" }).click();
  await phone.page.getByRole("heading", { name: "Add this device" }).waitFor();
  await phone.page.getByRole("button", { name: "Create passkey" }).click();
  await phone.page.getByText("Enter the code first").waitFor();
  await phone.page.getByLabel("Code").fill("0000-0000");
  await phone.page.getByRole("button", { name: "Create passkey" }).click();
  await phone.page.getByText("The code is invalid").waitFor();
  // The link of the QR code: the code is filled in and removed from the address bar.
  await phone.page.goto("about:blank");
  await phone.page.goto(at(app, "chat.example", `/pair#code=${code}`));
  await phone.page.getByLabel("Device name").fill("Phone");
  await expect.poll(() => phone.page.getByLabel("Code").inputValue()).toBe(code);
  await expect.poll(() => new URL(phone.page.url()).hash).toBe("");
  await phone.page.getByRole("button", { name: "Create passkey" }).click();
  await isIn(phone.page);

  // The list on the other device is updated.
  await owner.page.getByText("Phone", { exact: true }).waitFor();
  await revoke(owner, "Phone");
  await phone.page.getByRole("heading", { name: "Sign in to Parlor" }).waitFor();
  await phone.page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await phone.page.getByText("Can't sign in").waitFor();
  await expectClean(owner, phone);
});

test("one passkey is valid for all names of a tailnet, and for no other", async () => {
  await using app = await openServer();
  const laptop = await openDevice(browser, at(app, "desk.fox-owl.ts.net"));
  await pair(laptop);
  await laptop.page.goto(at(app, "phone.fox-owl.ts.net"));
  await signIn(laptop);
  await laptop.page.goto(at(app, "phone.fox-owl.ts.net", "/settings/privacy"));
  await laptop.page.getByText("For fox-owl.ts.net").waitFor();
  await laptop.page.goto(at(app, "chat.example"));
  await laptop.page.getByRole("heading", { name: "Protect Parlor with a passkey" }).waitFor();
  await laptop.context.close();
});

test("a rejected passkey leaves the page unchanged, with the reason", async () => {
  await using app = await openServer();
  const owner = await openDevice(browser, at(app, "chat.example"));
  await owner.setUserVerified(false);
  await owner.page.getByRole("button", { name: "Create passkey" }).click();
  await owner.page.getByText("The passkey request was canceled").waitFor();
  await owner.setUserVerified(true);
  await pair(owner);
  await owner.page.goto(at(app, "chat.example", "/settings/privacy"));
  await owner.page.getByRole("button", { name: "Add a passkey on this device" }).click();
  await owner.page.getByText("This device already has a passkey").waitFor();
  await revoke(
    owner,
    await owner.page.locator(".list-title").first().innerText().then((name) => name.split(" Current session")[0]!),
  );
  await owner.page.getByRole("heading", { name: "Sign in to Parlor" }).waitFor();
  await expectClean(owner);
});

test('under pairing = "code" the first screen asks for the code on the terminal', async () => {
  const shown: string[] = [];
  await using app = await openTestApp({
    tls,
    config: { allowedHosts: HOSTS, pairing: "code", setupCompleted: true },
    announce: (text) => shown.push(text),
  });
  const owner = await openDevice(browser, at(app, "chat.example"));
  await owner.page.getByRole("heading", { name: "Add this device" }).waitFor();
  await owner.page.getByLabel("Code").fill(shown[0]!.slice(-9).toLowerCase());
  await owner.page.getByRole("button", { name: "Create passkey" }).click();
  await isIn(owner.page);
  await expectClean(owner);
});

test("if passkeys aren't possible, the page says why and accepts a token, which the device stores", async () => {
  await using app = await openTestApp({ config: { loopbackAuthBypass: false, setupCompleted: true } });
  const owner = await openDevice(browser, app.url);
  await pair(owner);
  await owner.page.goto(`${app.url}/settings/privacy`);
  const token = await mint(owner, "Tablet");
  const address = `http://127.0.0.1:${app.port}`;
  const tablet = await openDevice(browser, address);
  await tablet.page.getByText("not for IP addresses").waitFor();
  await tablet.page.getByText("can read the token").waitFor();
  await tablet.page.getByLabel("Token").fill("wrong");
  await tablet.page.getByRole("button", { name: "Sign in with a token" }).click();
  await tablet.page.getByText("Invalid token").waitFor();
  await tablet.page.getByLabel("Token").fill(token);
  await tablet.page.getByRole("button", { name: "Sign in with a token" }).click();
  await isIn(tablet.page);
  await tablet.page.goto(`${address}/settings/privacy`);
  await tablet.page.getByText("Signed in with a token.").waitFor();
  await tablet.page.getByText("To create tokens, sign in with a passkey first").waitFor();
  await signOut(tablet);
  await tablet.page.getByText("not for IP addresses").waitFor();
  await expectClean(owner, tablet);
});

/** Stores a push subscription as `owner`, as the settings do. */
async function subscribeToPush({ page }: Device): Promise<void> {
  await page.evaluate(async (keys) => {
    await fetch("/api/push/subscriptions/owner", {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ endpoint: "https://push.example.org/x", keys, label: "Owner" }),
    });
    localStorage.setItem("parlor.push", "owner");
  }, PUSH_KEYS);
}

/** Requires sign-in for another RP ID, as if it had a passkey. */
async function enrolAlso(app: TestApp, rpId: string): Promise<void> {
  await app.services.auth.credentials.add(credentialRecord("elsewhere", rpId), true);
}

test("the command line: signed in and allowed in the browser, by a code, and denied", async () => {
  const home = await Deno.makeTempDir({ prefix: "parlor-home-" });
  try {
    await using app = await openTestApp({ config: { loopbackAuthBypass: false, setupCompleted: true } });
    const owner = await openDevice(browser, "about:blank");
    const login = async () => {
      const command = startCli(["auth", "login", "--base-url", app.url, "--no-browser"], home);
      const [, url] = await command.told(/^ {2}(http:\S+)$/m);
      await owner.page.goto("about:blank");
      await owner.page.goto(url!);
      return command;
    };
    const allowed = await login();
    await owner.page.getByRole("button", { name: "Create passkey" }).click();
    await owner.page.getByText("only if you just ran parlor auth login").waitFor();
    await owner.page.getByRole("button", { name: "Allow" }).click();
    await owner.page.getByRole("heading", { name: "Return to the terminal" }).waitFor();
    expect((await allowed.ended).code).toBe(0);

    const byCode = await login();
    await owner.page.getByRole("button", { name: "Show a code for another machine" }).click();
    await byCode.type(await owner.page.locator(".secret code").innerText());
    expect((await byCode.ended).stdout).toContain("Signed in to");

    const denied = await login();
    await owner.page.getByRole("button", { name: "Deny" }).click();
    await owner.page.getByRole("heading", { name: "Not signed in" }).waitFor();
    expect((await denied.ended).stderr).toContain("denied in the browser");
    await owner.page.goto(`${app.url}/cli#port=1`);
    await owner.page.getByText("This link is incomplete").waitFor();
    await owner.context.close();
  } finally {
    await Deno.remove(home, { recursive: true });
  }
});

test.each(WIDTHS)("axe finds nothing on the screens of access, light and dark, %s", async (width, options) => {
  await using app = await openServer();
  const looks = { ...options, reducedMotion: "reduce" } as const;
  const owner = await openDevice(browser, at(app, "chat.example"), looks);
  const look = async (name: string, { page } = owner) => {
    const folder = Deno.env.get("SCREENSHOTS");
    const findProblems = () =>
      findAxeProblemsInBothSchemes(page, async (colorScheme) => {
        if (folder !== undefined) await page.screenshot({ path: `${folder}/${name}-${width}-${colorScheme}.png` });
      });
    await expect.poll(findProblems, { message: name }).toEqual([]);
  };
  await owner.page.getByRole("heading", { name: "Protect Parlor" }).waitFor();
  await look("pair");
  await pair(owner);
  await owner.page.goto(at(app, "chat.example", "/settings/privacy"));
  await owner.page.getByText("No tokens yet").waitFor();
  await owner.page.getByLabel("What’s this token for?").fill("Backup script");
  await owner.page.getByRole("button", { name: "Create token" }).click();
  await owner.page.getByRole("dialog").getByRole("img").waitFor();
  await look("minted");
  await owner.page.getByRole("button", { name: "Done" }).click();
  await owner.page.getByRole("button", { name: "Revoke Backup script" }).waitFor();
  await look("privacy");
  await owner.page.getByRole("button", { name: "Revoke Backup script" }).click();
  await owner.page.getByRole("dialog").waitFor();
  await look("revoke");
  await owner.page.keyboard.press("Escape");
  await owner.page.getByRole("button", { name: "Add another device" }).click();
  await owner.page.getByRole("dialog").getByRole("img").waitFor();
  await look("invite");
  await owner.page.goto(
    at(app, "chat.example", `/cli#port=9&state=${"s".repeat(22)}&challenge=${"c".repeat(43)}&name=desk`),
  );
  await owner.page.getByRole("button", { name: "Allow" }).waitFor();
  await look("cli");
  await owner.page.getByRole("button", { name: "Show a code for another machine" }).click();
  await owner.page.locator(".secret code").waitFor();
  await look("cli-code");

  const stranger = await openDevice(browser, at(app, "chat.example"), looks);
  await stranger.page.getByRole("heading", { name: "Sign in to Parlor" }).waitFor();
  await stranger.page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await stranger.page.getByText("The passkey request was canceled").waitFor();
  await look("sign-in", stranger);
  await stranger.page.getByRole("link", { name: "I have a code" }).click();
  await stranger.page.getByRole("heading", { name: "Add this device" }).waitFor();
  await look("code", stranger);

  await using plain = await openTestApp({ config: { allowedHosts: HOSTS, setupCompleted: true } });
  await enrolAlso(plain, "chat.example");
  const tablet = await openDevice(browser, `http://chat.example:${plain.port}`, looks);
  await tablet.page.getByText("How to use passkeys").click();
  await look("token", tablet);
  // Over plain HTTP, the browser reports a header that it ignores.
  expect([tablet.foreign, tablet.errors.filter((error) => !error.includes("Cross-Origin-Opener-Policy"))]).toEqual([
    [],
    [],
  ]);
  await tablet.context.close();
  await expectClean(owner, stranger);
}, 240_000);

test("everything before sign-in can be done with the keyboard", async () => {
  await using app = await openServer();
  const owner = await openDevice(browser, at(app, "chat.example"));
  const heading = owner.page.getByRole("heading", { name: "Protect Parlor" });
  await expect.poll(() => heading.evaluate((element) => element === document.activeElement)).toBe(true);
  await owner.page.keyboard.press("Tab");
  await expect.poll(() => owner.page.getByLabel("Device name").evaluate((field) => field === document.activeElement))
    .toBe(
      true,
    );
  await owner.page.keyboard.press("Enter");
  await isIn(owner.page);
  await expectClean(owner);
});

test("without the loopback bypass a passkey on localhost closes 127.0.0.1, which leads to localhost", async () => {
  await using app = await openTestApp({ config: { loopbackAuthBypass: false, setupCompleted: true } });
  const owner = await openDevice(browser, app.url);
  await pair(owner);
  const other = await openDevice(browser, `http://127.0.0.1:${app.port}/`);
  await other.page.getByRole("heading", { name: "Sign in to Parlor" }).waitFor();
  const link = other.page.getByRole("link", { name: app.url });
  await expect.poll(() => link.getAttribute("href")).toBe(app.url);
  await expect.poll(() => other.page.evaluate(() => fetch("/api/conversations").then(({ status }) => status))).toBe(
    401,
  );
  await owner.context.close();
  await other.context.close();
});

test("a token for programs is marked in the list and valid only for that API", async () => {
  await using app = await openServer();
  const owner = await openDevice(browser, at(app, "chat.example"));
  await pair(owner);
  const { page } = owner;
  await page.goto(at(app, "chat.example", "/settings/privacy#program-access"));
  const baseUrl = at(app, "chat.example", "/api/v1");
  await expect.poll(() => page.locator("#program-access").innerText()).toBe(baseUrl);
  await page.getByLabel("Program", { exact: true }).selectOption("Aider");
  const example = page.getByRole("region", { name: "Settings for Aider" });
  await expect.poll(() => example.innerText()).toContain(`OPENAI_API_BASE=${baseUrl}\nexport OPENAI_API_KEY=TOKEN`);
  const created = await page.evaluate(async () => {
    const card = { spec: "chara_card_v2", spec_version: "2.0", data: { name: "Fox" } };
    const request = { method: "PUT", headers: { "content-type": "application/json" }, body: JSON.stringify({ card }) };
    return (await fetch("/api/characters/fox", request)).status;
  });
  expect(created).toBeLessThan(300);
  const group = page.getByRole("group", { name: "What the token may use" });
  await group.getByRole("switch", { name: "All characters" }).click();
  await group.getByRole("button", { name: "Add Fox" }).click();
  await group.getByRole("button", { name: "Remove Fox" }).waitFor();
  await group.getByRole("switch", { name: "All connections" }).click();
  await group.getByRole("group", { name: "Only these connections" }).getByRole("switch").first().click();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await page.getByRole("button", { name: "New token for this API" }).click();
  const token = await page.getByRole("dialog").locator("code").innerText();
  await page.getByRole("button", { name: "Done" }).click();
  await expect.poll(() => example.innerText()).toContain(`OPENAI_API_KEY=${token}`);
  await page.getByRole("listitem").filter({ hasText: "Aider" }).getByText(
    /OpenAI-compatible API only · characters: 1 · connections: 1/,
  ).waitFor();
  expect(await statusWith(owner, token)).toBe(403);
  const listed = await page.evaluate(async ({ baseUrl, token }) => {
    const response = await fetch(`${baseUrl}/models`, { headers: { authorization: `Bearer ${token}` } });
    const { data } = await response.json() as { data: { id: string }[] };
    return data.map(({ id }) => id.split("/")[0]);
  }, { baseUrl, token });
  expect(new Set(listed)).toEqual(new Set(["default", "character:fox", "connection:demo"]));
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await expectClean(owner);
});
