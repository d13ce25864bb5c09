/**
 * Every form of the page keeps what is typed and not saved: on the real server, in one browser.
 * @slow Every form is opened twice.
 */
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { gather, until, useModel } from "../../helpers/app/chat_client.ts";
import { openTestApp, type TestApp } from "../../helpers/app/test_app.ts";
import { findAxeProblems, openBrowser, openPage } from "../../helpers/browser/browser.ts";
import { builtUi } from "../../helpers/browser/built_ui.ts";
import { chooseMessageAction, eventually } from "../../helpers/browser/ui_page.ts";
import { FakeA1111 } from "../../helpers/fakes/fake_a1111.ts";
import { uploadDocument } from "../../helpers/files/document_files.ts";
import { answerText, FakeTools } from "../../helpers/fakes/fake_tools.ts";
import { type FakeLlm, openFakeLlm } from "../../helpers/fakes/llm/fake_llm.ts";

/** A form, and how to open it. */
interface Form {
  name: string;
  /** Where its fields are, below static/src/views. */
  files: string[];
  path: string;
  /** From the address to the form. */
  open?: (page: Page) => Promise<unknown>;
  /** Its fields are in a dialog. */
  isDialog?: true;
  /** Least number of its fields, of those that load later too. */
  least?: number;
  /** It saves what is typed by itself, after a moment: where that is in the API. */
  savedAt?: string;
  /** Labels of fields that aren't kept. */
  secrets?: string[];
}

const press = (page: Page, name: string | RegExp) => page.getByRole("button", { name }).first().click();
const tab = (page: Page, name: string) => page.getByRole("tab", { name, exact: true }).click();

/** Opens the menu of a message and clicks an item. */
async function act(page: Page, message: number, item: string): Promise<void> {
  await chooseMessageAction(page.locator(".message").nth(message), item);
}

