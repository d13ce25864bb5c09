import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { holdToasts } from "../../../../helpers/browser/browser.ts";
import { eventually, openUiBench, sendMessage, type UiBench, WIDTHS } from "../../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const STORY = [{ role: "user", content: "Tell me a story" }, { role: "assistant", content: "Once upon a time." }];
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Opens the story, and waits for it: the composer is there before, without the commands that act on messages. */
async function openStory() {
  const ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  await ui.page.getByText("Once upon a time.").first().waitFor();
  return ui;
}

const box = (page: Page) => page.getByLabel("Message", { exact: true });

/** Dispatches a drop or a paste of files on an element. */
async function give(page: Page, kind: "drop" | "paste", files: { name: string; type: string; base64: string }[]) {
  await box(page).evaluate((element, [kind, files]) => {
    const data = new DataTransfer();
    for (const { name, type, base64 } of files) {
      const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
      data.items.add(new File([bytes], name, { type }));
    }
    const options = { bubbles: true, cancelable: true };
    element.dispatchEvent(
      kind === "drop"
        ? new DragEvent("drop", { ...options, dataTransfer: data })
        : new ClipboardEvent("paste", { ...options, clipboardData: data }),
    );
  }, [kind, files] as const);
}

test.each(["drop", "paste"] as const)("sends an image added by %s with the message", async (kind) => {
  await using ui = await openStory();
  await box(ui.page).waitFor();
  await give(ui.page, kind, [{ name: "dot.png", type: "image/png", base64: PIXEL }]);
  await ui.page.getByRole("img", { name: "dot.png" }).waitFor();
  await sendMessage(ui.page, "What is this?");
  await ui.page.getByRole("img", { name: "Image 1" }).waitFor();
  // The page shows it before the server has it.
  const { content } = (await eventually(() => ui.api.conversations.get("c1")!.messages[2], (sent) => !!sent))!;
  const [name] = [...ui.api.attachments.keys()];
  expect(name).toMatch(/^[0-9a-f-]{36}\.png$/);
  const image_url = { url: `/api/attachments/${name}` };
  expect(content).toEqual([{ type: "text", text: "What is this?" }, { type: "image_url", image_url }]);
  await expect.poll(() => ui.page.locator(".image-row").count()).toBe(0);
  expect([ui.errors, ui.foreign]).toEqual([[], []]);
});

const BMP = "Qk06AAAAAAAAADYAAAAoAAAAAQAAAAEAAAABABgAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAD/AA==";
/** Two by two pixels. */
const AVIF =
  "AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUIAAADybWV0YQAAAAAAAAAoaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAAAGxpYmF2aWYA" +
  "AAAADnBpdG0AAAAAAAEAAAAeaWxvYwAAAABEAAABAAEAAAABAAABGgAAAB0AAAAoaWluZgAAAAAAAQAAABppbmZlAgAAAAABAABhdjAxQ29sb3IA" +
  "AAAAamlwcnAAAABLaXBjbwAAABRpc3BlAAAAAAAAAAIAAAACAAAAEHBpeGkAAAAAAwgICAAAAAxhdjFDgQ0MAAAAABNjb2xybmNseAACAAIAAYAA" +
  "AAAXaXBtYQAAAAAAAAABAAEEAQKDBAAAACVtZGF0EgAKCBgANogQEAwgMg8f8D///8WfhwB8+ErK42A=";

test("converts BMP and AVIF to PNG, and says what to do with HEIC, which this browser can't read", async () => {
  await using ui = await openStory();
  await box(ui.page).waitFor();
  await holdToasts(ui.page);
  await give(ui.page, "drop", [
    { name: "a.bmp", type: "image/bmp", base64: BMP },
    { name: "b.avif", type: "image/avif", base64: AVIF },
    { name: "IMG_1.HEIC", type: "", base64: BMP.slice(4) },
  ]);
  await ui.page.getByText("Most Compatible").waitFor();
  for (const name of ["a.bmp", "b.avif"]) await ui.page.getByRole("img", { name }).waitFor();
  await sendMessage(ui.page, "What is this?");
  await eventually(() => ui.api.attachments.size, (count) => count === 2);
  expect([...ui.api.attachments.keys()].every((name) => name.endsWith(".png"))).toBe(true);
  expect(ui.errors).toEqual([]);
});

