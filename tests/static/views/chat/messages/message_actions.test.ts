import type { Message } from "../../../../../static/src/api/types.ts";
import type { Page } from "playwright-core";
import { findAxeProblems, findSmallTargets, holdToasts } from "../../../../helpers/browser/browser.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  chooseMessageAction,
  eventually,
  type Opened,
  openMessageActions,
  openUiBench,
  PHONE,
  sendMessage,
  type UiBench,
  type UiOptions,
  WIDTHS,
} from "../../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const TALK: Partial<Message>[] = [
  { role: "user", content: "First question" },
  { role: "assistant", content: "First answer", model: "tiny" },
  { role: "user", content: "Second question" },
  {
    role: "assistant",
    content: "Second answer",
    model: "tiny",
    usage: { prompt_tokens: 1200, completion_tokens: 40 },
    timings: { predicted_per_second: 12.34 },
  },
];

async function openTalk(options: UiOptions = {}) {
  const ui = await bench.open("/c/c1", {
    ...options,
    prepare: (api) => {
      api.addConversation("c1", "Talk", TALK);
      options.prepare?.(api);
    },
  });
  // It comes with the connections and moves the messages, perhaps while a button is pressed: such a click is lost.
  await ui.page.locator(".composer-note").waitFor();
  return ui;
}

const message = (page: Page, n: number) => page.locator(`[data-message-id="c1-m${n}"]`);

/** Chooses an action of a message. */
async function choose(page: Page, n: number, label: string) {
  await message(page, n).hover();
  await chooseMessageAction(message(page, n), label);
}

const contents = (ui: Awaited<ReturnType<typeof openTalk>>) =>
  ui.api.conversations.get("c1")!.messages.map(({ content }) => content);

test("edits a message in place, and Escape cancels", async () => {
  await using ui = await openTalk();
  await choose(ui.page, 1, "Edit");
  const field = ui.page.getByRole("textbox", { name: "Message text" });
  await expect.poll(() => field.inputValue()).toBe("First answer");
  await field.fill("Never mind");
  await field.press("Escape");
  await message(ui.page, 1).getByText("First answer").waitFor();
  await choose(ui.page, 1, "Edit");
  await field.fill("A *better* answer");
  await field.press("Control+Enter");
  await message(ui.page, 1).locator("em", { hasText: "better" }).waitFor();
  await expect.poll(() => contents(ui)[1]).toBe("A *better* answer");
});

test("editing and resending adds a version, and the earlier one keeps what followed", async () => {
  await using ui = await openTalk();
  await choose(ui.page, 0, "Edit");
  await ui.page.getByRole("textbox", { name: "Message text" }).fill("Another question");
  // The composer has a "Send", too, so the accessible name tells them apart.
  await ui.page.getByRole("button", { name: "Send (resend from here)", exact: true }).click();
  await ui.page.locator(".reply", { hasText: "Hello" }).waitFor();
  await expect.poll(() => contents(ui)).toEqual(["Another question", "Hello"]);
  await expect.poll(() => ui.api.seen("POST", "/api/chat")[0]!.body).toMatchObject({
    action: "edit",
    user_message_id: "c1-m0",
  });
  await message(ui.page, 0).getByText("2/2").waitFor();
  await message(ui.page, 0).getByRole("button", { name: "Previous version" }).click();
  await ui.page.getByText("Second answer").waitFor();
  await expect.poll(() => contents(ui)).toEqual(["First question", "First answer", "Second question", "Second answer"]);
  await message(ui.page, 0).getByRole("button", { name: "Next version" }).click();
  await ui.page.locator(".reply", { hasText: "Hello" }).waitFor();
  await expect.poll(() => ui.page.locator(".message").count()).toBe(2);
});

test("Undo of a resent message stops its reply and shows what was there", async () => {
  await using ui = await openTalk({ prepare: (api) => api.script = undefined });
  await holdToasts(ui.page);
  await choose(ui.page, 0, "Edit");
  await ui.page.getByRole("textbox", { name: "Message text" }).fill("Another question");
  await ui.page.locator(".edit-form").getByRole("button", { name: "Send" }).click();
  await ui.page.getByRole("button", { name: "Stop" }).waitFor();
  await ui.page.getByRole("button", { name: "Undo" }).click();
  await ui.page.getByText("Second answer").waitFor();
  await expect.poll(() => contents(ui)).toEqual(["First question", "First answer", "Second question", "Second answer"]);
});

