/** The notice of a new version, the changelog, and the question in the first-run setup. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems } from "../../../helpers/browser/browser.ts";
import type { FakeApi } from "../../../helpers/fakes/api/fake_api.ts";
import { openUiBench, PHONE, type UiBench } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const SCREENSHOTS = Deno.env.get("PARLOR_TEST_SCREENSHOTS");

function announce(api: FakeApi): void {
  api.settings.check_releases = true;
  api.house.releases = {
    version: "0.2.0",
    host: "releases.example",
    checked_at: "2026-01-02T03:04:05.000Z",
    newer: { version: "0.3.0", url: "https://releases.example/0.3.0", notes: "- A **tree** in the garden" },
  };
}

test.each([["light", {}], ["dark", PHONE]] as const)(
  "a new version is announced once, and the notice leads to its changes (%s)",
  async (colorScheme, device) => {
    await using ui = await bench.open("/new", { ...device, colorScheme, prepare: announce });
    const { page } = ui;
    const look = async (name: string) => {
      await expect.poll(() => findAxeProblems(page), { message: name }).toEqual([]);
      if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/releases-${name}-${colorScheme}.png` });
    };
    const notice = page.getByText("Parlor 0.3.0 is available.");
    await notice.waitFor();
    await look("notice");
    await page.getByRole("link", { name: "What’s new" }).click();
    const main = page.getByRole("main");
    await main.getByText("A tree in the garden").waitFor();
    await main.getByText("You use version 0.2.0.").waitFor();
    expect(await main.getByRole("link", { name: "Page of this release" }).getAttribute("href"))
      .toBe("https://releases.example/0.3.0");
    await main.getByText("Chats stay where they are. See Chats.").waitFor();
    expect(await main.locator("a[href*='docs/']").count()).toBe(0);
    expect(await main.getByText("The first one").count()).toBe(0);
    await main.getByText("0.1.0 (2025-01-01)").click();
    await main.getByText("The first one").waitFor();
    await look("changelog");
    await page.goto(`${ui.api.origin}/new`);
    await page.getByRole("button", { name: "Dismiss" }).click();
    await notice.waitFor({ state: "detached" });
    await expect.poll(() => ui.api.settings.dismissed_release).toBe("0.3.0");
    ui.api.house.releases.newer!.version = "0.4.0";
    ui.api.publish("release_check", "release_check");
    await page.getByText("Parlor 0.4.0 is available.").waitFor();
    expect(ui.errors).toEqual([]);
  },
);

test("without the setting nothing is requested, and About turns it on", async () => {
  await using ui = await bench.open("/settings/about", {
    prepare: (api) => {
      announce(api);
      api.settings.check_releases = false;
    },
  });
  const { page } = ui;
  const toggle = page.getByRole("switch", { name: "Tell me about new versions" });
  await toggle.waitFor();
  await expect.poll(() => toggle.isChecked()).toBe(false);
  expect(await page.getByText("Parlor 0.3.0 is available.").count()).toBe(0);
  await toggle.click();
  await expect.poll(() => ui.api.settings.check_releases).toBe(true);
  await page.getByRole("button", { name: "Dismiss" }).waitFor();
});

test("the setup asks once, if there is somebody to ask", async () => {
  await using ui = await bench.open("/welcome/name", {
    prepare: (api) => {
      announce(api);
      api.isSetupCompleted = false;
      api.settings.check_releases = false;
    },
  });
  const { page } = ui;
  await page.getByText("Asks releases.example once a day.").waitFor();
  if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/releases-setup.png` });
  await page.getByRole("switch", { name: "Tell me about new versions" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  await expect.poll(() => ui.api.settings).toMatchObject({ check_releases: true, display_name: "" });
  await page.getByRole("heading", { name: "Protect Parlor with a passkey" }).waitFor();
  expect(ui.errors).toEqual([]);
});

test("a build without an address asks nothing", async () => {
  await using ui = await bench.open("/welcome/name", { prepare: (api) => void (api.isSetupCompleted = false) });
  await ui.page.getByLabel("Your name").waitFor();
  await expect.poll(() => ui.api.requests.some(({ path }) => path === "/api/releases")).toBe(true);
  await ui.page.getByRole("button", { name: "Continue" }).click();
  await ui.page.getByRole("heading", { name: "Protect Parlor with a passkey" }).waitFor();
  expect(await ui.page.getByRole("switch").count()).toBe(0);
});