const FORMS: Form[] = [
  {
    name: "new connection",
    files: ["connections/ConnectionForm.tsx", "connections/RareFields.tsx"],
    path: "/settings/connections/new",
  },
  { name: "connection", files: [], path: "/settings/connections/double" },
  { name: "new persona", files: ["personas/PersonaFormPage.tsx"], path: "/settings/personas/new" },
  { name: "persona", files: [], path: "/settings/personas/me" },
  { name: "image server", files: ["images/BackendForm.tsx"], path: "/settings/images/b" },
  { name: "new image server", files: [], path: "/settings/images/new" },
  {
    name: "workflow",
    isDialog: true,
    files: ["images/ImagesPage.tsx"],
    path: "/settings/images",
    open: (page) => press(page, /^Edit: /),
  },
  {
    name: "speech servers",
    files: ["speech/SpeechPage.tsx", "speech/TranscriptionSection.tsx"],
    path: "/settings/voice",
    least: 5,
  },
  {
    name: "voice from a video",
    isDialog: true,
    files: ["speech/VoiceLibrarySection.tsx"],
    path: "/settings/voice",
    open: (page) => press(page, "From a URL"),
  },
  {
    name: "tool server",
    files: ["tools/ToolServerForm.tsx", "tools/ToolsPage.tsx"],
    path: "/settings/tools",
    open: (page) => press(page, "Add a tool server"),
    secrets: ["Headers"],
    least: 7,
  },
  {
    name: "template",
    isDialog: true,
    files: ["settings/PromptTemplatesPage.tsx"],
    path: "/settings/templates",
    open: (page) => press(page, "New template"),
  },
  {
    name: "regex script",
    isDialog: true,
    files: ["regex_scripts/RegexScriptDialog.tsx"],
    path: "/settings/regex",
    open: (page) => press(page, "New script"),
  },
  {
    name: "memory",
    isDialog: true,
    files: ["memory/NoteDialog.tsx"],
    path: "/settings/memory",
    open: (page) => press(page, "Add a memory"),
  },
  {
    name: "prompt of a preset",
    files: ["presets/PromptOrder.tsx"],
    path: "/settings/presets/p1",
    savedAt: "/api/presets/p1",
    open: (page) => page.locator("button.entry-text").first().click(),
  },
  {
    name: "utility prompts of a preset",
    files: ["presets/TemplateFields.tsx"],
    path: "/settings/presets/p1",
    savedAt: "/api/presets/p1",
    open: (page) => tab(page, "Utility prompts"),
  },
  {
    name: "sampling of a preset",
    files: ["presets/PresetsPage.tsx"],
    path: "/settings/presets/p1",
    savedAt: "/api/presets/p1",
    open: (page) => tab(page, "Sampling"),
  },
  {
    name: "usage of a preset",
    files: [],
    path: "/settings/presets/p1",
    savedAt: "/api/presets/p1",
    open: (page) => tab(page, "Usage"),
  },
  {
    name: "entry of a lorebook",
    files: ["lorebooks/EntryForm.tsx"],
    path: "/settings/lorebooks/b1",
    savedAt: "/api/lorebooks/b1",
    open: (page) => page.locator(".entry-row").first().click(),
  },
  {
    name: "settings of a lorebook",
    files: ["lorebooks/LorebookFields.tsx"],
    path: "/settings/lorebooks/b1",
    savedAt: "/api/lorebooks/b1",
    open: (page) => tab(page, "Settings"),
  },
  {
    name: "test of a lorebook",
    files: ["lorebooks/LorebooksPage.tsx"],
    path: "/settings/lorebooks/b1",
    open: (page) => tab(page, "Test activation"),
  },
  { name: "name at the start", files: ["setup/SetupScreen.tsx"], path: "/welcome/name", savedAt: "/api/settings" },
  {
    name: "general",
    files: ["settings/GeneralPage.tsx", "auth/PushPanel.tsx"],
    path: "/settings/general",
    savedAt: "/api/settings",
    least: 3,
  },
  { name: "access", files: ["tailnet/TailnetPanel.tsx"], path: "/settings/privacy" },
  { name: "backups", files: ["import_export/BackupsSection.tsx"], path: "/settings/data" },
  {
    name: "price of a model",
    isDialog: true,
    files: ["usage/UsagePage.tsx"],
    path: "/settings/usage",
    open: (page) => press(page, /[Pp]rice/),
    least: 3,
  },
  ...["Identity", "Voice", "Scene", "Advanced"].map((name): Form => ({
    name: `character, ${name}`,
    files: ["character_editor/fields.tsx", "character_editor/EditorSections.tsx"],
    path: "/characters/fox/edit",
    savedAt: "/api/characters/fox",
    open: (page) => tab(page, name),
  })),
  {
    name: "entry of a character",
    files: [],
    path: "/characters/fox/edit#lorebook",
    savedAt: "/api/characters/fox",
    open: (page) => page.locator(".book-summary").first().click(),
  },
  {
    name: "new character",
    isDialog: true,
    files: ["characters/NewCharacterDialog.tsx"],
    path: "/characters",
    open: (page) => press(page, "New character"),
  },
  {
    name: "character by URL",
    isDialog: true,
    files: ["characters/GalleryScreen.tsx"],
    path: "/characters",
    open: async (page) => {
      await press(page, "More");
      await page.getByRole("menuitem", { name: "Import from a link" }).click();
    },
  },
  {
    name: "message",
    files: ["chat/messages/MessageEditForm.tsx"],
    path: "/c/c1",
    open: (page) => act(page, 0, "Edit"),
  },
  { name: "Remember", isDialog: true, files: [], path: "/c/c1", open: (page) => act(page, 1, "Remember this") },
  {
    name: "image prompt",
    isDialog: true,
    files: ["images/GenerateImageDialog.tsx"],
    path: "/c/c1",
    open: async (page) => {
      await page.getByRole("button", { name: "Generate image" }).click();
      await page.locator("#image-prompt:enabled").waitFor();
    },
  },
  {
    name: "options of a chat",
    files: ["chat/panels/OptionsPanel.tsx", "chat/panels/SamplingSection.tsx"],
    path: "/c/c1",
    savedAt: "/api/conversations/c1",
    open: (page) => press(page, "Chat options"),
  },
  {
    name: "title of a chat",
    isDialog: true,
    files: ["shell/ChatDialogs.tsx"],
    path: "/c/c1",
    open: (page) => chatMenu(page, "Rename"),
  },
  {
    name: "folder of a chat",
    isDialog: true,
    files: [],
    path: "/c/c1",
    open: (page) => chatMenu(page, "Move to folder"),
  },
  {
    name: "name of a document",
    isDialog: true,
    files: ["library/LibraryDocuments.tsx"],
    path: "/library",
    open: async (page) => {
      await press(page, "Actions for “map.md”");
      await page.getByRole("menuitem", { name: "Rename" }).click();
    },
  },
  {
    name: "arguments of a tool",
    files: ["chat/messages/ToolCallCard.tsx"],
    path: "/c/c3",
    open: openArguments,
  },
];

