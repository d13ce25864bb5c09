/** Tool calls from the model's request to the stored reply, on the page with the real server and two devices. */
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  findAxeProblems,
  findAxeProblemsInBothSchemes,
  openBrowser,
  openPage,
} from "../../../helpers/browser/browser.ts";
import { builtUi } from "../../../helpers/browser/built_ui.ts";
import { useModel } from "../../../helpers/app/chat_client.ts";
import { openTestApp } from "../../../helpers/app/test_app.ts";
import { PHONE, sendMessage, WIDTHS } from "../../../helpers/browser/ui_page.ts";
import { openFakeLlm } from "../../../helpers/fakes/llm/fake_llm.ts";
import { openFakeSearxng } from "../../../helpers/fakes/fake_searxng.ts";

let browser: Browser;
let uiFolder: string;
beforeAll(async () => {
  uiFolder = await builtUi();
  browser = await openBrowser();
});
afterAll(() => browser.close());

const FOLDER = Deno.env.get("SCREENSHOTS");
async function takePicture(page: Page, name: string): Promise<void> {
  if (FOLDER) await page.screenshot({ path: `${FOLDER}/${name}.png` });
}

const stateOf = (card: Locator) => card.getAttribute("data-state");

test("a call is changed and allowed on another device, the next one denied, and all of it is stored", async () => {
  await using searxng = openFakeSearxng();
  await using app = await openTestApp({ uiFolder });
  const llm = await openFakeLlm();
  llm.switches.manual = "on";
  await useModel(app, llm);
  await app.put("/api/tools/web", { search_url: searxng.origin });
  await app.post("/api/setup/complete", {});
  const list = await openPage(browser, app.url, {});
  await list.page.goto(`${app.url}/settings/tools/calls`);
  await list.page.getByRole("link", { name: "Tools" }).last().waitFor();
  const { page, errors } = await openPage(browser, app.url, {});
  await page.goto(`${app.url}/new`);
  await sendMessage(page, "When was the lighthouse built?");
  const first = await llm.nextCall();
  const offered = first.request.json!.tools as { function: { name: string } }[];
  expect(offered.map((tool) => tool.function.name)).toEqual(["web_search", "read_page"]);
  await first.emit("I'll look it up.");
  await first.callTools({ id: "call_1", name: "web_search", arguments: '{"query":"lightouse"}' });

  const card = page.locator(".tool-call").first();
  await card.getByText("Waiting for your approval").waitFor();
  await expect.poll(() => page.locator('[aria-live="polite"]').allInnerTexts()).toEqual(
    expect.arrayContaining([expect.stringContaining("“web_search” is waiting for your approval")]),
  );
  await expect.poll(() => card.evaluate((element) => element.contains(document.activeElement))).toBe(false);
  await page.getByText("1 approval waiting").waitFor();
  for (const [width] of WIDTHS) {
    await page.setViewportSize(width === "narrow" ? { width: 390, height: 844 } : { width: 1280, height: 800 });
    await card.scrollIntoViewIfNeeded();
    const findProblems = () =>
      findAxeProblemsInBothSchemes(page, (colorScheme) => takePicture(page, `pending-${colorScheme}-${width}`));
    await expect.poll(findProblems, { message: width }).toEqual([]);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await expect.poll(() => searxng.queries).toEqual([]);

  const phone = await openPage(browser, app.url, PHONE);
  await phone.page.goto(`${app.url}/activity`);
  await phone.page.getByText("“web_search” is waiting for your approval").waitFor();
  await takePicture(phone.page, "activity");
  await phone.page.getByRole("link", { name: /waiting for your approval/ }).click();
  const there = phone.page.locator(".tool-call").first();
  await there.getByRole("button", { name: "Edit arguments" }).click();
  const args = there.getByRole("textbox", { name: "Arguments" });
  await args.fill("{");
  await there.getByText("The arguments must be a JSON object").waitFor();
  await expect.poll(() => there.getByRole("button", { name: "Allow once" }).isDisabled()).toBe(true);
  await takePicture(phone.page, "editing");
  await args.fill('{"query":"lighthouse"}');
  await there.getByRole("button", { name: "Allow once" }).click();
  await expect.poll(() => stateOf(there)).toBe("done");
  await expect.poll(() => stateOf(card)).toBe("done");
  await expect.poll(() => searxng.queries.map(({ q }) => q)).toEqual(["lighthouse"]);

  const second = await llm.nextCall();
  const sent = second.request.json!.messages as { role: string; content: string }[];
  expect(sent.at(-1)).toMatchObject({ role: "tool", content: expect.stringContaining("https://example.org/1") });
  await second.callTools({ id: "call_2", name: "read_page", arguments: '{"url":"http://10.0.0.1/"}' });
  const next = page.locator(".tool-call").nth(1);
  const deny = next.getByRole("button", { name: "Deny" });
  await deny.focus();
  await deny.press("Enter");
  await expect.poll(() => stateOf(next)).toBe("denied");
  await expect.poll(() => next.evaluate((element) => element === document.activeElement)).toBe(true);
  const third = await llm.nextCall();
  await third.emit("It was built in **1874**.");
  await takePicture(page, "writing");
  await third.finish();

  const reply = page.locator(".reply");
  await expect.poll(() => reply.getAttribute("data-status")).toBe("complete");
  for (const where of [page, phone.page]) {
    await where.locator(".reply").getByText("1874").waitFor();
    await expect.poll(() => where.locator(".tool-call").count()).toBe(2);
    await expect.poll(() => where.locator(".message").count()).toBe(2);
  }
  await page.reload();
  await reply.getByText("I'll look it up.").waitFor();
  await expect.poll(() => page.locator(".tool-call").count()).toBe(2);
  const done = page.locator(".tool-call").first();
  await done.getByText("Arguments, changed before approval").click();
  await done.getByText('"query": "lightouse"').waitFor();
  await done.getByText(/^Result, /).click();
  await done.getByText("https://example.org/1").waitFor();
  await expect.poll(() => done.getAttribute("aria-label")).toMatch(/^Tool call: web_search, Done · [\d.]+ s$/);
  await takePicture(page, "done");

  await page.goto(`${app.url}/settings/tools/calls`);
  const rows = page.getByRole("list", { name: "Tool calls" }).getByRole("listitem");
  await expect.poll(() => rows.count()).toBe(2);
  await expect.poll(() => rows.first().innerText()).toMatch(/read_page[^]*Web · Denied · Decided by you/);
  await expect.poll(() => rows.last().innerText()).toContain('{"query":"lighthouse"}');
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await takePicture(page, "calls");
  const texts = await rows.allInnerTexts();
  // A list that was open before shows the same.
  const shown = list.page.getByRole("list", { name: "Tool calls" }).getByRole("listitem");
  await expect.poll(() => shown.allInnerTexts()).toEqual(texts);
  expect([...errors, ...phone.errors, ...list.errors]).toEqual([]);
  await llm.close();
});

test("a tool that is allowed in a chat runs there without asking; tools turned off aren't offered", async () => {
  await using searxng = openFakeSearxng();
  await using app = await openTestApp({ uiFolder });
  const llm = await openFakeLlm();
  llm.switches.manual = "on";
  await useModel(app, llm);
  await app.put("/api/tools/web", { search_url: searxng.origin });
  await app.post("/api/setup/complete", {});
  const { page, errors } = await openPage(browser, app.url, PHONE);
  await page.goto(`${app.url}/new`);
  const ask = async (text: string, id: string) => {
    await sendMessage(page, text);
    const call = await llm.nextCall();
    await call.callTools({ id, name: "web_search", arguments: `{"query":"${text}"}` });
  };
  const answer = async (text: string) => {
    const call = await llm.nextCall();
    await call.emit(text);
    await call.finish();
    await page.locator(".reply").getByText(text).waitFor();
  };
  await ask("tea", "x");
  await page.getByRole("button", { name: "Allow in this chat" }).click();
  await answer("Green.");
  await ask("coffee", "y");
  await answer("Black.");
  await expect.poll(() => searxng.queries.map(({ q }) => q)).toEqual(["tea", "coffee"]);
  const [{ id }] = (await (await app.get("/api/conversations?view=summary")).json()).items;
  await app.patch(`/api/conversations/${id}`, { tools: false });
  await sendMessage(page, "milk");
  const call = await llm.nextCall();
  expect(call.request.json).not.toHaveProperty("tools");
  await call.finish();
  expect(errors).toEqual([]);
  await llm.close();
});