test("after a refused version, the chat is unchanged and the text is in the form", async () => {
  await using ui = await openTalk();
  ui.api.refuse("POST /api/chat", { status: 409, code: "conflict", message: "Another reply is running" });
  await choose(ui.page, 0, "Edit");
  const field = ui.page.getByRole("textbox", { name: "Message text" });
  await field.fill("Another question");
  await ui.page.locator(".edit-form").getByRole("button", { name: "Send" }).click();
  await ui.page.getByText("Another reply is running").waitFor();
  await ui.page.getByText("Second answer").waitFor();
  await expect.poll(() => field.inputValue()).toBe("Another question");
  await expect.poll(() => contents(ui)).toEqual(["First question", "First answer", "Second question", "Second answer"]);
});

test("versions of a temporary chat keep what followed each", async () => {
  await using ui = await bench.open("/temporary");
  await sendMessage(ui.page, "One");
  await ui.page.locator(".reply", { hasText: "Hello" }).waitFor();
  ui.api.script = ["Bye"];
  await ui.page.locator(".user-message").hover();
  await ui.page.locator(".user-message").getByRole("button", { name: "Edit" }).click();
  await ui.page.getByRole("textbox", { name: "Message text" }).fill("Two");
  await ui.page.locator(".edit-form").getByRole("button", { name: "Send" }).click();
  await ui.page.locator(".reply", { hasText: "Bye" }).waitFor();
  await ui.page.locator(".user-message").getByRole("button", { name: "Previous version" }).click();
  await ui.page.locator(".reply", { hasText: "Hello" }).waitFor();
  await ui.page.locator(".user-message", { hasText: "One" }).waitFor();
  await expect.poll(() => ui.page.locator(".message").count()).toBe(2);
});

test("shows a failed attempt to regenerate below the reply, with Retry", async () => {
  await using ui = await openTalk({
    prepare: (api) => {
      api.conversations.get("c1")!.messages[3]!.last_attempt = {
        status: "failed",
        error: { code: "upstream_error", message: "The model is out of memory" },
        created_at: new Date().toISOString(),
      };
    },
  });
  await message(ui.page, 3).getByText("Second answer").waitFor();
  await message(ui.page, 3).getByText("Couldn’t regenerate the reply.").waitFor();
  await message(ui.page, 3).getByText("The model is out of memory").waitFor();
  await message(ui.page, 3).getByRole("button", { name: "Retry" }).click();
  await message(ui.page, 3).getByText("Hello").waitFor();
});

test("shows a failed Continue of a stopped reply, which Continue tries again", async () => {
  await using ui = await openTalk({
    prepare: (api) => {
      Object.assign(api.conversations.get("c1")!.messages[3]!, {
        status: "stopped",
        last_attempt: {
          action: "continue",
          status: "failed",
          error: { code: "upstream_error", message: "The model is out of memory" },
          created_at: new Date().toISOString(),
        },
      });
      api.script = [", and more."];
    },
  });
  const reply = message(ui.page, 3);
  await reply.getByText("Couldn’t continue the reply. It is unchanged.").waitFor();
  await reply.getByText("The model is out of memory").waitFor();
  await reply.locator(".ending").getByRole("button", { name: "Continue" }).click();
  await reply.getByText("Second answer, and more.", { exact: true }).waitFor();
});

/**
 * Changes a message on another device while the first save of message 1 is on its way, and without an event: before,
 * the page might read the change, as it does when its first stream begins.
 */
async function changeDuringSave({ page, api }: Opened, n: number): Promise<void> {
  let isFirst = true;
  await page.route("**/api/conversations/c1/messages/c1-m1", async (route) => {
    if (isFirst && route.request().method() === "PATCH") {
      isFirst = false;
      const conversation = api.conversations.get("c1")!;
      conversation.messages[n]!.content = "From the phone";
      conversation.revision++;
    }
    await route.continue();
  });
}

test("explains a conflict with another device's edit before it overwrites", async () => {
  await using ui = await openTalk();
  await choose(ui.page, 1, "Edit");
  const field = ui.page.getByRole("textbox", { name: "Message text" });
  await field.fill("Mine");
  await changeDuringSave(ui, 1);
  await field.press("Control+Enter");
  await ui.page.getByText("This message was changed on another device.").waitFor();
  await ui.page.locator(".notice").getByText("From the phone").waitFor();
  await expect.poll(async () => [await field.inputValue(), contents(ui)[1]]).toEqual(["Mine", "From the phone"]);
  await field.press("Control+Enter");
  await field.waitFor({ state: "detached" });
  await expect.poll(() => contents(ui)[1]).toBe("Mine");
});

