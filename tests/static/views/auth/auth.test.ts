/** @slow Every screen is checked at two widths, light and dark. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, findAxeProblemsInBothSchemes } from "../../../helpers/browser/browser.ts";
import type { FakeApi } from "../../../helpers/fakes/api/fake_api.ts";
import { eventually, openUiBench, PHONE, type UiBench, WIDTHS } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const RICH =
  "# Title\n\nText with `code`, a [link](https://a.example) and **more**.\n\n### Deep\n\n```js\nlet x;\n```\n\n" +
  "| a | b |\n|---|---|\n| 1 | 2 |\n\n> quote\n\n1. one\n2. two";

/** Fills every field. */
function fill(api: FakeApi): void {
  api.addConversation("full", "A full chat", [
    { role: "user", content: "Go" },
    { role: "assistant", content: RICH, reasoning: "Hm", model: "m", usage: { completion_tokens: 3 } },
  ]);
  const error = { code: "upstream_error", message: "It went away", request_id: "r" };
  api.addConversation("failed", "A failed chat", [{ role: "user", content: "Go" }, {
    role: "assistant",
    content: "Half",
    status: "failed",
    error,
  }]);
  api.addConversation("cut", "A cut chat", [{ role: "user", content: "Go" }, {
    role: "assistant",
    content: "Half",
    status: "interrupted",
  }]);
  api.addConversation("running", "A running chat", [{ role: "user", content: "Go" }]);
  api.startReply("running", "r1").say("On its way");
  api.addConversation("waiting", "A waiting chat", [{ role: "user", content: "Go" }]);
  api.startReply("waiting", "r2");
  Object.assign(api.addConversation("pinned", "A pinned chat"), { pinned: true });
  Object.assign(api.addConversation("filed", "A filed chat"), { folder: "Work" });
  const now = new Date().toISOString();
  const job = {
    kind: "download",
    title: "A model",
    progress: { done: 1, total: 4, unit: "bytes" },
    created_at: now,
    updated_at: now,
  };
  api.house.jobs = [{ ...job, id: "j1", state: "running" }, {
    ...job,
    id: "j2",
    state: "failed",
    error: { code: "x", message: "No room" },
  }];
  api.house.trash = [{ id: "t1", kind: "conversation", title: "A lost chat", deleted_at: now }];
  api.isSetupCompleted = false;
  api.hint = "bare_proxy";
  api.found = [{ base_url: "http://127.0.0.1:8080/v1", kind: "openai", software: "llama.cpp", models: ["m"] }];
  api.connections.push({
    id: "mine",
    name: "Mine",
    kind: "openai",
    base_url: "https://llm.example/v1",
    has_key: true,
    header_names: [],
    server: {},
    refused: [],
    active: false,
    created_at: "2026-01-02T03:04:05Z",
    updated_at: "2026-01-02T03:04:05Z",
  });
}

const SCREENS: [path: string, readyText: string][] = [
  ["/new", "What’s on your mind?"],
  ["/c/full", "Title"],
  ["/c/failed", "It went away"],
  ["/c/cut", "The server stopped before the reply was complete"],
  ["/c/running", "On its way"],
  ["/c/waiting", "Waiting for the model"],
  ["/c/nowhere", "This chat doesn’t exist"],
  ["/settings/general", "Text size"],
  ["/settings/connections", "In use"],
  ["/settings/connections/mine", "Edit connection"],
  ["/settings/trash", "A lost chat"],
  ["/settings/about", "Version"],
  ["/search", "Search your chats"],
  ["/search?q=go", "results"],
  ["/search?q=nowhere", "No results"],
  ["/activity", "No room"],
  ["/no/such/page", "Page not found"],
];

