/**
 * A walk through every flow of the chat on the real server, at both widths and in both themes. With
 * `PARLOR_TEST_SCREENSHOTS` naming a folder it saves a screenshot of each screen there; `deno task screenshots` does that.
 * @slow Every flow of the chat, at two widths.
 */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  findAxeProblemsInBothSchemes,
  findSmallTargets,
  openBrowser,
  openPage,
} from "../../helpers/browser/browser.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { sillyTavernPng } from "../../helpers/files/cards.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import {
  chooseMessageAction,
  openChatOptions,
  openMessageActions,
  PHONE,
  sendMessage,
} from "../../helpers/browser/ui_page.ts";

const SCREENSHOTS = Deno.env.get("PARLOR_TEST_SCREENSHOTS");
const QUESTION = "How do I find the longest day of the year?";
const ANSWER = [
  "The longest day is the one on which the sun's *declination* is greatest.\n\n",
  "With the declination as an angle over the year,\n\n",
  "$$\\delta = -23.44^\\circ \\cdot \\cos\\left(\\frac{360^\\circ}{365} \\cdot (d + 10)\\right)$$\n\n",
  "you look for the day `d` with the largest value:\n\n",
  "```python\nimport math\n\ndef declination(day):\n    return -23.44 * math.cos(2 * math.pi / 365 * (day + 10))\n\n",
  "print(max(range(1, 366), key=declination))  # 173, the 21st of June or so\n```\n\n",
  "| City | Longest day |\n|---|---|\n| Lisbon | 14 h 52 min |\n| Oslo | 18 h 50 min |\n",
];

/** Portrait of the character. */
const FOX_SVG =
  `<svg xmlns="http://www.w3.org/2000/svg" width="512" height="768" viewBox="0 0 512 768" style="display:block">
  <rect width="512" height="768" fill="#18304a"/><circle cx="400" cy="120" r="56" fill="#f4e9c9"/>
  <path d="M0 600 Q256 540 512 600 V768 H0Z" fill="#0e1f31"/>
  <path d="M96 250 L180 330 Q256 300 332 330 L416 250 L396 420 Q400 520 256 590 Q112 520 116 420Z" fill="#d9692b"/>
  <path d="M116 420 Q180 430 256 590 Q332 430 396 420 Q400 520 256 590 Q112 520 116 420Z" fill="#fbf1e4"/>
  <circle cx="196" cy="410" r="17" fill="#1b1b1b"/><circle cx="316" cy="410" r="17" fill="#1b1b1b"/>
  <path d="M234 556 Q256 546 278 556 Q270 590 256 590 Q242 590 234 556Z" fill="#1b1b1b"/>
</svg>`;

let browser: Browser;
let fox: Uint8Array<ArrayBuffer>;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
  const page = await browser.newPage({ viewport: { width: 512, height: 768 } });
  await page.setContent(`<body style="margin:0">${FOX_SVG}`);
  fox = new Uint8Array(await page.screenshot());
  await page.close();
});
afterAll(() => browser.close());

/** A browser of one width and theme with its server and model. */
interface Walk {
  page: Page;
  app: TestApp;
  llm: FakeLlm;
  isPhone: boolean;
  /** Checks the current screen: no horizontal scrolling, no findings of axe. Saves a screenshot if a folder is set. */
  look(name: string): Promise<void>;
}

async function firstVisit({ page, look, llm }: Walk): Promise<void> {
  await page.getByRole("heading", { name: "Choose a model" }).waitFor();
  await page.getByText("No servers found").waitFor();
  await look("first-visit");
  await page.getByRole("link", { name: "Enter a URL" }).click();
  await page.getByLabel("Name").fill("Llama");
  await page.getByLabel("URL").fill(llm.url);
  await page.getByRole("button", { name: "Test" }).click();
  await page.getByText("The connection works").waitFor();
  await look("connection-form");
  await page.getByRole("button", { name: "Save and use" }).click();
  await page.getByRole("heading", { name: "Your name" }).waitFor();
  await page.getByLabel("Your name").fill("Ada");
  await look("first-visit-name");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("button", { name: "Create passkey" }).waitFor();
  await look("first-visit-passkey");
  await page.getByRole("button", { name: "Start chatting" }).click();
  await page.getByRole("log").waitFor();
  await look("first-hello");
}

