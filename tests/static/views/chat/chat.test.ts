/** @slow Every action of a chat is done on its own page. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { findAxeProblems, holdToasts } from "../../../helpers/browser/browser.ts";
import { eventually, openUiBench, PHONE, sendMessage, type UiBench } from "../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const STORY = [{ role: "user", content: "Tell me a story" }];

test("a first message creates a chat with a URL, and shows its reply as it arrives", async () => {
  await using ui = await bench.open("/new", { prepare: (api) => api.script = undefined });
  const { page, api } = ui;
  await sendMessage(page, "Hello there");
  await page.getByText(/^Waiting for the model, \d+:\d\d$/).waitFor();
  expect(new URL(page.url()).pathname).toMatch(/^\/c\/[0-9a-f-]{36}$/);
  const reply = await eventually(() => [...api.replies.values()][0], (each) => each !== undefined);
  reply!.say("One **two");
  await page.locator(".reply .prose", { hasText: "One **two" }).waitFor();
  reply!.say("** three");
  await page.locator(".reply .prose strong", { hasText: "two" }).waitFor();
  reply!.end("complete");
  await page.getByRole("button", { name: "Send" }).waitFor();
  await page.getByRole("link", { name: "Hello there" }).waitFor();
  expect(ui.errors).toEqual([]);
  expect(ui.foreign).toEqual([]);
});

test("sends only the message with its ids: the server has the history", async () => {
  const history = [{ role: "user", content: "One" }, { role: "assistant", content: "Two" }];
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", history) });
  await sendMessage(ui.page, "Three");
  await ui.page.locator(".reply", { hasText: "Hello" }).waitFor();
  const [request] = ui.api.seen("POST", "/api/chat");
  expect(request!.headers.get("x-parlor-page")).toBe(ui.api.origin);
  expect(request!.body).toMatchObject({ conversation_id: "c1", stream: true, context: "server" });
  const { user_message_id, assistant_message_id, messages } = request!.body as Record<string, string>;
  expect(messages).toEqual([{ role: "user", content: "Three" }]);
  expect(new Set([user_message_id, assistant_message_id]).size).toBe(2);
});

test("resumes a reply after a reload without losing or repeating text", async () => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  const reply = ui.api.startReply("c1", "r1");
  reply.say("Once upon ");
  const prose = ui.page.locator(".reply .prose");
  await prose.getByText("Once upon").waitFor();
  await ui.page.reload();
  await prose.getByText("Once upon").waitFor();
  reply.say("a time.");
  await prose.getByText("Once upon a time.", { exact: true }).waitFor();
  reply.end("complete");
  await ui.page.getByRole("button", { name: "Regenerate" }).waitFor();
  await expect.poll(() => prose.innerText()).toBe("Once upon a time.");
});

test("shows a lost connection in one line, and requests the exact rest", async () => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  const reply = ui.api.startReply("c1", "r1");
  reply.say("Before the cut, ");
  // Sent after the page has attached to the stream.
  await eventually(() => ui.api.seen("GET", "/api/chat/replies/r1").length, (count) => count > 0);
  reply.say("so far, ");
  await ui.page.getByText("Before the cut, so far,").waitFor();
  ui.api.refuse("GET /api/chat/replies/r1", { status: 502, code: "bad_gateway", message: "A proxy without a server" });
  ui.api.cutReplies();
  await ui.page.locator(".reply-state", { hasText: "Connection lost" }).waitFor();
  reply.say("after it.");
  ui.api.allow("GET /api/chat/replies/r1");
  await ui.page.locator(".reply .prose").getByText("Before the cut, so far, after it.", { exact: true }).waitFor();
  // The change feed was disconnected, too, and reloads the whole reply when it reconnects.
  const places = ui.api.seen("GET", "/api/chat/replies/r1").map(({ headers }) => headers.get("last-event-id"));
  expect(places).toContainEqual(expect.stringMatching(/\.2\.24\.0$/));
});

test("shows another device's reply live, and can stop it", async () => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  await ui.page.getByText("Tell me a story").first().waitFor();
  const reply = ui.api.startReply("c1", "r1");
  reply.say("From elsewhere");
  await ui.page.getByText("From elsewhere").waitFor();
  await ui.page.getByRole("img", { name: "Reply in progress" }).waitFor();
  await ui.page.locator(".composer").getByRole("button", { name: "Stop" }).click();
  await ui.page.locator(".ending", { hasText: "Stopped" }).waitFor();
  expect(reply.message.status).toBe("stopped");
});

test("shows why a reply failed, and Retry asks again for the same message", async () => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  const reply = ui.api.startReply("c1", "r1");
  reply.say("It began");
  reply.end("failed", { code: "upstream_error", message: "The model went away", request_id: "req-9" });
  const ending = ui.page.locator(".ending");
  await ending.getByText("The model went away").waitFor();
  await ending.getByText("Details").click();
  await ending.getByText("req-9").waitFor();
  await ending.getByRole("button", { name: "Choose another model" }).waitFor();
  await ending.getByRole("button", { name: "Retry" }).click();
  await ui.page.locator(".reply .prose").getByText("Hello", { exact: true }).waitFor();
  await expect.poll(() => ui.api.seen("POST", "/api/chat")[0]!.body).toMatchObject({
    action: "regenerate",
    assistant_message_id: "r1",
    context: "server",
    messages: [],
  });
});

test("continues an interrupted reply after its present text", async () => {
  const messages = [...STORY, { role: "assistant", content: "Once upon", status: "interrupted" as const }];
  await using ui = await bench.open("/c/c1", {
    prepare: (api) => {
      api.addConversation("c1", "Chat", messages);
      api.script = [" a time."];
    },
  });
  await ui.page.getByText("The server stopped before the reply was complete", { exact: true }).waitFor();
  await ui.page.getByRole("button", { name: "Continue" }).click();
  await ui.page.locator(".reply .prose").getByText("Once upon a time.", { exact: true }).waitFor();
  await expect.poll(() => ui.api.seen("POST", "/api/chat")[0]!.body).toMatchObject({
    action: "continue",
    assistant_message_id: "c1-m1",
  });
});

test("returns a refused message to the composer, with the reason", async () => {
  await using ui = await bench.open("/new", {
    prepare: (api) =>
      api.refuse("POST /api/chat", { status: 503, code: "not_available", message: "No connection is active" }),
  });
  await sendMessage(ui.page, "Precious words");
  await ui.page.getByRole("alert").getByText("No connection is active").waitFor();
  await expect.poll(() => ui.page.getByLabel("Message", { exact: true }).inputValue()).toBe("Precious words");
  await expect.poll(() => ui.page.locator(".message").count()).toBe(0);
  expect(new URL(ui.page.url()).pathname).toBe("/new");
  ui.api.allow("POST /api/chat");
  await ui.page.getByRole("button", { name: "Send" }).click();
  await ui.page.locator(".reply", { hasText: "Hello" }).waitFor();
});

test("sends a message once when the server returns", async () => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  await ui.page.getByText("This message has no reply yet.").waitFor();
  await ui.page.route("**/api/chat", (route) => route.abort("connectionrefused"));
  await sendMessage(ui.page, "Are you there?");
  await ui.page.locator(".reply-state", { hasText: "Not sent yet" }).waitFor();
  await expect.poll(() => ui.api.seen("POST", "/api/chat")).toEqual([]);
  await ui.page.unroute("**/api/chat");
  await ui.page.locator(".reply", { hasText: "Hello" }).waitFor();
  await expect.poll(() => ui.api.seen("POST", "/api/chat")).toHaveLength(1);
});

