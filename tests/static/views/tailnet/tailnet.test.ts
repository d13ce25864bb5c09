/** The tailnet panel on the real server, with a fake tailscaled. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import type { Switches } from "../../../helpers/fakes/tailscaled/fake_tailscaled_types.ts";
import { openTailnetBench } from "../../../helpers/app/tailnet_fixture.ts";
import { PHONE } from "../../../helpers/browser/ui_page.ts";

let browser: Browser;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

async function openBench(switches: Switches = {}, config: { tailscaledPath?: string } = {}) {
  const bench = await openTailnetBench(switches, { config });
  const pages: { close(): Promise<void> }[] = [];
  return {
    bench,
    double: bench.double,
    /** Opens the page as another device. */
    async open(options: BrowserContextOptions = {}) {
      const watched = await openPage(browser, bench.app.url, options);
      pages.push(watched.context);
      await watched.page.goto(`${bench.app.url}/settings/privacy`);
      const panel = watched.page.getByRole("region", { name: "Tailnet" });
      await panel.waitFor();
      return { ...watched, panel };
    },
    async [Symbol.asyncDispose]() {
      for (const page of pages) await page.close();
      await bench[Symbol.asyncDispose]();
    },
  };
}

/** Takes screenshots of every state for review, if a folder is set. */
async function show(page: Page, name: string): Promise<void> {
  const folder = Deno.env.get("PARLOR_TEST_SCREENSHOTS");
  if (folder) await page.getByRole("region", { name: "Tailnet" }).screenshot({ path: `${folder}/${name}.png` });
}

test("turns the node on, signs in by link or QR code, renames and turns it off, on every device", async () => {
  await using opened = await openBench();
  const { page, panel, errors, foreign } = await opened.open();
  const phone = await opened.open(PHONE);
  await panel.getByText("UDP services").waitFor();
  await show(page, "disabled");
  await panel.getByLabel("Machine name").fill("No Name");
  await panel.getByRole("button", { name: "Turn on" }).click();
  await panel.getByText("no hyphen at either end").waitFor();
  await panel.getByLabel("Machine name").fill("study");
  await page.keyboard.press("Enter");

  const link = panel.getByRole("link", { name: "Sign in to your tailnet" });
  await link.waitFor();
  await expect.poll(() => link.getAttribute("href")).toBe("http://control.test/register/hskey-authreq-secret");
  await expect.poll(() => link.getAttribute("rel")).toBe("noopener noreferrer");
  await panel.getByRole("img", { name: "QR code with the sign-in link" }).waitFor();
  await phone.panel.getByRole("link", { name: "Sign in to your tailnet" }).waitFor();
  await show(page, "needs_auth");
  await expect.poll(() => findAxeProblems(page)).toEqual([]);

  await opened.double.approve();
  const address = panel.getByRole("link", { name: "Address: http://study.fox-owl.ts.net" });
  await address.waitFor();
  await panel.getByText("The tailnet doesn't issue HTTPS certificates").waitFor();
  await panel.getByText("everyone in your tailnet can use Parlor there").waitFor();
  await phone.panel.getByRole("img", { name: "QR code with the address" }).waitFor();
  await show(page, "running");
  await expect.poll(() => findAxeProblems(phone.page)).toEqual([]);

  await panel.getByLabel("Machine name").fill("den");
  await panel.getByRole("button", { name: "Rename" }).click();
  await phone.panel.getByRole("link", { name: "Address: http://den.fox-owl.ts.net" }).waitFor();

  await panel.getByRole("button", { name: "Turn off" }).click();
  const dialog = page.getByRole("dialog", { name: "Turn off the tailnet node?" });
  await dialog.getByText("Parlor won’t be reachable at http://den.fox-owl.ts.net.").waitFor();
  await dialog.getByText("Your passkeys and chats aren’t affected").waitFor();
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Turn off" }).click();
  await panel.getByRole("button", { name: "Turn on" }).waitFor();
  await phone.panel.getByRole("button", { name: "Turn on" }).waitFor();
  expect([errors, foreign, phone.errors]).toEqual([[], [], []]);
});

test("with a certificate the address is HTTPS, and the panel shows the remaining steps", async () => {
  await using opened = await openBench({ certificate: "good" });
  await opened.bench.run();
  const { panel } = await opened.open();
  await panel.getByRole("link", { name: "Address: https://parlor.fox-owl.ts.net" }).waitFor();
  await panel.getByText("create a passkey").waitFor();
});

test("without tailscaled the panel says how to get it, and keeps the input", async () => {
  await using opened = await openBench({}, { tailscaledPath: "/nowhere/tailscaled" });
  const { page, panel } = await opened.open();
  await panel.getByLabel("Machine name").fill("study");
  await panel.getByRole("button", { name: "Turn on" }).click();
  await panel.getByRole("alert").getByText("Install Tailscale").waitFor();
  await expect.poll(() => panel.getByLabel("Machine name").inputValue()).toBe("study");
  await show(page, "not_there");
});

test("shows why a node failed and retries; shows what a starting one waits for", async () => {
  await using opened = await openBench({ exitsWith: 1 });
  await opened.bench.enable();
  await opened.bench.untilStatus(({ error }) => /stopped after/.test(error ?? ""));
  const { page, panel } = await opened.open();
  await panel.getByRole("alert").getByText("stopped after").waitFor();
  await show(page, "error");
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await opened.double.set({ isControlDown: true });
  await panel.getByRole("button", { name: "Try again" }).click();
  await panel.getByText("connection refused").waitFor();
  await show(page, "starting");
  await opened.double.set({ needsApproval: true });
  await panel.getByRole("link", { name: "Sign in to your tailnet" }).waitFor();
  await opened.double.approve();
  await panel.getByText("waiting for approval").waitFor();
  await show(page, "approval");
});
