/** The page behind a sign-in proxy whose session expires while the page is open. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { findSmallTargets } from "../../../helpers/browser/browser.ts";
import { openUiBench, PHONE, sendMessage, type UiBench } from "../../../helpers/browser/ui_page.ts";

let ui: UiBench;
beforeAll(async () => {
  ui = await openUiBench();
});
afterAll(() => ui.close());

test("keeps a message while the sign-in at a proxy has ended, leads there, and sends it afterwards", async () => {
  await using opened = await ui.open("/c/c1", {
    ...PHONE,
    prepare: (api) => api.addConversation("c1", "The lighthouse", [{ role: "user", content: "How old?" }]),
  });
  const { api, page } = opened;
  await page.getByText("How old?").first().waitFor();
  api.signInPath = "/oauth2/sign_in";
  await sendMessage(page, "And the keeper?");
  await page.getByText("Not sent yet").first().waitFor();
  const banner = page.getByRole("status").filter({ hasText: "Your sign-in at the proxy" });
  await banner.waitFor();
  await expect.poll(() => findSmallTargets(page)).toEqual([]);
  await banner.getByRole("button", { name: "Sign in at the proxy" }).press("Enter");
  await page.getByRole("heading", { name: "Sign in to the proxy" }).waitFor();
  expect(api.seen("POST", "/api/chat")).toEqual([]);

  api.signInPath = undefined;
  await page.goto(`${api.origin}/c/c1`);
  await page.getByText("Hello").first().waitFor();
  await expect.poll(() => page.getByText("Not sent yet").count()).toBe(0);
  expect(api.seen("POST", "/api/chat").map(({ body }) => (body as { conversation_id: string }).conversation_id))
    .toEqual(["c1"]);
  expect(await banner.isVisible()).toBe(false);
});

test("notices by itself that the sign-in at the proxy was renewed in another tab", async () => {
  await using opened = await ui.open("/settings/about", {
    prepare: (api) => api.addConversation("c1", "The lighthouse"),
  });
  const { api, page } = opened;
  const banner = page.getByRole("status").filter({ hasText: "Your sign-in at the proxy" });
  await page.getByRole("link", { name: "The lighthouse" }).waitFor();
  api.signInPath = "/oauth2/sign_in";
  await page.getByRole("link", { name: "The lighthouse" }).click();
  await banner.waitFor();
  api.signInPath = undefined;
  await page.evaluate(() => globalThis.dispatchEvent(new Event("focus")));
  await banner.waitFor({ state: "hidden" });
});
