/** The way from this machine to a phone. */
import { expect, test } from "vitest";
import { findAxeProblems, openBrowser, openPage } from "../../../helpers/browser/browser.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { PHONE } from "../../../helpers/browser/ui_page.ts";

const SCREENSHOTS = Deno.env.get("PARLOR_TEST_SCREENSHOTS");

test.each([["light", {}], ["dark", PHONE]] as const)(
  "says why localhost can't work, and shows address and code for the phone (%s)",
  async (colorScheme, device) => {
    await using app = await openTestApp();
    const browser = await openBrowser();
    try {
      const { page, errors, context } = await openPage(browser, app.url, { ...device, colorScheme });
      // The name doesn't exist, and looking it up would depend on the network.
      const checks: unknown[] = [];
      let result = "certificate";
      await page.route("**/api/auth/check_address", async (route) => {
        checks.push(route.request().postDataJSON());
        await route.fulfill({ json: { result } });
      });
      await page.goto(`${app.url}/settings/privacy`);
      await page.getByRole("button", { name: "Set up a phone" }).click();
      await page.getByText(/is the phone itself, not this machine/).waitFor();
      await page.getByRole("radio", { name: /Reverse proxy/ }).check();
      const address = page.getByLabel("Address", { exact: true });
      await address.fill("http://192.168.1.2");
      await page.getByText("Enter an address that starts with https://").waitFor();
      await address.fill("https://parlor.example.org/");
      await page.getByText("This address’s certificate isn’t trusted").waitFor();
      result = "host_not_allowed";
      await page.getByText("Add parlor.example.org to allowed_hosts").waitFor();
      result = "ok";
      await page.getByText("This address is ready for your phone.").waitFor();
      expect(new Set(checks.map((check) => JSON.stringify(check)))).toEqual(
        new Set([JSON.stringify({ url: "https://parlor.example.org" })]),
      );
      await page.getByRole("img", { name: "QR code with the address and code" }).waitFor();
      await page.getByText("https://parlor.example.org", { exact: true }).waitFor();
      await page.getByText("Waiting for your phone to sign in").waitFor();
      await expect.poll(() => page.getByLabel("Code", { exact: true }).innerText()).toMatch(/^\w{4}-\w{4}$/);
      await expect.poll(() => findAxeProblems(page)).toEqual([]);
      if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/phone-${colorScheme}.png`, fullPage: true });
      expect(errors).toEqual([]);
      await context.close();
    } finally {
      await browser.close();
    }
  },
);