test("Enter sends, Shift+Enter breaks the line, and Escape stops", async () => {
  await using ui = await bench.open("/new", { prepare: (api) => api.script = undefined });
  const box = ui.page.getByLabel("Message", { exact: true });
  await box.fill("One");
  await box.press("Shift+Enter");
  await box.pressSequentially("Two");
  await expect.poll(() => box.inputValue()).toBe("One\nTwo");
  await box.press("Enter");
  await ui.page.getByRole("button", { name: "Stop" }).waitFor();
  await eventually(() => ui.api.replies.size, (size) => size === 1);
  await expect.poll(() => box.inputValue()).toBe("");
  await box.press("Escape");
  await ui.page.locator(".ending", { hasText: "Stopped" }).waitFor();
});

test("Enter that ends an IME composition sends nothing", async () => {
  await using ui = await bench.open("/new");
  const box = ui.page.getByLabel("Message", { exact: true });
  await box.fill("にほん");
  for (const init of [{ isComposing: true }, { keyCode: 229 }]) {
    await box.dispatchEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, ...init });
  }
  await expect.poll(() => box.inputValue()).toBe("にほん");
  await box.press("Enter");
  await ui.page.locator(".reply", { hasText: "Hello" }).waitFor();
  await expect.poll(() => ui.api.seen("POST", "/api/chat")).toHaveLength(1);
});