/** Opens the field of a tool's arguments. Where there's a draft, it opens by itself, and its button becomes Reset. */
async function openArguments(page: Page): Promise<void> {
  await expect.poll(() =>
    page.evaluate(() => {
      const buttons = document.querySelectorAll<HTMLElement>(".tool-approval button");
      [...buttons].find((button) => button.ariaLabel?.startsWith("Edit"))?.click();
      return document.querySelector(".tool-approval textarea") !== null;
    })
  ).toBe(true);
}

async function chatMenu(page: Page, item: string): Promise<void> {
  await page.locator(".chat-list, nav").getByRole("button", { name: /Forest/ }).last().click();
  await page.getByRole("menuitem", { name: new RegExp(item) }).click();
}

/** Files whose text fields aren't in these forms, and why. */
const EXEMPT: Record<string, string> = {
  "chat/composer/Composer.tsx": "the draft of a message is on the server",
  "palette/Palette.tsx": "a search",
  "characters/CardSiteScreen.tsx": "a search",
  "auth/PairScreen.tsx": "before anybody is signed in; the code is a secret",
  "memory/MemoryPage.tsx": "each change of a number is saved at once",
};

/** Files whose forms need more than a server and a model to be opened. Each field is in a `Drafted`. */
const ELSEWHERE = [
  "auth/PhoneGuide.tsx",
  "auth/TokenList.tsx",
  "chat/composer/AttachmentRows.tsx",
  "chat/composer/InsertDialog.tsx",
  "connections/ContextSizeDialog.tsx",
  "documents/DocumentReader.tsx",
  "models/ModelsPage.tsx",
  "speech/VoicePicker.tsx",
];

let browser: Browser;
let app: TestApp;
let llm: FakeLlm;
let images: FakeA1111;
beforeAll(async () => {
  await builtUi();
  browser = await openBrowser();
  images = new FakeA1111();
  llm = await openFakeLlm({ switches: { manual: "on" } });
  const tools = new FakeTools().set("lookup", () => answerText("found"));
  app = await openTestApp({ config: { discoverHosts: [] }, toolSources: [() => Promise.resolve(tools)] });
  await useModel(app, llm);
  await app.post("/api/setup/complete", {});
  await app.put("/api/image/connections", { id: "b", name: "Forge", kind: "a1111", base_url: images.url });
  const messages = [
    { id: "u1", role: "user", content: "Where are you?" },
    { id: "a1", role: "assistant", content: "A red fox looks out of the fern." },
  ];
  await app.put("/api/conversations/c1", { title: "Forest", messages });
  await uploadDocument(app, "map.md", "# Map");
  await app.put("/api/characters/fox", {
    name: "Fox",
    character_book: {
      extensions: {},
      entries: [{ keys: ["den"], content: "It is dry.", enabled: true, insertion_order: 1, extensions: {} }],
    },
  });
  await app.put("/api/presets/p1", {
    name: "Calm",
    prompts: [{ identifier: "main", name: "Main prompt", role: "system", content: "Be calm." }],
    prompt_order: [{ character_id: 100001, order: [{ identifier: "main", enabled: true }] }],
  });
  await app.put("/api/personas/me", { name: "Robin", description: "A traveler" });
  await app.put("/api/personas/end", { name: "End", description: "" });
  await startReplies();
  llm.switches.manual = "off";
  await app.put("/api/lorebooks/b1", {
    name: "Mills",
    scope: "global",
    book: { entries: [{ keys: ["mill"], content: "It grinds.", enabled: true, insertion_order: 1, extensions: {} }] },
  });
});
afterAll(async () => {
  await browser.close();
  await app[Symbol.asyncDispose]();
  await llm[Symbol.asyncDispose]();
  await images[Symbol.asyncDispose]();
});