test("shows why an image was refused, and restores the images of a refused message", async () => {
  await using ui = await openStory();
  await box(ui.page).waitFor();
  ui.api.refuse("PUT /api/attachments/*", { status: 413, code: "too_large", message: "The picture is too large" });
  await give(ui.page, "drop", [{ name: "a.png", type: "image/png", base64: PIXEL }]);
  await ui.page.getByText("The picture is too large").waitFor();
  await expect.poll(() => ui.page.locator(".image-row").count()).toBe(0);
  ui.api.allow("PUT /api/attachments/*");
  await give(ui.page, "drop", [{ name: "b.png", type: "image/png", base64: PIXEL }]);
  ui.api.refuse("POST /api/chat", { status: 503, code: "not_available", message: "No connection is active" });
  await sendMessage(ui.page, "Look");
  await ui.page.getByRole("alert").getByText("No connection is active").waitFor();
  await ui.page.getByRole("img", { name: "b.png" }).waitFor();
  await expect.poll(() => box(ui.page).inputValue()).toBe("Look");
});

test("removes an image, and sends one without text", async () => {
  await using ui = await openStory();
  await box(ui.page).waitFor();
  const send = ui.page.getByRole("button", { name: "Send" });
  await give(ui.page, "paste", [{ name: "a.png", type: "image/png", base64: PIXEL }]);
  await ui.page.getByRole("button", { name: "Remove a.png" }).click();
  await expect.poll(() => send.isDisabled()).toBe(true);
  await give(ui.page, "paste", [{ name: "b.png", type: "image/png", base64: PIXEL }]);
  await send.click();
  await ui.page.getByRole("img", { name: "Image 1" }).waitFor();
});

test.each(WIDTHS)("toasts stand above the composer, as wide as it, and cover nothing (%s)", async (width, form) => {
  await using ui = await bench.open("/c/c1", {
    ...form,
    prepare: (api) =>
      api.addConversation("c1", "Long", [
        ...Array.from({ length: 30 }, (_, n) => ({ role: "user" as const, content: `Message ${n}` })),
        { role: "assistant", content: "The last reply" },
      ]),
  });
  const { page } = ui;
  await page.getByText("The last reply").waitFor();
  await holdToasts(page);
  const boxOf = async (selector: string) => (await page.locator(selector).last().boundingBox())!;
  await give(page, "drop", [{ name: "a.bin", type: "", base64: btoa("\x00\x01\xff") }]);
  const toast = page.locator(".toasts .toast");
  await toast.waitFor();
  const folder = Deno.env.get("SCREENSHOTS");
  if (folder) await page.screenshot({ path: `${folder}/toast-${width}.png` });
  // The end of the chat stays in sight above it.
  await eventually(
    async () => {
      const [at, actions, column] = [
        await boxOf(".toast"),
        await boxOf(".reply .message-actions"),
        await boxOf(".composer-area .column"),
      ];
      return { isBelow: at.y >= actions.y + actions.height, isAbove: at.y + at.height <= column.y, at, column };
    },
    ({ isBelow, isAbove, at, column }) =>
      isBelow && isAbove && at.x >= column.x && at.x + at.width <= column.x + column.width,
  );
  await box(page).fill("Next");
  await page.keyboard.press("Control+Enter");
  await toast.waitFor({ state: "detached" });
});