test("on phones Enter breaks the line and the button sends", async () => {
  await using ui = await bench.open("/new", PHONE);
  const box = ui.page.getByLabel("Message", { exact: true });
  await box.fill("One");
  await box.press("Enter");
  await box.pressSequentially("Two");
  await expect.poll(() => box.inputValue()).toBe("One\nTwo");
  await ui.page.getByRole("button", { name: "Send" }).tap();
  await ui.page.locator(".reply", { hasText: "Hello" }).waitFor();
});

test("saves a draft while it is written, for another device", async () => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  await ui.page.getByText("Tell me a story").first().waitFor(); // Before, the page doesn't know the draft's version.
  await ui.page.getByLabel("Message", { exact: true }).fill("Half a thought");
  await eventually(() => ui.api.conversations.get("c1")!.draft, (draft) => draft === "Half a thought");
  await expect.poll(() => ui.api.seen("PATCH", /draft$/)[0]!.headers.get("if-match")).toBe('"0"');
  await using other = await bench.open("/c/c1", { api: ui.api });
  await other.page.getByText("Tell me a story").first().waitFor();
  await expect.poll(() => other.page.getByLabel("Message", { exact: true }).inputValue()).toBe("Half a thought");
});

test("shows a changed draft if nothing was typed, and asks otherwise", async () => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  const box = ui.page.getByLabel("Message", { exact: true });
  await ui.page.getByText("Tell me a story").first().waitFor();
  ui.api.setDraft("c1", "From the phone");
  await eventually(() => box.inputValue(), (text) => text === "From the phone");

  // During the save, and without an event: before, the page might read the change, as it does with its first stream.
  const conversation = ui.api.conversations.get("c1")!;
  let isFirst = true;
  await ui.page.route("**/api/conversations/c1/draft", async (route) => {
    const theirs = { draft: "From the laptop", draft_version: conversation.draft_version + 1 };
    if (isFirst) Object.assign(conversation, theirs);
    isFirst = false;
    await route.continue();
  });
  await box.fill("Typed here");
  await ui.page.getByText("This draft was changed on another device.").waitFor();
  await ui.page.getByText("From the laptop").waitFor();
  await expect.poll(() => box.inputValue()).toBe("Typed here");
  expect(conversation.draft).toBe("From the laptop");
  await ui.page.getByRole("button", { name: "Use the other" }).click();
  await expect.poll(() => box.inputValue()).toBe("From the laptop");
});

test("saves a half-written draft when the page closes", async () => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  await ui.page.getByLabel("Message", { exact: true }).fill("Just typed");
  await ui.page.goto("about:blank");
  await eventually(() => ui.api.conversations.get("c1")!.draft, (draft) => draft === "Just typed");
});

