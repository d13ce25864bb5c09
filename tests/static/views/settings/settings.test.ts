import { afterAll, beforeAll, expect, test } from "vitest";
import type { Connection } from "../../../../static/src/api/types.ts";
import { demoConnection } from "../../../helpers/fakes/api/fake_api.ts";
import { findAxeProblems } from "../../../helpers/browser/browser.ts";
import { eventually, openUiBench, PHONE, type UiBench } from "../../../helpers/browser/ui_page.ts";

/** Results of the search, in order. */
const ADDRESSES = [
  "/settings/presets/default#temperature",
  "/settings/general#theme",
  "/settings/general#reading",
  "/settings/privacy#passkeys",
  "/settings/connections",
  "/settings/privacy#tokens",
  "/settings/general#shortcuts",
  "/settings/general#notify",
  "/settings/presets/default#prompts",
  "/settings/personas",
];

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

test("finds a setting by its words, and opens its control", async () => {
  await using ui = await bench.open("/settings/about");
  const { page } = ui;
  await page.getByLabel("Search settings").fill("accent");
  await page.getByRole("link", { name: "Accent color" }).click();
  await page.waitForURL(`${ui.api.origin}/settings/general#hue`);
  const slider = page.getByLabel("Accent color");
  await slider.waitFor();
  expect(await eventually(() => slider.evaluate((input) => input === document.activeElement), Boolean)).toBe(true);
  await expect.poll(() => page.getByLabel("Search settings").inputValue()).toBe("");
  await page.getByLabel("Search settings").fill("xyzzy");
  await page.getByText("No settings match.").waitFor();
});

test("finds settings by everyday words in three languages", async () => {
  await using ui = await bench.open("/settings/about");
  const { page } = ui;
  const words: Record<string, [language: string, search: string, word: string, address: string][]> = {
    en: [
      "temperature",
      "dark",
      "font",
      "password",
      "ollama",
      "token",
      "shortcut",
      "notification",
      "system prompt",
      "avatar",
    ]
      .map((word, index) => ["en", "Search settings", word, ADDRESSES[index]!]),
    de: [
      "Temperatur",
      "dunkel",
      "Schrift",
      "Passwort",
      "ollama",
      "Token",
      "Tastenkürzel",
      "Benachrichtigung",
      "Systemprompt",
      "Avatar",
    ]
      .map((word, index) => ["de", "Einstellungen durchsuchen", word, ADDRESSES[index]!]),
    ja: [
      "温度",
      "ダーク",
      "フォント",
      "パスワード",
      "ollama",
      "トークン",
      "ショートカット",
      "通知",
      "システムプロンプト",
      "アバター",
    ]
      .map((word, index) => ["ja", "設定を検索", word, ADDRESSES[index]!]),
  };
  for (const [language, searches] of Object.entries(words)) {
    await page.evaluate((language) =>
      fetch("/api/settings", {
        method: "PATCH",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ language }),
      }), language);
    await page.reload();
    for (const [, search, word, address] of searches) {
      await page.getByLabel(search).fill(word);
      const found = page.locator(`.settings-body a[href="${address}"]`);
      await found.first().waitFor();
    }
  }
  await expect.poll(() => page.getAttribute("html", "lang")).toBe("ja");
});

test("on a phone, shows the sections as a list with a way back", async () => {
  await using ui = await bench.open("/settings", PHONE);
  const { page } = ui;
  const nav = page.getByRole("navigation", { name: "Sections" });
  await nav.getByRole("link", { name: "Voice" }).waitFor();
  await expect.poll(() => page.locator(".settings-body").count()).toBe(0);
  const heights = await nav.getByRole("link").evaluateAll((links) => links.map((link) => link.clientHeight));
  expect(Math.min(...heights)).toBeGreaterThanOrEqual(44);
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await nav.getByRole("link", { name: "You", exact: true }).click();
  await page.getByLabel("Your name").waitFor();
  await expect.poll(() => nav.count()).toBe(0);
  await page.getByRole("link", { name: "All settings" }).click();
  await page.getByLabel("Search settings").fill("dark");
  await page.getByRole("link", { name: "Theme" }).click();
  await page.waitForURL(`${ui.api.origin}/settings/general#theme`);
});

