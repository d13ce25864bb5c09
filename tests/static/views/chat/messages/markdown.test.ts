import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, type Opened, openUiBench, type UiBench } from "../../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

/** Shows texts as replies, just as they are, and returns the page when all are rendered. */
async function show(...contents: string[]): Promise<Opened> {
  const messages = contents.map((content) => ({ role: "assistant", content }));
  const ui = await bench.open("/c/c1", { prepare: (api) => api.addConversation("c1", "Chat", messages) });
  await ui.page.locator(".prose").nth(contents.length - 1).waitFor();
  return ui;
}

/** Opens a chat with a reply that the test controls. */
async function stream() {
  const ui = await bench.open("/c/c1", {
    prepare: (api) => api.addConversation("c1", "Chat", [{ role: "user", content: "Go" }]),
  });
  const reply = ui.api.startReply("c1", "r1");
  await ui.page.getByRole("button", { name: "Stop" }).waitFor();
  return { ui, reply };
}

test("highlights code by any name of its language without changing its text", async () => {
  const code = 'const greet = (name: string) => `Hi ${name}`; // <b>"now"</b>\n';
  await using ui = await show("```ts\n" + code + "```", "```nonesuch\nlet x\n```", "```py\nprint('x')\n```");
  await ui.page.locator(".code-keyword", { hasText: "const" }).waitFor();
  await ui.page.locator(".code-comment", { hasText: '// <b>"now"</b>' }).waitFor();
  await ui.page.locator(".code-string", { hasText: "'x'" }).waitFor();
  await expect.poll(() => ui.page.locator("pre code").first().textContent()).toBe(code.trimEnd());
  await expect.poll(() => ui.page.locator("pre code").nth(1).locator("*").count()).toBe(0);
  expect([ui.errors, ui.foreign]).toEqual([[], []]);
});

test("leaves growing code plain, and follows its end", async () => {
  const { ui, reply } = await stream();
  await using _ = ui;
  reply.say("```js\n" + Array.from({ length: 90 }, (_, n) => `const line${n} = ${n};`).join("\n"));
  await ui.page.getByText("const line89 = 89;").waitFor();
  const pre = ui.page.locator(".code-block pre");
  const distance = () => pre.evaluate((box) => Math.round(box.scrollHeight - box.scrollTop - box.clientHeight));
  await eventually(distance, (px) => px < 2);
  await expect.poll(() => pre.evaluate((box) => box.scrollHeight > box.clientHeight)).toBe(true);
  await expect.poll(() => pre.locator(".code-keyword").count()).toBe(0);
  reply.say("\n```\n\nDone.");
  await pre.locator(".code-keyword").first().waitFor();
  reply.end("complete");
});

test("renders formulas of every notation as MathML, and leaves prices alone", async () => {
  await using ui = await show(
    "Inline $a^2 + b^2 = c^2$ and \\(x_1\\), display \\[ \\frac{1}{2} \\]",
    "Before\n$$\n\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}\n$$\nafter, it costs $5 and not $6.",
    "Code `$x$` is code, and so is:\n\n```\n$$ y $$\n```",
  );
  await ui.page.locator("math").nth(3).waitFor();
  const [first, second, third] = await ui.page.locator(".prose").all();
  await expect.poll(() => first!.locator("math").count()).toBe(3);
  await expect.poll(() => first!.locator(".formula math[display=block] mfrac").count()).toBe(1);
  await expect.poll(() => second!.locator("math mtable mtr").count()).toBe(2);
  await expect.poll(() => second!.textContent()).toContain("it costs $5 and not $6.");
  await expect.poll(() => third!.locator("math").count()).toBe(0);
  await expect.poll(() => third!.textContent()).toContain("$$ y $$");
  await expect.poll(() => ui.page.locator(".messages [style]").count()).toBe(0);
  expect([ui.errors, ui.foreign]).toEqual([[], []]);
});

test("shows what isn't TeX as it was written", async () => {
  await using ui = await show("A lone $\\nonesuch{x}$ and \\(\\frac{1}\\)", "and $x$");
  await ui.page.locator("math").waitFor();
  const [first] = await ui.page.locator(".prose").all();
  await expect.poll(() => first!.locator("code").allTextContents()).toEqual(["$\\nonesuch{x}$", "\\(\\frac{1}\\)"]);
});