test("attaches text files and long pastes, inserts a text file in a temporary chat, refuses other files", async () => {
  await using ui = await openStory();
  const names = ["a.ts", `${"word ".repeat(9).trim()}.txt`];
  let count = 0;
  await ui.page.route(/\/api\/documents\?id=/, (route) => {
    const name = names[count++];
    const document = {
      id: `d${count}`,
      name,
      content_type: "text/plain",
      state: "ready",
      unit: "page",
      pages: 1,
      tokens: 3,
      size_bytes: 9,
      ledger: [],
    };
    return route.fulfill({ status: 201, json: { ...document, created_at: new Date().toISOString() } });
  });
  await box(ui.page).fill("Before");
  const source = "const x = 1;\n```\n";
  await give(ui.page, "drop", [{ name: "a.ts", type: "", base64: btoa(source) }]);
  const chips = ui.page.locator(".document-chip");
  await chips.getByText("a.ts").waitFor();
  await eventually(() => count, (sent) => sent === 1); // A chip is shown before its file is sent.
  await give(ui.page, "drop", [{ name: "a.bin", type: "", base64: btoa("\x00\x01\xff") }]);
  await ui.page.getByText("“a.bin” isn’t an image or a text file").waitFor();
  const paste = (text: string) =>
    box(ui.page).evaluate((element, text) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", text);
      return element.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData }));
    }, text);
  expect(await paste("short")).toBe(true);
  const long = "word ".repeat(1000);
  await holdToasts(ui.page);
  expect(await paste(long)).toBe(false);
  await chips.getByText(names[1]!).waitFor();
  await expect.poll(() => box(ui.page).inputValue()).toBe("Before");
  await eventually(() => count, (sent) => sent === 2);
  await ui.page.getByRole("button", { name: "Insert as text" }).click();
  await eventually(() => box(ui.page).inputValue(), (text) => text === `Before\n\n${long}`);
  await expect.poll(() => chips.count()).toBe(1);

  await ui.page.goto(`${ui.api.origin}/temporary`);
  await box(ui.page).fill("Before after");
  await box(ui.page).evaluate((area: HTMLTextAreaElement) => area.setSelectionRange(6, 6));
  await give(ui.page, "drop", [{ name: "a.ts", type: "", base64: btoa(source) }]);
  await eventually(
    () => box(ui.page).inputValue(),
    (text) => text === "Before\n\na.ts\n\n````ts\nconst x = 1;\n```\n````\n\nafter",
  );
});

test("/ opens the commands; arrow keys, Enter and Escape work in the list", async () => {
  await using ui = await openStory();
  await box(ui.page).pressSequentially("/");
  const list = ui.page.getByRole("listbox", { name: "Commands" });
  await list.waitFor();
  await expect.poll(() => list.getByRole("option").count()).toBeGreaterThan(8);
  await box(ui.page).pressSequentially("reg");
  await expect.poll(() => list.getByRole("option").allInnerTexts()).toEqual([expect.stringContaining("/regenerate")]);
  await expect.poll(() => box(ui.page).getAttribute("aria-activedescendant")).toBe("composer-commands-regenerate");
  await box(ui.page).press("Escape");
  await list.waitFor({ state: "detached" });
  await box(ui.page).fill("/");
  await list.waitFor();
  await box(ui.page).press("ArrowUp");
  await box(ui.page).press("ArrowDown");
  await box(ui.page).press("Enter");
  await ui.page.waitForURL(`${ui.api.origin}/new`);
  await expect.poll(() => ui.api.seen("POST", "/api/chat")).toEqual([]);
});

test("a draft from another device opens the commands only when it is edited", async () => {
  await using ui = await openStory();
  await ui.page.getByText("Tell me a story").first().waitFor();
  ui.api.setDraft("c1", "/");
  await eventually(() => box(ui.page).inputValue(), (text) => text === "/");
  // Set in the same render as the text, before the list has loaded.
  await expect.poll(() => box(ui.page).getAttribute("aria-controls")).toBeNull();
  await box(ui.page).press("End");
  await box(ui.page).pressSequentially("reg");
  await ui.page.getByRole("listbox", { name: "Commands" }).waitFor();
});