test("each page has one name and a line of its state, and headings of groups are no rows", async () => {
  await using ui = await bench.open("/settings", {
    ...PHONE,
    prepare(api) {
      const call = { at: new Date().toISOString(), ok: false, error: { kind: "refused", message: "No answer" } };
      const { id: _, active: __, ...demo } = demoConnection();
      api.connections = [
        demoConnection(),
        { ...demo, id: "away", name: "Away", kind: "openai", active: false, last_call: call } as Connection,
      ];
    },
  });
  const { page, api } = ui;
  const nav = page.getByRole("navigation", { name: "Sections" });
  const rows = nav.getByRole("link");
  const stateOf = (name: string) => {
    const row = nav.getByRole("link", { name, exact: true });
    return row.evaluate((row) => document.getElementById(row.getAttribute("aria-describedby")!)!.textContent);
  };
  await expect.poll(() => stateOf("Connections")).toBe("2 connections, 1 failing");
  await expect.poll(() => stateOf("Lorebooks")).toBe("None yet");
  await expect.poll(() => stateOf("Trash")).toBe("Empty");
  await expect.poll(() => stateOf("Access")).toBe("This machine needs no sign-in");
  await expect.poll(() => stateOf("About")).toBe("Version 0.1.0");
  await page.getByRole("group", { name: "Chat and models" }).waitFor();
  await expect.poll(() => nav.getByText("Chat and models").evaluate((title) => title.closest("a"))).toBe(null);
  const [heading, row] = await Promise.all([
    nav.getByText("Chat and models").boundingBox(),
    rows.first().boundingBox(),
  ]);
  expect(heading!.height).toBeLessThan(row!.height / 1.5);

  const names = await rows.evaluateAll((rows) =>
    rows.map((row) => [row.getAttribute("href")!, row.textContent] as const)
  );
  expect(new Set(names.map(([, name]) => name)).size).toBe(names.length);
  for (const [address, name] of names) {
    await page.goto(api.origin + address);
    await page.getByRole("heading", { name, exact: true, level: address === "/characters" ? 1 : 2 }).waitFor();
    await expect.poll(() => page.title()).toBe(`${name} · Parlor`);
  }
});

test("the open page is in view in the list of pages, also in a low window", async () => {
  await using ui = await bench.open("/settings/about", { viewport: { width: 1280, height: 600 } });
  const isInView = () =>
    ui.page.getByRole("navigation", { name: "Sections" }).locator("[aria-current]").evaluate((row) => {
      const { x, y, width, height } = row.getBoundingClientRect();
      return document.elementFromPoint(x + width / 2, y + height / 2)?.closest("a") === row;
    });
  await expect.poll(isInView).toBe(true);
});

test("notifications are on one page, those of an open and of a closed Parlor", async () => {
  await using ui = await bench.open("/settings/general");
  const { page, api } = ui;
  await page.getByRole("heading", { name: "Notifications", exact: true }).waitFor();
  await page.getByRole("switch", { name: "Notify me when a reply finishes" }).waitFor();
  await page.getByRole("heading", { name: "When Parlor is closed" }).waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await page.goto(`${api.origin}/settings/privacy`);
  await page.getByRole("heading", { name: "Tailnet" }).waitFor();
  await expect.poll(() => page.getByRole("heading", { name: /Notif|closed/ }).count()).toBe(0);
});

test("every found setting has a control at its URL", async () => {
  await using ui = await bench.open("/settings/general");
  const { page } = ui;
  await page.getByLabel("Search settings").fill("you");
  const found = page.getByRole("list", { name: "Matching settings" }).getByRole("link");
  const findAnchors = async () => {
    const addresses = await found.evaluateAll((links) => links.map((link) => link.getAttribute("href")!));
    return addresses.filter((address) => address.startsWith("/settings/general#")).map((address) =>
      address.split("#")[1]!
    );
  };
  const anchors = await eventually(findAnchors, ({ length }) => length > 5);
  await page.getByLabel("Search settings").fill("");
  for (const anchor of anchors) {
    await expect.poll(() => page.locator(`#${anchor}`).count(), { message: anchor }).toBe(1);
  }
});

