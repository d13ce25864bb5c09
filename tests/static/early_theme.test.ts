/** The first frame of the page, which is there before its modules run. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openUiBench, type UiBench } from "../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

test("the first frame has the theme that was chosen on the device, not that of the system", async () => {
  await using ui = await bench.open("/new", { colorScheme: "light" });
  const { page } = ui;
  const look = () =>
    page.evaluate(() => [
      getComputedStyle(document.documentElement).colorScheme,
      getComputedStyle(document.body).backgroundColor,
    ]);
  await page.getByLabel("Message", { exact: true }).waitFor();
  const [, light] = await look();
  // Not before: the page stores the server's settings as long as it's open.
  await page.addInitScript(() => localStorage.setItem("parlor.device", JSON.stringify({ theme: "dark" })));
  await page.route("**/assets/app*.js", (route) => route.abort());
  await page.goto(`${ui.api.origin}/new`);
  await page.locator(".boot").waitFor();
  const [scheme, background] = await look();
  expect(scheme).toBe("dark");
  expect(background).not.toBe(light);
});
