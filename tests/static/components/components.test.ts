import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblemsInBothSchemes } from "../../helpers/browser/browser.ts";
import { eventually, openUiBench, PHONE, type UiBench, WIDTHS } from "../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench({ isDev: true });
});
afterAll(() => bench.close());

const focusedName = (page: Page) =>
  page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent);

test.each(WIDTHS)(
  "axe finds nothing in any component in any state, light and dark, and all fit, %s",
  async (_, options) => {
    await using ui = await bench.open("/components", { ...options, reducedMotion: "reduce" });
    const { page } = ui;
    await page.getByRole("heading", { name: "Components" }).waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
    for (const name of ["Dialog", "Sheet", "Panel"]) {
      await page.getByRole("button", { name, exact: true }).click();
      const close = page.locator("dialog, aside").getByRole("button", { name: "Close" });
      await close.waitFor();
      await expect.poll(() => findAxeProblemsInBothSchemes(page), { message: name }).toEqual([]);
      await close.click();
    }
    await page.getByRole("button", { name: "Sample menu" }).click();
    await page.getByRole("menuitem", { name: "Rename" }).waitFor();
    await expect.poll(() => findAxeProblemsInBothSchemes(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await page.getByRole("menuitem", { name: "Rename" }).waitFor({ state: "detached" });
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    expect(ui.errors).toEqual([]);
  },
);

test.each([["wide", {}], ["narrow", PHONE]] as const)(
  "dialog and sheet trap the focus, close on Escape and on the backdrop, and return it, %s",
  async (_, options) => {
    await using ui = await bench.open("/components", options);
    const { page } = ui;
    for (const name of ["Dialog", "Sheet"]) {
      const opener = page.getByRole("button", { name, exact: true });
      await opener.focus();
      await page.keyboard.press("Enter");
      const dialog = page.getByRole("dialog");
      await dialog.waitFor();
      for (let step = 0; step < 6; step++) {
        const isInside = await dialog.evaluate((box) =>
          box.contains(document.activeElement) || document.activeElement === document.body
        );
        expect(isInside).toBe(true);
        await page.keyboard.press("Tab");
      }
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      await expect.poll(() => focusedName(page)).toBe(name);
      await page.keyboard.press("Enter");
      await dialog.waitFor();
      await page.mouse.click(4, 4);
      await dialog.waitFor({ state: "detached" });
      await expect.poll(() => focusedName(page)).toBe(name);
    }
  },
);

test("focuses the dialog's field that asks for it", async () => {
  await using ui = await bench.open("/components");
  await ui.page.getByRole("button", { name: "Dialog", exact: true }).click();
  await ui.page.getByRole("dialog").waitFor();
  await expect.poll(() => ui.page.getByLabel("Name").evaluate((field) => field === document.activeElement)).toBe(true);
});

test.each([["popover", {}], ["sheet", PHONE]] as const)(
  "a menu as a %s works by keyboard alone and returns the focus",
  async (kind, options) => {
    await using ui = await bench.open("/components", options);
    const { page } = ui;
    const button = page.getByRole("button", { name: "Sample menu" });
    await button.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("menu").waitFor();
    await expect.poll(() => page.getByRole("dialog").count()).toBe(kind === "sheet" ? 1 : 0);
    await expect.poll(() => focusedName(page)).toBe("Rename");
    await page.keyboard.press("ArrowUp");
    await expect.poll(() => focusedName(page)).toBe("Delete");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => focusedName(page)).toBe("PinP");
    await page.keyboard.press("b");
    await expect.poll(() => focusedName(page)).toBe("By date");
    await page.keyboard.press("Enter");
    await page.getByText("Chosen: by date").waitFor();
    await expect.poll(() => focusedName(page)).toBe("Sample menu");
    await page.keyboard.press("Enter");
    await expect.poll(() => focusedName(page)).toBe("Rename");
    await page.keyboard.press("Escape");
    await page.getByRole("menu").waitFor({ state: "detached" });
    await expect.poll(() => focusedName(page)).toBe("Sample menu");
  },
);

test("closes an open menu with its button and with a click elsewhere", async () => {
  await using ui = await bench.open("/components");
  const button = ui.page.getByRole("button", { name: "Sample menu" });
  const menu = ui.page.getByRole("menu");
  await button.click();
  await menu.waitFor();
  await button.click();
  await menu.waitFor({ state: "detached" });
  await button.click();
  await menu.waitFor();
  await ui.page.getByRole("heading", { name: "Floating" }).click();
  await menu.waitFor({ state: "detached" });
});

test("keeps a menu inside the window", async () => {
  await using ui = await bench.open("/components", { viewport: { width: 800, height: 500 } });
  const button = ui.page.getByRole("button", { name: "Sample menu" });
  for (const block of ["start", "end"] as const) {
    await button.evaluate((element, place) => element.scrollIntoView({ block: place }), block);
    await button.click();
    const findOutside = async () => {
      const { x, y, width, height } = (await ui.page.locator(".menu-popover").boundingBox())!;
      return [-x, -y, x + width - 800, y + height - 500].filter((pixels) => pixels > 0);
    };
    await expect.poll(findOutside, { message: block }).toEqual([]);
    await ui.page.keyboard.press("Escape");
    await ui.page.getByRole("menu").waitFor({ state: "detached" });
  }
});

test("moves between tabs with the arrow keys", async () => {
  await using ui = await bench.open("/components");
  await ui.page.getByRole("tab", { name: "One" }).focus();
  await ui.page.keyboard.press("ArrowLeft");
  await ui.page.getByText("View three.").waitFor();
  await ui.page.keyboard.press("ArrowRight");
  await ui.page.getByText("View one.").waitFor();
  await ui.page.keyboard.press("End");
  await expect.poll(() => ui.page.getByRole("tab", { name: "Three" }).getAttribute("aria-selected")).toBe("true");
});

test("keeps a hovered toast, and Undo undoes", async () => {
  await using ui = await bench.open("/components");
  await ui.page.getByRole("heading", { name: "Components" }).waitFor();
  // The page's time passes only where the test says so.
  await ui.page.clock.install();
  await ui.page.clock.pauseAt(Date.now() + 60_000);
  await ui.page.getByRole("button", { name: "Toast with Undo" }).click();
  const toast = ui.page.locator(".toasts .toast");
  await toast.hover();
  await ui.page.clock.runFor(20_000);
  await expect.poll(() => toast.count()).toBe(1);
  await toast.getByRole("button", { name: "Undo" }).click();
  await ui.page.getByText("Chosen: undone").waitFor();
  await ui.page.getByRole("button", { name: "Toast with Undo" }).click();
  await ui.page.getByRole("heading", { name: "Components" }).hover();
  await ui.page.clock.runFor(20_000);
  await ui.page.getByText("Chosen: gone").waitFor();
  await expect.poll(() => toast.count()).toBe(0);
});

test("mounts few of 20,000 rows, and keeps the focused one", async () => {
  await using ui = await bench.open("/components");
  const list = ui.page.getByRole("list", { name: "Many rows" });
  const box = list.locator("xpath=..");
  await list.getByText("row-0", { exact: true }).waitFor();
  await expect.poll(() => list.getByRole("listitem").count()).toBeLessThan(60);
  await expect.poll(() => list.getByRole("listitem").first().getAttribute("aria-setsize")).toBe("20000");
  await list.getByText("row-2", { exact: true }).focus();
  await box.evaluate((element) => element.scrollTop = element.scrollHeight);
  await list.getByText("row-19999").waitFor();
  await expect.poll(() => list.getByRole("listitem").count()).toBeLessThan(60);
  await expect.poll(() => focusedName(ui.page)).toBe("row-2");
});

test("measures rows of unknown height without overlap", async () => {
  await using ui = await bench.open("/components");
  const list = ui.page.getByRole("list", { name: "Measured rows" });
  const box = list.locator("xpath=..");
  await box.evaluate((element) => element.scrollTop = 3000);
  const gaps = () =>
    list.locator("li").evaluateAll((rows) =>
      rows.slice(1).map((row, index) => row.getBoundingClientRect().top - rows[index]!.getBoundingClientRect().bottom)
    );
  await eventually(gaps, (all) => all.length > 2 && all.every((gap) => Math.abs(gap) < 1));
});

test("shows a failure to load a lazy component, with a way out", async () => {
  await using ui = await bench.open("/components");
  const note = ui.page.getByRole("alert").filter({ hasText: "Couldn’t load this part of the page" });
  await note.getByRole("button", { name: "Reload page" }).waitFor();
});