test("saves settings one by one, and reverts a refused one with a toast", async () => {
  await using ui = await bench.open("/settings/general");
  const { page, api } = ui;
  await page.getByLabel("Your name").fill(" Ada ");
  await page.keyboard.press("Tab");
  await page.getByRole("switch", { name: "Press Enter to send" }).click();
  await page.getByRole("switch", { name: "Name chats automatically" }).click();
  await page.getByRole("switch", { name: "Keep line breaks" }).click();
  await page.getByLabel("Continue replies cut off by a restart").selectOption("Never");
  await eventually(() => api.settings, (settings) => settings.continue_after_restart === "never");
  await expect.poll(() => api.seen("PATCH", "/api/settings").map(({ body }) => body)).toEqual([
    { display_name: "Ada" },
    { send_on_enter: false },
    { auto_title: false },
    { line_breaks: "markdown" },
    { continue_after_restart: "never" },
  ]);
  api.refuse("PATCH /api/settings", { status: 507, code: "storage_full", message: "The disk is full" });
  const theme = page.getByLabel("Theme");
  await theme.selectOption("dark");
  await page.getByText("The disk is full").waitFor();
  await expect.poll(() => theme.inputValue()).toBe("system");
});

/** Fakes notifications, which headless browsers don't show. */
const FAKE_NOTIFICATION = `
  globalThis.shown = [];
  globalThis.asked = 0;
  globalThis.Notification = class {
    static permission = "default";
    static requestPermission() { asked++; return Promise.resolve(Notification.permission = "ANSWER"); }
    constructor(title, options) { shown.push({ title, ...options }); globalThis.last = this; }
    close() {}
  };
  Object.defineProperty(document, "visibilityState", { get: () => globalThis.isHidden ? "hidden" : "visible" });
`;

test("notifies of a reply that ended in the background, after one permission request", async () => {
  await using ui = await bench.open("/settings/general", {
    prepare: (api) => api.addConversation("c1", "A story", [{ role: "user", content: "Go" }]),
  });
  const { page, api } = ui;
  await page.addInitScript(FAKE_NOTIFICATION.replace("ANSWER", "granted"));
  await page.reload();
  const control = page.getByRole("switch", { name: "Notify me when a reply finishes" });
  await control.waitFor();
  await expect.poll(() => control.isChecked()).toBe(false);
  const shown = () => page.evaluate(() => Reflect.get(globalThis, "shown"));
  await page.getByRole("navigation").getByRole("link", { name: "A story" }).waitFor(); // its title is in the notification
  const running = page.getByRole("link", { name: /^Activity\s*, 1 running$/ });
  const runReply = async (id: string) => {
    const reply = api.startReply("c1", id);
    await running.waitFor();
    reply.end("complete");
    await running.waitFor({ state: "detached" });
  };
  await page.evaluate(() => Reflect.set(globalThis, "isHidden", true));
  // The page may know of the first one only because its stream of events begins. It has read all of it with the second.
  for (const id of ["r0", "r1"]) await runReply(id);
  await expect.poll(() => page.evaluate(() => Reflect.get(globalThis, "asked"))).toBe(0);
  await expect.poll(() => shown()).toEqual([]);
  await control.click();
  await expect.poll(() => control.isChecked()).toBe(true);
  await runReply("r2");
  await eventually(shown, (all) => all.length > 0);
  await expect.poll(() => shown()).toEqual([{ title: "A story", body: "Reply finished", tag: "c1" }]);
  await page.evaluate(() => Reflect.get(globalThis, "last").onclick());
  await page.waitForURL(`${api.origin}/c/c1`);
  await page.evaluate(() => Reflect.set(globalThis, "isHidden", false));
  await runReply("r3");
  await expect.poll(() => page.evaluate(() => Reflect.get(globalThis, "asked"))).toBe(1);
  await expect.poll(() => shown()).toHaveLength(1);
});

test("a denied permission leaves the switch off and says where to change that", async () => {
  await using ui = await bench.open("/new");
  await ui.page.addInitScript(FAKE_NOTIFICATION.replace("ANSWER", "denied"));
  await ui.page.goto(`${ui.api.origin}/settings/general`);
  await ui.page.getByRole("switch", { name: "Notify me when a reply finishes" }).click();
  await ui.page.getByText("Your browser blocked notifications.").waitFor();
  await expect.poll(() => ui.page.getByRole("switch", { name: "Notify me when a reply finishes" }).isChecked()).toBe(
    false,
  );
});