test("saves an edit although another device changed another message", async () => {
  await using ui = await openTalk();
  await choose(ui.page, 1, "Edit");
  await changeDuringSave(ui, 3);
  await ui.page.getByRole("textbox", { name: "Message text" }).fill("Mine");
  await ui.page.getByRole("button", { name: "Save", exact: true }).click();
  await message(ui.page, 3).getByText("From the phone").waitFor();
  await eventually(() => contents(ui)[1], (text) => text === "Mine");
});

test("regenerating keeps the previous version, and Alt with an arrow key switches", async () => {
  await using ui = await openTalk();
  await message(ui.page, 3).getByRole("button", { name: "Regenerate" }).waitFor();
  await ui.page.keyboard.press("Alt+r");
  const last = message(ui.page, 3);
  await last.locator(".prose", { hasText: "Hello" }).waitFor();
  await last.getByText("2/2").waitFor();
  await last.getByRole("button", { name: "Regenerate" }).waitFor(); // The version stays until the reply has ended.
  await ui.page.keyboard.press("Alt+ArrowLeft");
  await last.locator(".prose", { hasText: "Second answer" }).waitFor();
  await last.getByText("1/2").waitFor();
  await expect.poll(() => last.getByRole("button", { name: "Previous version" }).isDisabled()).toBe(true);
  await last.getByRole("button", { name: "Next version" }).click();
  await last.locator(".prose", { hasText: "Hello" }).waitFor();

  // While typing, Alt with an arrow key moves by words.
  const box = ui.page.getByLabel("Message", { exact: true });
  await box.fill("some words");
  await box.press("Alt+ArrowLeft");
  await last.getByText("2/2").waitFor();
});

test("Alt C continues the last reply", async () => {
  await using ui = await openTalk({ prepare: (api) => api.script = [", and more."] });
  await message(ui.page, 3).waitFor();
  await ui.page.keyboard.press("Alt+c");
  await message(ui.page, 3).getByText("Second answer, and more.", { exact: true }).waitFor();
});

test("the up arrow in an empty composer edits the user's last message", async () => {
  await using ui = await openTalk();
  await message(ui.page, 3).waitFor();
  await ui.page.getByLabel("Message", { exact: true }).press("ArrowUp");
  const field = ui.page.getByRole("textbox", { name: "Message text" });
  await expect.poll(() => field.inputValue()).toBe("Second question");
  await expect.poll(() => message(ui.page, 2).locator("textarea").count()).toBe(1);
});

test("Undo restores a deleted message in its place, on every device", async () => {
  await using ui = await openTalk();
  await using other = await bench.open("/c/c1", { api: ui.api });
  await message(other.page, 1).waitFor();
  await holdToasts(ui.page);
  await choose(ui.page, 1, "Delete");
  await message(ui.page, 1).waitFor({ state: "detached" });
  await message(other.page, 1).waitFor({ state: "detached" });
  await ui.page.getByRole("button", { name: "Undo" }).click();
  await message(ui.page, 1).waitFor();
  await message(other.page, 1).waitFor();
  await expect.poll(() => contents(ui)).toEqual(TALK.map(({ content }) => content));
});

test("after deleting a message by keyboard, its neighbor has the focus", async () => {
  await using ui = await openTalk();
  const more = (n: number) => message(ui.page, n).getByRole("button", { name: "Message actions" });
  await more(2).focus();
  await ui.page.keyboard.press("Enter");
  await ui.page.getByRole("menuitem", { name: "Delete", exact: true }).focus();
  await ui.page.keyboard.press("Enter");
  await message(ui.page, 2).waitFor({ state: "detached" });
  await eventually(() => more(1).evaluate((button) => button === document.activeElement), (isFocused) => isFocused);
});

test("deletes a message and all after it, and Undo restores them", async () => {
  await using ui = await openTalk();
  await holdToasts(ui.page);
  await choose(ui.page, 1, "Delete from here");
  await message(ui.page, 3).waitFor({ state: "detached" });
  await expect.poll(() => contents(ui)).toEqual(["First question"]);
  await ui.page.getByRole("button", { name: "Undo" }).click();
  await message(ui.page, 3).waitFor();
  await expect.poll(() => contents(ui)).toEqual(TALK.map(({ content }) => content));
});

test("keeps a message whose deletion was refused, with the reason", async () => {
  await using ui = await openTalk();
  ui.api.refuse("DELETE /api/conversations/c1/messages/c1-m1", { status: 409, code: "conflict", message: "Busy now" });
  await choose(ui.page, 1, "Delete");
  await ui.page.getByRole("alert").getByText("Busy now").waitFor();
  await expect.poll(() => message(ui.page, 1).count()).toBe(1);
});