test.each(WIDTHS)("axe finds nothing on any screen, light and dark, %s", async (_, options) => {
  await using ui = await bench.open("/new", { ...options, reducedMotion: "reduce", prepare: fill });
  for (const [path, readyText] of SCREENS) {
    await ui.page.goto(ui.api.origin + path);
    await ui.page.getByText(readyText).first().waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(ui.page), { message: path }).toEqual([]);
    const measure = () => ui.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await expect.poll(measure, { message: `${path} scrolls sideways` }).toBeLessThanOrEqual(0);
  }
  await ui.page.goto(`${ui.api.origin}/settings/connections`);
  await ui.page.getByRole("button", { name: "Find servers" }).click();
  await ui.page.getByRole("button", { name: "Test: Mine" }).click();
  await ui.page.getByText("The connection works").waitFor();
  await ui.page.getByRole("button", { name: "Delete: Mine" }).click();
  await ui.page.getByRole("button", { name: "Undo" }).waitFor();
  await expect.poll(() => findAxeProblemsInBothSchemes(ui.page)).toEqual([]);
  if (ui.page.viewportSize()!.width < 720) {
    await ui.page.getByRole("button", { name: "Open the chat list" }).click();
    await ui.page.getByRole("link", { name: "A full chat" }).waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(ui.page)).toEqual([]);
  }
  expect(ui.errors).toEqual([]);
  expect(ui.foreign).toEqual([]);
}, 300_000);

test("every control on every screen is at least 44 px high and wide on phones", async () => {
  await using ui = await bench.open("/new", { ...PHONE, reducedMotion: "reduce", prepare: fill });
  for (const [path, readyText] of SCREENS) {
    await ui.page.goto(ui.api.origin + path);
    await ui.page.getByText(readyText).first().waitFor();
    const findSmall = () =>
      ui.page.evaluate(() => {
        const controls = document.querySelectorAll<HTMLElement>("button, a[href], input, select, textarea, summary");
        return [...controls].filter((control) => {
          // A link inside a sentence is as high as its line; the whole row of a switch is clickable.
          if (control.matches("p a, .prose a, .skip-link, .prose *")) return false;
          const area = control.closest("label") ?? control;
          const drawn = area.getBoundingClientRect();
          // A smaller control has an invisible touch area around it.
          const around = getComputedStyle(area, "::after");
          const touched = (side: "width" | "height") =>
            around.position === "absolute" ? Math.max(drawn[side], parseFloat(around[side]) || 0) : drawn[side];
          const [width, height] = [touched("width"), touched("height")];
          return width > 0 && height > 0 && (width < 43.5 || height < 43.5);
        }).map((control) => {
          const { width, height } = control.getBoundingClientRect();
          return `${control.tagName} "${control.getAttribute("aria-label") ?? control.textContent}" ${width}x${height}`;
        });
      });
    await expect.poll(findSmall, { message: path }).toEqual([]);
  }
});

test("axe finds a planted problem", async () => {
  await using ui = await bench.open("/new");
  await ui.page.getByText("What’s on your mind?").waitFor();
  await ui.page.evaluate(() => document.querySelector("textarea")!.removeAttribute("aria-label"));
  await ui.page.evaluate(() => document.querySelector("textarea")!.removeAttribute("placeholder"));
  await expect.poll(async () => (await findAxeProblems(ui.page)).map((each) => each.rule)).toContain("label");
});

test("axe finds text that is hard to read in the other color scheme alone", async () => {
  await using ui = await bench.open("/new");
  await ui.page.getByText("What’s on your mind?").waitFor();
  await ui.page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync("@media (prefers-color-scheme: dark) { .planted { color: #222; background: #000; } }");
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    document.querySelector("main")!.append(Object.assign(document.createElement("p"), {
      className: "planted",
      textContent: "Hard to read",
    }));
  });
  await expect.poll(() => findAxeProblems(ui.page)).toEqual([]);
  await expect.poll(async () => (await findAxeProblemsInBothSchemes(ui.page)).map((each) => each.rule)).toContain(
    "color-contrast",
  );
});