async function firstReply({ page, llm, look }: Walk): Promise<void> {
  llm.switches.manual = "on";
  await page.goto(`${new URL(page.url()).origin}/new`);
  await sendMessage(page, QUESTION);
  const call = await llm.nextCall();
  for (const piece of ANSWER.slice(0, 3)) await call.emit(piece);
  await page.locator(".reply .formula math").waitFor();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  await look("streaming");
  for (const piece of ANSWER.slice(3)) await call.emit(piece);
  await call.finish();
  await page.getByRole("button", { name: "Regenerate" }).waitFor();
  await page.locator(".reply table").waitFor();
  await page.locator(".reply .code-keyword").first().waitFor();
  await look("chat");
}

/** Chooses an action of the nth message. */
async function act({ page }: Walk, n: number, label: string): Promise<void> {
  await chooseMessageAction(page.locator(".message").nth(n), label);
}

async function changeMessages(walk: Walk): Promise<void> {
  const { page, llm, look } = walk;
  const regenerate = page.getByRole("button", { name: "Regenerate" });
  await regenerate.click();
  const call = await llm.nextCall();
  await call.emit("Around the 21st of June, in the north.");
  await call.finish();
  await page.locator(".reply").getByText("2/2").waitFor();
  await page.getByRole("button", { name: "Previous version" }).click();
  await page.locator(".reply").getByText("1/2").waitFor();
  await look("variants");
  await act(walk, 0, "Edit");
  const field = page.getByRole("textbox", { name: "Message text" });
  await field.fill("When is the longest day?");
  await look("edit");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.locator(".message").first().getByText("When is the longest day?").waitFor();
  await act(walk, 0, "Hide from the model");
  await page.locator(".message").first().getByText("Hidden from the model").waitFor();
  await act(walk, 0, "Show to the model");
  await openMessageActions(page.locator(".message").nth(1));
  await page.getByRole("menuitem", { name: "Branch from here" }).waitFor();
  await look("message-actions");
  await page.getByRole("menuitem", { name: "Branch from here" }).click();
  await page.getByRole("link", { name: /^Branch of/ }).click();
  await page.getByRole("link", { name: /^Branch: / }).waitFor();
}