test("restores a deleted chat with Undo, and deletes it when the page closes", async () => {
  await using ui = await bench.open("/c/c2", {
    prepare: (api) => {
      api.addConversation("c1", "First chat", STORY);
      api.addConversation("c2", "Second chat", STORY);
    },
  });
  const link = ui.page.getByRole("link", { name: "First chat" });
  await holdToasts(ui.page);
  const remove = async () => {
    await link.hover();
    await ui.page.getByRole("button", { name: "Actions for “First chat”" }).click();
    await ui.page.getByRole("menuitem", { name: "Delete" }).click();
  };
  await remove();
  await link.waitFor({ state: "detached" });
  await ui.page.getByRole("button", { name: "Undo" }).click();
  await link.waitFor();
  await expect.poll(() => ui.api.seen("DELETE", "/api/conversations/c1")).toEqual([]);
  await remove();
  await ui.page.goto("about:blank");
  await eventually(() => ui.api.conversations.has("c1"), (isThere) => !isThere);
});

test("starts at home, from where one click continues the last chat", async () => {
  await using ui = await bench.open("/", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  await ui.page.waitForURL(`${ui.api.origin}/new`);
  // As in the sidebar, the name has the width of its line.
  await ui.page.locator(".home-chat .chat-row-head + .chat-row-head time").waitFor();
  await ui.page.getByRole("main").getByRole("link", { name: "Chat", exact: true }).click();
  await ui.page.getByText("Tell me a story").first().waitFor();
  await ui.page.waitForURL(`${ui.api.origin}/c/c1`);
});

test("a suggestion is put before what is typed, and is undone", async () => {
  await using ui = await bench.open("/new");
  const composer = ui.page.getByLabel("Message", { exact: true });
  const suggest = (name: string) => ui.page.getByRole("main").getByRole("button", { name }).click();
  await composer.fill("tides");
  await holdToasts(ui.page);
  await suggest("Plan something");
  await expect.poll(() => composer.inputValue()).toBe("Help me plan this. Ask me what you need to know first: tides");
  await ui.page.getByText("Suggestion inserted").waitFor();
  await composer.press("End");
  await composer.pressSequentially(" and moons");
  await ui.page.getByRole("button", { name: "Undo" }).last().click();
  await expect.poll(() => composer.inputValue()).toBe("tides and moons");
  expect(ui.errors).toEqual([]);
});

test("a character that another device adds appears at home", async () => {
  await using ui = await bench.open("/new");
  const add = ui.page.getByRole("main").getByRole("link", { name: "Add a character" });
  await add.waitFor();
  ui.api.people.add("fox", { name: "Fox" });
  ui.api.publish("character", "fox");
  await ui.page.getByRole("main").getByRole("link", { name: "Fox" }).waitFor();
  await add.waitFor({ state: "detached" });
});

test("follows a reply only while the reader is at its end", async () => {
  const lines = Array.from({ length: 60 }, (_, n) => `Line ${n}.`).join("\n\n");
  await using ui = await bench.open("/c/c1", {
    prepare: (api) => api.addConversation("c1", "Chat", [...STORY, { role: "assistant", content: lines }, ...STORY]),
  });
  const scroll = ui.page.locator(".message-scroll");
  const distance = () => scroll.evaluate((box) => Math.round(box.scrollHeight - box.scrollTop - box.clientHeight));
  const reply = ui.api.startReply("c1", "r1");
  reply.say(lines);
  await ui.page.locator(".message").last().getByText("Line 59.").waitFor();
  // It comes with the connections, and who scrolls in the frame that adds it stays at the end.
  await ui.page.locator(".composer-note").waitFor();
  await eventually(distance, (px) => px < 2);
  await scroll.evaluate((box) => box.scrollTop = 200);
  await ui.page.getByRole("button", { name: /^Jump to latest/ }).waitFor();
  const top = await scroll.evaluate((box) => box.scrollTop);
  reply.say("\n\nOne more.\n\nAnother.\n\n");
  await ui.page.getByRole("button", { name: "Jump to latest 2 new paragraphs" }).waitFor();
  await expect.poll(() => scroll.evaluate((box) => box.scrollTop)).toBe(top);
  await ui.page.getByRole("button", { name: /^Jump to latest/ }).click();
  await eventually(distance, (px) => px < 2);
});

test("stays at the end if the messages and then the space for them become smaller", async () => {
  const lines = Array.from({ length: 60 }, (_, n) => `Line ${n}.`).join("\n\n");
  await using ui = await bench.open("/c/c1", {
    prepare: (api) => api.addConversation("c1", "Chat", [...STORY, { role: "assistant", content: lines }]),
  });
  const scroll = ui.page.locator(".message-scroll");
  const distance = () => scroll.evaluate((box) => Math.round(box.scrollHeight - box.scrollTop - box.clientHeight));
  await ui.page.getByText("Line 59.").waitFor();
  await eventually(distance, (px) => px < 2);
  await scroll.evaluate((box) => {
    for (const line of [...box.querySelectorAll(".prose p")].slice(5)) line.remove();
    void box.scrollTop; // The layout moves the position to the new end, the top.
    box.style.height = "200px";
    box.dispatchEvent(new Event("scroll")); // The browser can report it before it observes the sizes.
  });
  await eventually(distance, (px) => px < 2);
  await expect.poll(() => ui.page.getByRole("button", { name: /^Jump to latest/ }).count()).toBe(0);
});

test("the message list is silent, and whole sentences are announced next to it", async () => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  const log = ui.page.getByRole("log");
  await expect.poll(() => log.getAttribute("aria-live")).toBe("off");
  const reply = ui.api.startReply("c1", "r1");
  await ui.page.getByRole("button", { name: "Stop" }).waitFor();
  reply.say("The rain came. And then the");
  const spoken = ui.page.locator("[aria-live=polite][aria-relevant=additions]");
  await spoken.getByText("The rain came.", { exact: true }).waitFor({ state: "attached" });
  await expect.poll(() => spoken.innerText()).not.toContain("And then");
  reply.say(" sun.");
  reply.end("complete");
  await spoken.getByText("And then the sun.", { exact: true }).waitFor({ state: "attached" });
  await spoken.getByText("Reply complete.", { exact: true }).waitFor({ state: "attached" });
});