test("reaches a first reply with the keyboard alone, with visible focus", async () => {
  await using ui = await bench.open("/new", { prepare: fill });
  await ui.page.getByText("What’s on your mind?").waitFor();
  // The whole list is there: nothing is put before or in place of what has the focus.
  await ui.page.getByRole("link", { name: "A full chat" }).first().waitFor();
  await ui.page.locator("body").click({ position: { x: 640, y: 90 } });
  const names: string[] = [];
  for (let step = 0; step < 60; step++) {
    await ui.page.keyboard.press("Tab");
    const { name, isSeen } = await ui.page.evaluate(() => {
      const element = document.activeElement as HTMLElement;
      const style = getComputedStyle(element);
      const frame = element.closest(".composer");
      const isSeen = style.outlineStyle !== "none" || (frame !== null && getComputedStyle(frame).boxShadow !== "none");
      // After the last control, the focus leaves the page.
      if (element === document.body) return { name: "", isSeen: true };
      return { name: element.getAttribute("aria-label") ?? element.textContent ?? "", isSeen };
    });
    expect(isSeen, `focus on "${name}"`).toBe(true);
    names.push(name.trim());
  }
  for (const name of ["New chat", "A full chat", "Settings", "Hide the sidebar", "Message"]) {
    expect(names).toContain(name);
  }
});

test("the drawer takes the focus, closes on Escape and returns it", async () => {
  await using ui = await bench.open("/c/full", { ...PHONE, prepare: fill });
  const opener = ui.page.getByRole("button", { name: "Open the chat list" });
  await opener.click();
  const drawer = ui.page.getByRole("dialog");
  await drawer.getByRole("link", { name: "A failed chat" }).waitFor();
  await expect.poll(() => drawer.evaluate((dialog) => dialog.contains(document.activeElement))).toBe(true);
  await ui.page.keyboard.press("Escape");
  await drawer.waitFor({ state: "hidden" });
  await expect.poll(() => opener.evaluate((button) => button === document.activeElement)).toBe(true);
  await opener.click();
  await drawer.getByRole("link", { name: "A failed chat" }).click();
  await drawer.waitFor({ state: "hidden" });
  await ui.page.getByText("It went away").waitFor();
});

test("applies theme, size, font and color at once, and after a reload", async () => {
  await using ui = await bench.open("/settings/general", { colorScheme: "light" });
  await ui.page.getByLabel("Theme").selectOption("dark");
  await ui.page.getByLabel("Text size").fill("130");
  await ui.page.getByLabel("Font").selectOption("serif");
  await ui.page.getByLabel("Accent color").fill("30");
  const looks = () =>
    ui.page.locator(".sample:not(.of-character)").evaluate((sample) => ({
      ground: getComputedStyle(document.body).backgroundColor,
      size: getComputedStyle(sample).fontSize,
      family: getComputedStyle(sample).fontFamily,
      hue: document.documentElement.style.getPropertyValue("--accent-hue"),
    }));
  const chosen = {
    size: "21.45px",
    hue: "30",
    family: expect.stringContaining("Georgia"),
    ground: expect.stringMatching(/^oklch\(0?\.[0-3]/),
  };
  await expect.poll(looks).toEqual(chosen);
  // Shown before they are saved, one after the other.
  await eventually(() => ui.api.settings.accent_hue, (hue) => hue === 30);
  await ui.page.reload();
  await ui.page.locator(".sample:not(.of-character)").waitFor();
  await expect.poll(looks).toEqual(chosen);
});

test("keeps the sidebar folded", async () => {
  await using ui = await bench.open("/c/full", { prepare: fill });
  await ui.page.getByRole("button", { name: "Hide the sidebar" }).click();
  await ui.page.reload();
  await ui.page.getByRole("button", { name: "Show the sidebar" }).click();
  await ui.page.getByRole("link", { name: "A failed chat" }).waitFor();
});