test("formulas can't add links, styles, our classes, or anything that runs", { tags: ["W03"] }, async () => {
  const hostile = [
    "$\\href{javascript:globalThis.hit=1}{x}$",
    "$\\class{toast}{x} \\style{position:fixed}{y} \\id{app}{z}$",
    "$\\text{<img src=x onerror=globalThis.hit=1>}$",
    "$$\\includegraphics{https://far.example/x.png}$$",
    "$\\unicode{x3c}script\\unicode{x3e}$",
    "\uFDD00\uFDD1 $x$ <b title='\uFDD00\uFDD1'>b</b>",
    '<math><mtext><img src=x onerror="globalThis.hit=1"></mtext></math> $y$',
    "$\\def\\a{\\a\\a}\\a$",
  ];
  await using ui = await show(...hostile);
  await ui.page.locator("math").nth(2).waitFor();
  await expect.poll(() => ui.page.evaluate(() => "hit" in globalThis)).toBe(false);
  const live = ui.page.locator(".html-block").locator(
    "img, script, a[href], iframe, semantics, annotation-xml, maction",
  );
  await expect.poll(() => live.count()).toBe(0);
  const names = await ui.page.locator(".html-block math, .html-block math *").evaluateAll((all) =>
    all.flatMap((each) => each.getAttributeNames())
  );
  expect(names.filter((name) => /^on|^id$|^style$|^href$|^src$|^xlink/.test(name))).toEqual([]);
  await expect.poll(() => ui.page.locator(".html-block .toast").count()).toBe(0);
  expect(ui.foreign).toEqual([]);
});

test("renders a formula the same from pieces as from the whole, and never as a list before its end", async () => {
  const text = "Start\n\n$$\na\n- b\n= c\n$$\n\n\\[\nx\n=\ny\n\\]\n\nand $z$.";
  await using whole = await show(text);
  await whole.page.locator("math").nth(2).waitFor();
  const { ui, reply } = await stream();
  await using _ = ui;
  for (const character of text.slice(0, text.indexOf("= c"))) reply.say(character);
  await ui.page.locator(".prose", { hasText: "- b" }).waitFor();
  await expect.poll(() => ui.page.locator(".prose li, .prose h3").count()).toBe(0);
  for (const character of text.slice(text.indexOf("= c"))) reply.say(character);
  await ui.page.locator("math").nth(2).waitFor();
  reply.end("complete");
  await ui.page.getByRole("button", { name: "Regenerate" }).waitFor();
  await expect.poll(() => ui.page.locator(".prose").innerHTML()).toBe(await whole.page.locator(".prose").innerHTML());
});

const POEM = "Roses are red,\nViolets are blue";

test.each(
  [
    ["keep", undefined, 1],
    ["markdown", undefined, 0],
    ["markdown", "luna", 1],
  ] as const,
)(
  "with line breaks set to %s, a message (character: %s) has %i of them, and so has the user's",
  async (line_breaks, character_id, count) => {
    await using ui = await bench.open("/c/c1", {
      prepare(api) {
        Object.assign(api.settings, { line_breaks, user_markdown: true });
        const conversation = api.addConversation("c1", "Chat", [
          { role: "user", content: POEM },
          { role: "assistant", content: POEM, character_id },
        ]);
        if (character_id) Object.assign(conversation, { participants: [character_id] });
      },
    });
    await ui.page.locator(".reply .prose p").waitFor();
    await expect.poll(() => ui.page.locator(".reply .prose br").count()).toBe(count);
    await expect.poll(() => ui.page.locator(".user-message .prose br").count()).toBe(count);
  },
);

test("copies the source of a formula that can't be rendered", async () => {
  await using ui = await bench.open("/c/c1", {
    permissions: ["clipboard-read", "clipboard-write"],
    prepare: (api) => api.addConversation("c1", "Chat", [{ role: "assistant", content: "See $\\nonesuch{x}$" }]),
  });
  await ui.page.getByRole("button", { name: "Copy formula" }).click();
  const copied = () => ui.page.evaluate(() => navigator.clipboard.readText());
  expect(await eventually(copied, (text) => text !== "")).toBe("$\\nonesuch{x}$");
});

test("titles, the list of chats, messages and the composer run in the direction of their text", async () => {
  const text = "مرحبا بك في المحادثة";
  await using ui = await bench.open("/c/c1", {
    prepare: (api) =>
      api.addConversation("c1", text, [{ role: "user", content: text }, { role: "assistant", content: text }]),
  });
  await ui.page.getByLabel("Message", { exact: true }).fill(text);
  await ui.page.locator(".reply .prose p").waitFor();
  for (const selector of ["h1", ".chat-row .chat-link-over", ".user-text", ".prose p", ".composer textarea"]) {
    const bidi = () => ui.page.locator(selector).first().evaluate((element) => getComputedStyle(element).unicodeBidi);
    await expect.poll(async () => [selector, await bidi()]).toEqual([selector, "plaintext"]);
  }
});