test("marks a hidden message, and doesn't send it", async () => {
  await using ui = await openTalk();
  await choose(ui.page, 1, "Hide from the model");
  await message(ui.page, 1).getByText("Hidden from the model").waitFor();
  await expect.poll(() => ui.api.conversations.get("c1")!.messages[1]!.hidden).toBe(true);
  await choose(ui.page, 1, "Show to the model");
  await message(ui.page, 1).getByText("Hidden from the model").waitFor({ state: "detached" });
});

test("a branch is a new chat, and both link to each other", async () => {
  await using ui = await openTalk();
  await choose(ui.page, 1, "Branch from here");
  await ui.page.waitForURL(`${ui.api.origin}/c/c1-fork`);
  await ui.page.getByRole("link", { name: "Branch of “Talk”" }).waitFor();
  await expect.poll(() => ui.page.locator(".message").count()).toBe(2);
  await ui.page.getByRole("link", { name: "Branch of “Talk”" }).click();
  await ui.page.waitForURL(`${ui.api.origin}/c/c1#c1-m1`);
  await message(ui.page, 1).getByRole("link", { name: "Branch: Talk" }).waitFor();
});

test("the details of a reply show its model, tokens and speed, and whether a restart cut it", async () => {
  await using ui = await openTalk();
  const reply = ui.api.conversations.get("c1")!.messages[3]!;
  reply.continued_after_restart = true;
  await ui.page.reload();
  await choose(ui.page, 3, "Details");
  const details = ui.page.getByRole("dialog", { name: "Details" });
  for (const text of ["tiny", "1,200", "40", "12.3 tokens per second", "after a restart of Parlor"]) {
    await details.getByText(text, { exact: true }).waitFor();
  }
  await ui.page.keyboard.press("Escape");
  await details.waitFor({ state: "detached" });
});

test("the details of a reply list what its prompt left out", async () => {
  await using ui = await openTalk();
  const { messages } = ui.api.conversations.get("c1")!;
  messages[3]!.context_use = {
    size: 4096,
    tokens: 4000,
    reply_tokens: 90,
    parts: [],
    first_message_id: messages[2]!.id,
    left_out: {
      messages: 12,
      pieces: [{ kind: "examples", tokens: 700 }],
      lorebook_entries: [{ lorebook_name: "Harbor", entry_name: "Ferry", reason: "probability" }],
    },
  };
  messages[3]!.documents = [{
    id: "d1",
    use: "auto",
    sent: { id: "d1", name: "Plan", use: "auto", pages: "3-5", page_count: 40, unit: "page", tokens: 100 },
  }];
  await ui.page.reload();
  await choose(ui.page, 3, "Details");
  const list = ui.page.getByRole("dialog", { name: "Details" }).getByRole("region", { name: "Not sent" });
  for (const text of ["Documents: Plan (3 of 40 pages sent)", "Example dialogue (700 tokens)"]) {
    await list.getByText(text, { exact: true }).waitFor();
  }
  await list.getByText("Harbor: Ferry (skipped by probability)").waitFor();
  await list.getByText("12 messages at the start").click();
  await list.getByText("and 10 before these").waitFor();
  // By number and first words, and each leads to its message.
  await expect.poll(() => list.locator(".left-out-messages li").allInnerTexts()).toEqual([
    `11 ${String(messages[0]!.content).slice(0, 80)}`,
    `12 ${String(messages[1]!.content).slice(0, 80)}`,
  ]);
  await list.getByRole("link", { name: "12", exact: true }).click();
  await ui.page.waitForURL(`${ui.api.origin}/c/c1#${messages[1]!.id}`);
});

test("actions appear on hover or focus, and the keyboard reaches them", async () => {
  await using ui = await openTalk();
  const bar = message(ui.page, 1).locator(".message-actions");
  const opacity = () => bar.evaluate((element) => getComputedStyle(element).opacity);
  await ui.page.mouse.move(2, 2);
  await eventually(opacity, (value) => value === "0");
  await message(ui.page, 1).hover();
  await eventually(opacity, (value) => value === "1");
  await ui.page.mouse.move(2, 2);
  await bar.getByRole("button").first().focus();
  await eventually(opacity, (value) => value === "1");
});

