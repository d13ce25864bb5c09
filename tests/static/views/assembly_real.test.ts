/** What the page sends before the real server: the texts that the model gets, as the model gets them. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildUi } from "../../../build.ts";
import { openBrowser, openPage } from "../../helpers/browser.ts";
import { useModel } from "../../helpers/chat_client.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fake_llm.ts";
import { openTestApp, type TestApp } from "../../helpers/test_app.ts";
import { sendMessage } from "../../helpers/ui_page.ts";

/** A whole way through the page on a machine that has other things to do. */
const PATIENCE_MS = 120_000;

let browser: Browser;
beforeAll(async () => {
  await buildUi({ root: new URL("../../../", import.meta.url), isDev: false, isPlain: true });
  browser = await openBrowser();
}, PATIENCE_MS);
afterAll(() => browser.close());

async function addCharacter(app: TestApp, id: string, data: Record<string, unknown>) {
  const response = await app.put(`/api/characters/${id}`, {
    card: { spec: "chara_card_v3", spec_version: "3.0", data: { extensions: { talkativeness: 0 }, ...data } },
  });
  expect(response.status).toBe(201);
}

const sent = (llm: FakeLlm, n: number) => llm.chats[n]!.json!.messages as { role: string; content: string }[];
const replies = (page: Page) => page.getByRole("log", { name: "Messages" }).locator(".reply");

test("a chat started from a card sends its texts, the persona, the lorebooks and the chat's own note", async () => {
  await using app = await openTestApp();
  await using llm = await openFakeLlm({ personality: "llama.cpp" });
  await useModel(app, llm);
  await app.put("/api/setup/complete", {});
  await addCharacter(app, "ada", { name: "Ada", description: "{{char}} builds engines.", first_mes: "Hm, {{user}}?" });
  await app.put("/api/personas/sam", { name: "Sam", description: "{{user}} asks questions." });
  await app.patch("/api/settings", { default_persona_id: "sam" });
  const entries = [{ keys: ["mill"], content: "The mill counts.", extensions: {}, enabled: true, insertion_order: 1 }];
  await app.put("/api/lorebooks/engines", { name: "Engines", scope: "global", book: { entries } });

  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/characters/ada`);
  await page.getByRole("button", { name: "Start chat" }).click();
  await replies(page).getByText("Hm, Sam?").waitFor();
  await sendMessage(page, "Show me the mill");
  await replies(page).getByText("Hello").waitFor();
  const [begin, ...rest] = sent(llm, 0);
  for (const text of ["Ada builds engines.", "Sam asks questions.", "The mill counts."]) {
    expect(begin!.content).toContain(text);
  }
  expect(rest).toEqual([
    { role: "assistant", content: "Hm, Sam?" },
    { role: "user", content: "Show me the mill" },
  ]);

  await page.getByRole("button", { name: "Options of this chat" }).click();
  const saved = page.waitForResponse((response) => response.request().method() === "PATCH");
  await page.getByLabel("Note", { exact: true }).fill("Rain falls.");
  await saved;
  const again = replies(page).last();
  await again.hover();
  await again.getByRole("button", { name: "Regenerate" }).click();
  await page.getByText("2/2").waitFor();
  expect(sent(llm, 1).map(({ content }) => content)).toContain("Rain falls.");
  await context.close();
}, PATIENCE_MS);