/** A finished reply, for the usage, and one that asks for permission to call a tool. */
async function startReplies(): Promise<void> {
  const send = (id: string) =>
    app.post("/api/chat", {
      conversation_id: id,
      context: "server",
      assistant_message_id: `${id}-reply`,
      messages: [{ role: "user", content: "Look it up" }],
    });
  await app.put("/api/conversations/c2", { title: "Tool", messages: [] });
  const finished = send("c2");
  const first = await llm.nextCall();
  await first.emit("Not yet.");
  await first.finish();
  await gather(await finished);
  await app.put("/api/conversations/c3", { title: "Called", messages: [] });
  const asking = send("c3");
  const second = await llm.nextCall();
  await second.callTools({ id: "call_1", name: "lookup", arguments: '{"q":"sea"}' });
  void gather(await asking);
  await until(
    async () => (await (await app.get("/api/chat/replies")).json())[0]?.pending_calls.length > 0,
    "a call waits",
  );
}

/** A text field on the screen. */
interface Field {
  label: string;
  value: string;
  kind: "text" | "number" | "url" | "secret";
}

const FIELDS = "textarea, input:not([type=search], [type=checkbox], [type=radio], [type=file], [type=range], [hidden])";

/** Marks all text fields that can be typed in, with what is folded, and returns them. */
function readFields(page: Page): Promise<Field[]> {
  return page.evaluate((selector) => {
    const top = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
    document.querySelectorAll<HTMLElement>("[data-test-field]").forEach((field) => delete field.dataset.testField);
    top.querySelectorAll("details").forEach((each) => each.open = true);
    const fields = [...top.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>(selector)]
      .filter((field) => field.checkVisibility() && !field.disabled && !field.closest(".composer, [role=search]"));
    return fields.map((field, index) => {
      field.dataset.testField = String(index);
      const kind = field.type === "password"
        ? "secret"
        : field.type === "url"
        ? "url"
        : ["numeric", "decimal"].includes(field.inputMode)
        ? "number"
        : "text";
      return { label: field.labels?.[0]?.textContent ?? field.ariaLabel ?? "", value: field.value, kind };
    });
  }, FIELDS);
}

/** Goes to a form as a link does, without loading the page again. */
async function openForm(page: Page, { path, open, isDialog, least = 1 }: Form): Promise<Field[]> {
  const dialog = page.locator("dialog[open]");
  if (await dialog.count() > 0) await page.keyboard.press("Escape");
  await dialog.first().waitFor({ state: "detached" });
  for (const address of ["/activity", path]) {
    await page.evaluate((address) => {
      history.pushState(null, "", address);
      dispatchEvent(new PopStateEvent("popstate"));
    }, address);
    if (address !== path) await page.getByRole("heading", { name: "Activity" }).waitFor();
  }
  await open?.(page);
  if (isDialog) await dialog.locator("input, textarea").first().waitFor();
  return await eventually(() => readFields(page), (fields) => fields.length >= least);
}

/** Types into all fields of a form, also into those that appear by the typing. Returns what is in them. */
async function typeIntoAll(page: Page, form: Form, typed: (kind: Field["kind"], label: string) => string) {
  const done = new Map<string, string>();
  const todo = (fields: Field[]) => fields.findIndex(({ label }, index) => !done.has(nameOf(fields, index, label)));
  let fields = await openForm(page, form);
  for (let next = todo(fields); next >= 0; next = todo(fields)) {
    const { kind, label } = fields[next]!;
    const text = typed(kind, label);
    await page.locator(`[data-test-field="${next}"]`).fill(text);
    done.set(nameOf(fields, next, label), text);
    fields = await readFields(page);
  }
  return done;
}

/** Several fields can have the same label. */
function nameOf(fields: Field[], index: number, label: string): string {
  return `${label} ${fields.slice(0, index).filter((other) => other.label === label).length}`;
}