test("commands act on the chat and empty the composer", async () => {
  await using ui = await openStory();
  const run = async (text: string) => {
    await box(ui.page).fill(text);
    await box(ui.page).press("Enter");
  };
  await run("/title A better name");
  await ui.page.getByRole("heading", { name: "A better name" }).waitFor();
  await eventually(() => ui.api.conversations.get("c1")!.title, (title) => title === "A better name");
  await run("/model other-model");
  await ui.page.getByRole("button", { name: "Model: other-model" }).waitFor();
  await eventually(() => ui.api.conversations.get("c1")!.model, (model) => model === "other-model");
  await run("/hide");
  await ui.page.getByText("Hidden from the model").waitFor();
  await run("/regenerate");
  await ui.page.locator(".reply", { hasText: "Hello" }).waitFor();
  await ui.page.getByRole("button", { name: "Send" }).waitFor(); // A reply that is being written isn't deleted.
  await run("/search story");
  await ui.page.locator(".chat-search-count").getByText("1 of 1").waitFor();
  await ui.page.keyboard.press("Escape");
  await run("/delete");
  await ui.page.locator(".reply").waitFor({ state: "detached" });
  await expect.poll(() => box(ui.page).inputValue()).toBe("");
});

test("commands select the persona, generate an image and open the character's lorebook", async () => {
  await using ui = await bench.open("/c/c1", {
    prepare: (api) => {
      api.people.addPersona("robin", "Robin");
      api.people.add("fox", { name: "Fox" });
      Object.assign(api.addConversation("c1", "Chat", STORY), { participants: [{ character_id: "fox" }] });
    },
  });
  const backend = { id: "a", name: "A", kind: "a1111", base_url: "http://a.test", defaults: {}, active: true };
  await ui.page.route("**/api/image/connections", (route) => route.fulfill({ json: [{ ...backend, has_key: false }] }));
  await ui.page.getByText("Once upon a time.").waitFor();
  const run = async (text: string) => {
    await box(ui.page).fill(text);
    await box(ui.page).press("Enter");
  };
  await run("/persona rob");
  await eventually(() => ui.api.conversations.get("c1")!.persona_id, (id) => id === "robin");
  await run("/persona nobody");
  await ui.page.getByText("No persona’s name starts with “nobody”").waitFor();
  await run("/image a lighthouse at night");
  const dialog = ui.page.getByRole("dialog", { name: "Generate image" });
  await eventually(() => dialog.getByLabel("Image prompt").inputValue(), (text) => text === "a lighthouse at night");
  await dialog.getByRole("button", { name: "Close" }).click();
  await expect.poll(() => ui.api.seen("POST", "/api/chat")).toEqual([]);
  await run("/lorebook");
  await ui.page.getByRole("tab", { name: "Lorebook", selected: true }).waitFor();
});

test("without a character there is no lorebook command, and /persona alone opens the personas", async () => {
  await using ui = await openStory();
  await box(ui.page).fill("/l");
  await ui.page.getByRole("listbox", { name: "Commands" }).waitFor({ state: "detached" });
  await box(ui.page).fill("/persona");
  await box(ui.page).press("Enter");
  await ui.page.waitForURL(/\/settings\/personas$/);
});

test("sends an unknown command as a message, with its slash", async () => {
  await using ui = await openStory();
  await sendMessage(ui.page, "/nonesuch thing");
  await ui.page.locator(".user-text", { hasText: "/nonesuch thing" }).waitFor();
});

test("typing continues while a reply streams, and stays when it ends", async () => {
  await using ui = await openStory();
  await box(ui.page).waitFor();
  const reply = ui.api.startReply("c1", "r1");
  reply.say("One ");
  await ui.page.getByText("One").last().waitFor();
  await box(ui.page).pressSequentially("Next thought");
  reply.say("two.");
  reply.end("complete");
  await ui.page.getByRole("button", { name: "Send" }).waitFor();
  await expect.poll(() => box(ui.page).inputValue()).toBe("Next thought");
  await expect.poll(() => box(ui.page).evaluate((element) => element === document.activeElement)).toBe(true);
});

test("the composer grows to two fifths of the page and then scrolls", async () => {
  await using ui = await openStory();
  await box(ui.page).fill(Array.from({ length: 80 }, (_, n) => `Line ${n}`).join("\n"));
  await expect.poll(async () => Math.round((await box(ui.page).boundingBox())!.height)).toBe(320);
});