test.each(
  [
    ["stopped", "Stopped.", {}],
    ["failed", "The reply failed. The server is on fire.", {}],
    ["complete", "Cut off at the model’s output limit.", { finish_reason: "length" }],
    ["interrupted", "The server stopped before the reply was complete.", {}],
  ] as const,
)("a reply's end is announced as it was: %s", async (status, words, more) => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  const reply = ui.api.startReply("c1", "r1");
  await ui.page.getByRole("button", { name: "Stop" }).waitFor();
  reply.say("The rain came. And then");
  const spoken = ui.page.locator("[aria-live=polite][aria-relevant=additions]");
  // What ends before the messages are shown isn't announced.
  await spoken.getByText("The rain came.", { exact: true }).waitFor({ state: "attached" });
  Object.assign(reply.message, more);
  reply.end(status, status === "failed" ? { code: "internal", message: "The server is on fire." } : undefined);
  await spoken.getByText(words, { exact: true }).waitFor({ state: "attached" });
  await expect.poll(() => spoken.getByText("Reply complete.").count()).toBe(0);
});

test("an answer that is older than a reply's end doesn't show the reply as running again", async () => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  const reply = ui.api.startReply("c1", "r1");
  await ui.page.getByRole("button", { name: "Stop" }).waitFor();
  reply.say("The rain came. And then");
  const spoken = ui.page.locator("[aria-live=polite][aria-relevant=additions]");
  await spoken.getByText("The rain came.", { exact: true }).waitFor({ state: "attached" });
  const [read, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await ui.page.route(/\/api\/conversations\/c1\?/, async (route) => {
    const response = await route.fetch();
    read.resolve();
    await released.promise;
    await route.fulfill({ response });
  }, { times: 1 });
  ui.api.setDraft("c1", "From the phone"); // The page reads the chat.
  await read.promise;
  reply.end("complete");
  await spoken.getByText("Reply complete.", { exact: true }).waitFor({ state: "attached" });
  released.resolve();
  ui.api.setDraft("c1", "From the tablet"); // The page reads it again, after that answer.
  await expect.poll(() => ui.page.getByRole("textbox", { name: "Message" }).inputValue()).toBe("From the tablet");
  expect(ui.api.seen("GET", /\/replies\/r1/).length).toBe(1);
  await expect.poll(() => ui.page.getByRole("button", { name: "Stop" }).count()).toBe(0);
});