test.each([["next to each other", {}], ["on phones one below the other", PHONE]])(
  "compares two versions of a reply, %s, and shows one of them in the chat",
  async (_, options) => {
    await using ui = await openTalk({
      ...options,
      prepare: (api) => {
        const last = api.conversations.get("c1")!.messages[3]!;
        Object.assign(last, { content: "The red boat sails.", variant_count: 3, active_variant: 2 });
        api.variants.set("c1-m3", ["Something else.", "The blue boat sails.", "The red boat sails."]);
      },
    });
    const { page, api } = ui;
    await message(page, 3).hover();
    await message(page, 3).getByRole("button", { name: "Compare versions" }).press("Enter");
    const dialog = page.getByRole("dialog", { name: "Compare versions" });
    const [left, right] = ["First version", "Second version"].map((name) => dialog.getByRole("region", { name }));
    await left!.getByText("blue", { exact: true }).waitFor();
    await expect.poll(() => left!.locator("del").allInnerTexts()).toEqual(["blue"]);
    await expect.poll(() => right!.locator("ins").allInnerTexts()).toEqual(["red"]);
    // While the dialog moves into its place, so do both.
    await expect.poll(async () => {
      const [one, other] = [(await left!.boundingBox())!, (await right!.boundingBox())!];
      return "isMobile" in options ? other.y >= one.y + one.height : other.x >= one.x + one.width;
    }).toBe(true);
    await expect.poll(() => findAxeProblems(page)).toEqual([]);
    if ("isMobile" in options) await expect.poll(() => findSmallTargets(page)).toEqual([]);
    await right!.getByRole("button", { name: "Shown in chat" }).waitFor();
    await left!.getByRole("combobox").selectOption("0");
    await left!.getByText("Something else").waitFor();
    await left!.getByRole("button", { name: "Show in chat" }).click();
    await dialog.waitFor({ state: "detached" });
    await eventually(() => api.conversations.get("c1")!.messages[3]!.active_variant, (n) => n === 0);
    await message(page, 3).getByText("Something else.").waitFor();
  },
);

test.each(WIDTHS)("the menu of a message has only what has no button, %s", async (width, options) => {
  await using ui = await openTalk(options);
  const { page } = ui;
  const has = { own: ["Copy", "Edit"], reply: width === "narrow" ? ["Regenerate"] : ["Copy", "Edit", "Regenerate"] };
  for (const [n, buttons] of [[2, has.own], [3, has.reply]] as const) {
    const bar = message(page, n).getByRole("group", { name: "Message actions" });
    await openMessageActions(message(page, n));
    await page.getByRole("menuitem").first().waitFor();
    const items = await page.getByRole("menuitem").allInnerTexts();
    const listNames = () => bar.locator("button").evaluateAll((all) => all.map((button) => button.ariaLabel ?? ""));
    await expect.poll(listNames).toEqual(expect.arrayContaining([...buttons]));
    const names = await listNames();
    expect(items.map((item) => item.trim()).filter((item) => names.includes(item))).toEqual([]);
    expect(items.some((item) => item.includes("Read aloud"))).toBe(!names.includes("Read aloud"));
    await page.keyboard.press("Escape");
    await page.getByRole("menuitem").first().waitFor({ state: "detached" });
  }
});

test("on phones all actions are in a sheet, and a swipe switches the version", async () => {
  await using ui = await openTalk({
    ...PHONE,
    prepare: (api) => {
      const last = api.conversations.get("c1")!.messages[3]!;
      Object.assign(last, { variant_count: 2, active_variant: 0 });
      api.variants.set("c1-m3", ["Second answer", "The other answer"]);
    },
  });
  const first = message(ui.page, 1);
  await first.waitFor();
  await expect.poll(() => first.getByRole("button").count()).toBe(1);
  await first.getByRole("button", { name: "Message actions" }).tap();
  const sheet = ui.page.getByRole("dialog");
  await sheet.getByRole("menuitem", { name: "Copy" }).waitFor();
  const lowerEdge = async () => {
    const { y, height } = (await sheet.boundingBox())!;
    return Math.round(y + height);
  };
  await eventually(lowerEdge, (edge) => edge === 844);
  await ui.page.keyboard.press("Escape");

  const swipe = (from: number, to: number) =>
    message(ui.page, 3).evaluate((element, [from, to]) => {
      const touch = (clientX: number) => new Touch({ identifier: 1, target: element, clientX, clientY: 300 });
      element.dispatchEvent(new TouchEvent("touchstart", { touches: [touch(from!)], bubbles: true }));
      element.dispatchEvent(new TouchEvent("touchend", { changedTouches: [touch(to!)], bubbles: true }));
    }, [from, to]);
  await swipe(300, 290);
  await message(ui.page, 3).getByText("1/2").waitFor();
  await swipe(300, 120);
  await message(ui.page, 3).getByText("The other answer").waitFor();
  await swipe(120, 300);
  await message(ui.page, 3).getByText("Second answer").waitFor();
});