/** Returns the texts of all stored drafts. */
function readDrafts(page: Page): Promise<string> {
  return page.evaluate(async () => {
    const read = <T>(name: string, work: (database: IDBDatabase) => IDBRequest<T>) =>
      new Promise<T>((resolve, reject) => {
        const opening = indexedDB.open(name);
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const request = work(opening.result);
          request.onsuccess = () => (opening.result.close(), resolve(request.result));
        };
      });
    const rows = await read(
      "parlor.drafts",
      (each) => each.transaction("drafts").objectStore("drafts").getAll(),
    ) as { key: string; sealed: { iv: BufferSource; data: BufferSource } }[];
    // It's made for the first of them.
    const key = await read<CryptoKey>("parlor", (each) => each.transaction("keys").objectStore("keys").get("outbox"));
    const texts = await Promise.all(rows.map(async ({ key: name, sealed: { iv, data } }) => {
      const additionalData = new TextEncoder().encode(name);
      return new TextDecoder().decode(await crypto.subtle.decrypt({ name: "AES-GCM", iv, additionalData }, key, data));
    }));
    return texts.join("\n");
  });
}

const notice = (page: Page) => page.locator(".draft-notice");

/** Forms of one test. */
const AT_ONCE = 10;

test.each(Array.from({ length: Math.ceil(FORMS.length / AT_ONCE) }, (_, n) => n + 1))(
  "every text field of every form has its text again after the tab was killed, part %i",
  async (part) => {
    const forms = FORMS.slice((part - 1) * AT_ONCE, part * AT_ONCE);
    const { page, context } = await openPage(browser, app.url);
    await page.goto(`${app.url}/settings/general`);
    const typedInto = new Map<Form, Map<string, string>>();
    for (const form of forms) {
      const typed = await typeIntoAll(page, form, (kind, label) => {
        if (kind === "secret") return "SECRET";
        return kind === "number" ? "7" : kind === "url" ? "http://typed.example/" : `typed ${label}`;
      });
      typedInto.set(form, typed);
      const last = [...typed.values()].findLast((text) => text.startsWith("typed"));
      const isKept = async () => {
        if (last === undefined || (await readDrafts(page)).includes(last)) return true;
        return form.savedAt !== undefined && (await (await app.get(form.savedAt)).text()).includes(last);
      };
      await expect.poll(isKept, { message: form.name }).toBe(true);
    }
    // Drafts are written one after another: once this one is there, all of the others are.
    await openForm(page, { name: "end", files: [], path: "/settings/personas/end" });
    await page.getByLabel("Description").fill(`The end of part ${part}`);
    await eventually(() => readDrafts(page), (drafts) => drafts.includes(`The end of part ${part}`));
    expect(await readDrafts(page)).not.toContain("SECRET");
    await page.close();
    const again = await context.newPage();
    await again.goto(`${app.url}/settings/general`);
    for (const form of forms) {
      const expected = [...typedInto.get(form)!].map(([name, text]) => {
        const isSecret = text === "SECRET" || form.secrets?.some((label) => name === `${label} 0`);
        return `${name}: ${isSecret ? "" : text}`;
      });
      await openForm(again, form);
      const read = async () => {
        const fields = await readFields(again);
        return fields.map(({ label, value }, index) => `${nameOf(fields, index, label)}: ${value}`);
      };
      await expect.poll(read, { message: form.name }).toEqual(expect.arrayContaining(expected));
    }
    await context.close();
  },
);