test("collapses the reasoning of a reply", async () => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  const reply = ui.api.startReply("c1", "r1");
  reply.think("They want a story. ");
  await ui.page.getByText("Thinking", { exact: true }).waitFor();
  await expect.poll(() => findAxeProblems(ui.page)).toEqual([]);
  reply.say("Once");
  reply.end("complete");
  await ui.page.getByRole("button", { name: "Regenerate" }).waitFor();
  await ui.page.locator(".reply .prose").getByText("Once", { exact: true }).waitFor();
  const thoughts = ui.page.locator(".thoughts");
  await expect.poll(() => thoughts.locator(".thoughts-text").isVisible()).toBe(false);
  await thoughts.locator("summary").click();
  await expect.poll(() => thoughts.locator(".thoughts-text").innerText()).toContain("They want a story.");
});

test.each([
  ["between tags", "<think>They want a story.</think>\n\nOnce upon."],
  ["that the template had opened", "They want a story.\n</think>\n\nOnce upon."],
])("collapses reasoning in a model's text, and neither announces nor copies it: %s", async (_, whole) => {
  await using ui = await bench.open("/c/c1", {
    prepare: (api) => api.addConversation("c1", "Chat", STORY),
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const reply = ui.api.startReply("c1", "r1");
  reply.say(whole);
  const prose = ui.page.locator(".message[data-message-id=r1] .prose");
  await prose.getByText("Once upon.", { exact: true }).waitFor();
  reply.end("complete");
  await ui.page.getByRole("button", { name: "Regenerate" }).waitFor();
  await expect.poll(async () => (await prose.innerText()).trim()).toBe("Once upon.");
  const thoughts = ui.page.locator(".message[data-message-id=r1] .thoughts-text");
  await expect.poll(() => thoughts.isVisible()).toBe(false);
  await expect.poll(() => thoughts.textContent()).toBe("They want a story.");
  await expect.poll(() => ui.page.locator("[aria-relevant=additions]").textContent()).not.toContain("They want");
  await ui.page.locator(".message[data-message-id=r1]").getByRole("button", { name: "Copy" }).click();
  await eventually(() => ui.page.evaluate(() => navigator.clipboard.readText()), (text) => text === "Once upon.");
});

test("nothing moves when a reply ends", async () => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  const reply = ui.api.startReply("c1", "r1");
  reply.say("Rain, and then more rain.\n\n".repeat(40));
  const paragraphs = ui.page.locator(".message[data-message-id=r1] .prose p");
  await eventually(() => paragraphs.count(), (count) => count === 40);
  const last = paragraphs.last();
  const bottom = () => last.evaluate((element) => Math.round(element.getBoundingClientRect().bottom));
  await eventually(
    () => ui.page.locator(".message-scroll").evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight),
    (px) => px < 2,
  );
  // It comes with the connections, and takes its line from the messages.
  await ui.page.locator(".composer-note").waitFor();
  await eventually(
    () => ui.page.locator(".message-scroll").evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight),
    (px) => px < 2,
  );
  const before = await bottom();
  reply.end("complete");
  await ui.page.getByRole("button", { name: "Regenerate" }).waitFor();
  // Between two frames the messages may be drawn before the view has followed.
  await expect.poll(bottom).toBe(before);
});

test("Stop by keyboard leaves the focus in the composer", async () => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  ui.api.startReply("c1", "r1").say("Once");
  const stop = ui.page.getByRole("button", { name: "Stop" });
  await stop.focus();
  await ui.page.keyboard.press("Enter");
  await ui.page.getByRole("button", { name: "Send" }).waitFor();
  await eventually(
    () => ui.page.evaluate(() => document.activeElement?.getAttribute("aria-label")),
    (label) => label === "Message",
  );
});

test("a missing chat links to the last one", async () => {
  await using ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  await ui.page.getByText("Tell me a story").waitFor();
  await ui.page.goto(`${ui.api.origin}/c/nowhere`);
  await ui.page.getByRole("link", { name: "Back to the last chat" }).click();
  await ui.page.waitForURL(`${ui.api.origin}/c/c1`);
  await ui.page.getByText("Tell me a story").waitFor();
});