async function chatPanels({ page, look, isPhone }: Walk): Promise<void> {
  // Without the message in the URL, which would be highlighted in the screenshots.
  await page.goto(page.url().replace(/#.*/, ""));
  await openChatOptions(page);
  await page.getByLabel("Temperature").fill("0.7");
  await page.getByLabel("System prompt").fill("Answer as a patient astronomer.");
  await look("options");
  await page.getByRole("button", { name: "Preview prompt" }).click();
  await page.getByRole("heading", { name: "Prompt preview" }).waitFor();
  await page.locator(".preview-sums").getByText(/^[\d,]+ tokens$/).waitFor();
  // On a phone, the panel covers the note about the branch, which may close by itself.
  const close = page.locator(".toast").getByRole("button", { name: "Close" });
  if (!isPhone) await close.evaluateAll((buttons) => buttons.forEach((button) => (button as HTMLElement).click()));
  await look("preview");
  await page.getByRole("button", { name: "Close" }).first().click();
  await page.getByRole("button", { name: /^Model:/ }).click();
  await page.getByRole("dialog", { name: "Model for this chat" }).waitFor();
  await look("model-picker");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Model for this chat" }).waitFor({ state: "detached" });
  await page.getByLabel("Message", { exact: true }).fill("/");
  await page.getByRole("listbox", { name: "Commands" }).waitFor();
  await look("commands");
  await page.getByLabel("Message", { exact: true }).fill("");
}

async function listAndSearch({ page, app, isPhone, look }: Walk): Promise<void> {
  const titles = ["Ferry to the islands", "Bread for Sunday", "A letter to the council", "Names for a cat"];
  for (const [i, title] of titles.entries()) {
    const content = `${title}: what do we need?`;
    await app.put(`/api/conversations/w${i}`, { title, messages: [{ id: `w${i}-1`, role: "user", content }] });
  }
  // A notice at the top would be in every screenshot.
  await app.patch("/api/settings", { memory_asked: true });
  await app.patch("/api/conversations/w0", { pinned: true });
  await app.patch("/api/conversations/w2", { folder: "Letters" });
  await page.goto(`${app.url}/new`);
  if (isPhone) await page.getByRole("button", { name: "Open the chat list" }).click();
  await page.getByRole("link", { name: "Ferry to the islands" }).first().waitFor();
  await page.getByRole("button", { name: "Letters" }).waitFor();
  await look("list");
  await page.goto(`${app.url}/search`);
  await page.getByRole("searchbox").fill("sunday");
  await page.getByRole("main").getByRole("link", { name: /Bread/ }).first().waitFor();
  await look("search");
  await page.getByRole("main").getByRole("link", { name: /Bread/ }).first().click();
  await page.getByRole("log").getByText("what do we need?").waitFor();
}

async function characters({ page, app, llm, look }: Walk): Promise<void> {
  const form = new FormData();
  const card = sillyTavernPng({
    spec: "chara_card_v2",
    spec_version: "2.0",
    data: {
      name: "Fox",
      description: "Fox keeps the light on the pier and knows every boat by its engine.",
      personality: "Dry, patient, kinder than it sounds.",
      scenario: "A small harbour at night.",
      first_mes: "*The lamp turns once.* Evening, {{user}}. The last ferry is gone.",
      alternate_greetings: ["Mind the step. And the rope. And the gull."],
      creator_notes: "Best with **short** replies.",
      tags: ["harbour", "calm"],
      creator: "The harbour master",
    },
  });
  form.append("file", new Blob([card.slice()], { type: "image/png" }), "fox.png");
  const imported = await app.post("/api/characters/import", form);
  expect(imported.status).toBe(201);
  const { id } = await imported.json();
  const headers = { "Content-Type": "image/png" };
  expect((await app.put(`/api/characters/${id}/avatar`, fox, { headers })).status).toBe(200);
  await page.goto(`${app.url}/characters`);
  await page.getByRole("link", { name: "Fox" }).locator("img").waitFor();
  await look("characters");
  await page.getByRole("link", { name: "Fox" }).click();
  await page.getByRole("button", { name: "Start chat" }).waitFor();
  await look("character");
  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Name", { exact: true }).waitFor();
  await look("character-editor");
  await page.getByRole("link", { name: "Done" }).click();
  await page.getByRole("button", { name: "Start chat" }).click();
  await page.getByRole("heading", { name: "Fox", level: 2 }).waitFor();
  await sendMessage(page, "Good evening!");
  const call = await llm.nextCall();
  await call.emit('*The fox lowers the lamp.* "You are late. Mind the rope."');
  await call.finish();
  await page.getByRole("button", { name: "Regenerate" }).waitFor();
  await look("character-chat");
}

async function palette({ page, look }: Walk): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").getByRole("combobox").fill("set");
  await look("palette");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

/** Screens with their own URL that no other test visits. */
const SCREENS = [
  ["activity", "/activity", "Activity"],
  ["settings", "/settings", "Settings"],
  ["connections", "/settings/connections", "Connections"],
  ["privacy", "/settings/privacy", "Passkeys"],
  ["models", "/settings/models", "Models"],
  ["personas", "/settings/personas", "Personas"],
  ["data", "/settings/data", "Storage space"],
  ["import", "/settings/data/import", "Import"],
  ["trash", "/settings/trash", "Trash"],
  ["about", "/settings/about", "About"],
] as const;

const WIDE: BrowserContextOptions = { viewport: { width: 1280, height: 800 } };

test.each(
  [["wide", WIDE], ["phone", PHONE]] as const,
)("every flow of the chat is walked, and each screen is checked light and dark, %s", { timeout: 360_000 }, async (
  width,
  device,
) => {
  await using llm = await openFakeLlm({ models: ["llama-3.2-3b"] });
  await using app = await openTestApp();
  const { page, context, foreign, errors } = await openPage(browser, app.url, {
    ...device,
    reducedMotion: "reduce",
  });
  const look = async (name: string) => {
    const isSideways = () => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    await expect.poll(isSideways, { message: `${name} is wider than the page` }).toBe(false);
    if (device === PHONE) await expect.poll(() => findSmallTargets(page), { message: name }).toEqual([]);
    const findProblems = () =>
      findAxeProblemsInBothSchemes(page, async (colorScheme) => {
        if (SCREENSHOTS === undefined) return;
        await page.waitForFunction(() =>
          [...document.images].every((image) => image.complete || image.getBoundingClientRect().top > innerHeight)
        );
        await page.screenshot({ path: `${SCREENSHOTS}/${name}-${width}-${colorScheme}.png` });
      });
    await expect.poll(findProblems, { message: name }).toEqual([]);
  };
  const walk: Walk = { page, app, llm, isPhone: device === PHONE, look };
  await page.goto(app.url);
  await firstVisit(walk);
  await firstReply(walk);
  await changeMessages(walk);
  await chatPanels(walk);
  await listAndSearch(walk);
  await characters(walk);
  await palette(walk);
  for (const [name, path, heading] of SCREENS) {
    await page.goto(app.url + path);
    await page.getByRole("heading", { name: heading, exact: true }).first().waitFor();
    await look(name);
  }
  expect({ foreign, errors }).toEqual({ foreign: [], errors: [] });
  await context.close();
});