test("a restored form says so, and Discard, Cancel and Save end it", async () => {
  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/connections/double`);
  const name = page.getByLabel("Name", { exact: true });
  const reopen = async () => {
    await eventually(() => readDrafts(page), (drafts) => drafts.includes("Other"));
    await page.reload();
    await notice(page).getByText("Restored what you typed.").waitFor();
    await expect.poll(() => name.inputValue()).toBe("Other");
  };
  // In this order: what is stored with the name knows of the key.
  await page.getByLabel("API key").fill("SECRET");
  await name.fill("Other");
  await reopen();
  await notice(page).getByText("aren’t kept").waitFor();
  await expect.poll(() => page.getByLabel("API key").inputValue()).toBe("");
  await expect.poll(() => findAxeProblems(page)).toEqual([]);
  await notice(page).getByRole("button", { name: "Discard" }).click();
  await expect.poll(() => name.inputValue()).toBe("Double");
  await eventually(() => readDrafts(page), (drafts) => !drafts.includes("Other"));

  await name.fill("Other");
  await reopen();
  await expect.poll(() => notice(page).innerText()).not.toContain("aren’t kept");
  await page.getByRole("link", { name: "Cancel" }).click();
  await page.getByRole("heading", { name: "Double" }).waitFor();
  await eventually(() => readDrafts(page), (drafts) => !drafts.includes("Other"));

  await page.goto(`${app.url}/settings/connections/double`);
  await name.fill("Other");
  await reopen();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("heading", { name: "Other" }).waitFor();
  await eventually(() => readDrafts(page), (drafts) => !drafts.includes("Other"));
  await context.close();
  await useModel(app, llm);
});

test("a draft doesn't overwrite what was changed elsewhere in the meantime", async () => {
  await app.put("/api/personas/ann", { name: "Ann", description: "A sailor" });
  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/personas/ann`);
  const description = page.getByLabel("Description");
  await description.fill("A sailor from Oslo");
  await eventually(() => readDrafts(page), (drafts) => drafts.includes("Oslo"));
  await page.goto(`${app.url}/settings/about`);
  const { etag } = Object.fromEntries((await app.get("/api/personas/ann")).headers);
  await app.put("/api/personas/ann", { name: "Ann", description: "A pilot" }, { headers: { "if-match": etag! } });
  await page.goto(`${app.url}/settings/personas/ann`);
  await notice(page).getByText("This was changed elsewhere after you typed here.").waitFor();
  await expect.poll(() => description.inputValue()).toBe("A pilot");
  await notice(page).getByRole("button", { name: "Show what you typed" }).click();
  await expect.poll(() => description.inputValue()).toBe("A sailor from Oslo");
  await notice(page).getByRole("button", { name: "Discard" }).click();
  await expect.poll(() => description.inputValue()).toBe("A pilot");
  await context.close();
});

test("an edit is there again after another chat was opened", async () => {
  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/c/c1`);
  await act(page, 0, "Edit");
  const field = page.locator(".message textarea");
  await field.fill("Where were you?");
  const open = (title: string) => page.getByRole("list", { name: "Chats" }).getByRole("link", { name: title }).click();
  await open("Tool");
  await field.waitFor({ state: "detached" });
  await open("Forest");
  await page.locator(".message").first().getByText("Where are you?").waitFor();
  await act(page, 0, "Edit");
  await expect.poll(() => field.inputValue()).toBe("Where were you?");
  await notice(page).getByText("Restored what you typed.").waitFor();
  await notice(page).getByRole("button", { name: "Discard" }).click();
  await context.close();
});

test("an image prompt that was typed isn't described again, and the model isn't asked", async () => {
  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/c/c1`);
  const open = () => page.getByRole("button", { name: "Generate image" }).click();
  const prompt = page.locator("#image-prompt:enabled");
  await open();
  await eventually(() => prompt.inputValue(), (text) => text !== "");
  await prompt.fill("a blue fox");
  await page.keyboard.press("Escape");
  await prompt.waitFor({ state: "detached" });
  const asked = llm.chats.length;
  await open();
  await expect.poll(() => prompt.inputValue()).toBe("a blue fox");
  await notice(page).getByText("Restored what you typed.").waitFor();
  expect(llm.chats.length).toBe(asked);
  await context.close();
});