test("prefetches a chat once while its link is pressed, and opens with it", async () => {
  await using ui = await bench.open("/new", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  const asked: string[] = [];
  ui.page.on("request", (request) => {
    const { pathname, search } = new URL(request.url());
    if (pathname.startsWith("/api/conversations/c1")) asked.push(pathname + search);
  });
  // Prefetched data is fresh for five seconds.
  await ui.page.addInitScript("performance.now = () => 0");
  await ui.page.reload();
  const link = ui.page.getByRole("navigation").getByRole("link", { name: "Chat", exact: true });
  await link.hover();
  await eventually(() => asked.length, (count) => count === 1);
  expect(ui.page.url()).toBe(`${ui.api.origin}/new`);
  await link.click();
  await ui.page.getByText("Tell me a story").waitFor();
  const readings = asked.filter((address) => !/\/(?:branches|regex_scripts)$/.test(address));
  expect(readings).toEqual(["/api/conversations/c1?view=recent&limit=60"]);
});

test("doesn't show a prefetched chat that has changed", async () => {
  await using ui = await bench.open("/new", { prepare: (api) => api.addConversation("c1", "Chat", STORY) });
  const link = ui.page.getByRole("navigation").getByRole("link", { name: "Chat", exact: true });
  await link.hover();
  // A resource has an entry once its response has ended.
  await ui.page.waitForFunction(() =>
    performance.getEntriesByType("resource").some(({ name }) => name.includes("view=recent"))
  );
  const listed = ui.page.waitForResponse((response) => response.url().includes("view=summary"));
  const chat = ui.api.conversations.get("c1")!;
  chat.messages[0] = { ...chat.messages[0]!, content: "Tell me another story" };
  ui.api.publish("conversation", "c1", ++chat.revision);
  await listed; // the page has received the event
  await link.click();
  await ui.page.getByText("Tell me another story").waitFor();
  await expect.poll(() => ui.page.getByText("Tell me a story").count()).toBe(0);
});

test("shows a missing chat, a failed list and a refusing server", async () => {
  await using gone = await bench.open("/c/nowhere");
  await gone.page.getByRole("heading", { name: "This chat doesn’t exist" }).waitFor();
  await gone.page.getByRole("heading", { name: "Chat not found", level: 1 }).waitFor();
  await expect.poll(() => gone.page.title()).toBe("Chat not found · Parlor");
  // Chat shortcuts do nothing here.
  await expect.poll(() => gone.page.getByRole("main").getByRole("button").count()).toBe(0);
  const failure = { status: 500, code: "internal", message: "Something went wrong inside the server" };
  await using broken = await bench.open("/c/c1", {
    prepare: (api) => {
      api.addConversation("c1", "Chat", STORY);
      api.refuse("GET /api/conversations", failure);
      api.refuse("GET /api/conversations/c1", failure);
    },
  });
  await broken.page.getByText("Couldn’t load chats").waitFor();
  await broken.page.getByText("Couldn’t load the chat").waitFor();
  broken.api.allow("GET /api/conversations/c1");
  const story = broken.page.getByText("Tell me a story");
  // The page also tries again by itself, so the button may be gone by now.
  await Promise.race([
    broken.page.getByRole("main").getByRole("button", { name: "Try again" }).click(),
    story.waitFor(),
  ]);
  await story.waitFor();
  await using refused = await bench.open("/new", {
    prepare: (api) => api.refuse("*", { status: 401, code: "unauthenticated", message: "Sign in first" }),
  });
  await refused.page.getByRole("heading", { name: "Sign-in required" }).waitFor();
});

test.each([["untrusted_proxy", "trusted_proxies"], ["bare_proxy", "loopback_auth_bypass = false"]])(
  "shows the hint %s as a red banner that says what to set",
  async (hint, words) => {
    await using ui = await bench.open("/new", { prepare: (api) => api.hint = hint });
    await ui.page.getByRole("alert").getByText(words).waitFor();
  },
);