test("a field that is opened before its draft is read gets it", async () => {
  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/c/c3`);
  const field = page.locator(".tool-approval textarea");
  await openArguments(page);
  await field.fill('{"q":"lake"}');
  await eventually(() => readDrafts(page), (drafts) => drafts.includes("lake"));
  // The button is pressed the moment it's there.
  await context.addInitScript(() =>
    new MutationObserver(() => {
      const buttons = document.querySelectorAll<HTMLElement>(".tool-approval button");
      [...buttons].find((button) => button.ariaLabel?.startsWith("Edit"))?.click();
    }).observe(document, { childList: true, subtree: true })
  );
  await page.reload();
  await notice(page).getByText("Restored what you typed.").waitFor();
  await expect.poll(() => field.inputValue()).toBe('{"q":"lake"}');
  await notice(page).getByRole("button", { name: "Discard" }).click();
  await eventually(() => readDrafts(page), (drafts) => !drafts.includes("lake"));
  await context.close();
});

test("a draft lasts 30 days, and the latest 200 are kept", async () => {
  const { page, context } = await openPage(browser, app.url);
  await page.goto(`${app.url}/settings/personas/new`);
  const description = page.getByLabel("Description");
  await description.fill("Old");
  await eventually(() => readDrafts(page), (drafts) => drafts.includes("Old"));
  const countDrafts = () =>
    page.evaluate(() =>
      new Promise<number>((resolve) => {
        const opening = indexedDB.open("parlor.drafts");
        opening.onsuccess = () => {
          const request = opening.result.transaction("drafts").objectStore("drafts").count();
          request.onsuccess = () => (opening.result.close(), resolve(request.result));
        };
      })
    );
  /** Adds drafts, and makes all older. */
  const age = (added: number, ageMs: number) =>
    page.evaluate(([added, ageMs]) =>
      new Promise<void>((resolve) => {
        const opening = indexedDB.open("parlor.drafts");
        opening.onsuccess = () => {
          const transaction = opening.result.transaction("drafts", "readwrite");
          const store = transaction.objectStore("drafts");
          const rows = store.getAll();
          rows.onsuccess = () => {
            const others = Array.from({ length: added! }, (_, n) => ({ key: `other ${n}`, time: Date.now() }));
            for (const row of [...rows.result, ...others]) store.put({ ...row, time: row.time - ageMs! });
          };
          transaction.oncomplete = () => (opening.result.close(), resolve());
        };
      }), [added, ageMs]);
  await age(210, 1000);
  await description.fill("Newer");
  await expect.poll(countDrafts).toBe(200);
  await age(0, 31 * 24 * 60 * 60 * 1000);
  await page.reload();
  await page.getByLabel("Name", { exact: true }).fill("Last");
  await expect.poll(countDrafts).toBe(1);
  await expect.poll(() => description.inputValue()).toBe("");
  await context.close();
});

test("a browser that stores nothing keeps it in the tab, without an error", async () => {
  const { page, context, errors } = await openPage(browser, app.url);
  await page.addInitScript(() => {
    IDBFactory.prototype.open = () => {
      throw new DOMException("The operation is insecure.", "SecurityError");
    };
  });
  await page.goto(`${app.url}/settings/personas/new`);
  const description = page.getByLabel("Description");
  await description.fill("Only here");
  await page.getByRole("link", { name: "Memory", exact: true }).first().click();
  await description.waitFor({ state: "detached" });
  await page.goBack();
  await expect.poll(() => description.inputValue()).toBe("Only here");
  await notice(page).getByText("Restored what you typed.").waitFor();
  expect(errors).toEqual([]);
  await context.close();
});

/** What a text field is written as, with its attributes. */
const ELEMENT = /<(?:TextField|NumberInput|AddressField|textarea|input)\b(?:[^>]|=>)*?\/?>/g;
const NOT_TYPED = /type="(?:search|password|checkbox|radio|file|range)"|isSecret/;

test("each text field of the page is in one of the forms above, or says why not", async () => {
  const root = fileURLToPath(new URL("../../../static/src/views/", import.meta.url));
  const listed = [...FORMS.flatMap(({ files }) => files), ...ELSEWHERE, ...Object.keys(EXEMPT)];
  const found: string[] = [];
  const loose: string[] = [];
  for (const file of await readdir(root, { recursive: true })) {
    if (!file.endsWith(".tsx")) continue;
    const text = await readFile(root + file, "utf8");
    if (!(text.match(ELEMENT) ?? []).some((element) => !NOT_TYPED.test(element))) continue;
    found.push(file);
    if (ELSEWHERE.includes(file) && !text.includes("<Drafted draft=")) loose.push(file);
  }
  expect([...new Set(listed)].sort()).toEqual(found.sort());
  expect(loose).toEqual([]);
});
