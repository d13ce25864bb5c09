import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Opened, openUiBench, type UiBench } from "../../../../helpers/browser/ui_page.ts";

let bench: UiBench;
beforeAll(async () => {
  bench = await openUiBench();
});
afterAll(() => bench.close());

const FAR = "https://far.example";

/** Shows texts as replies and returns the page when all are rendered. */
async function show(contents: string[], bypassCSP = false): Promise<Opened> {
  const messages = contents.map((content) => ({ role: "assistant", content: `${content}\n\nEnd of it.` }));
  const ui = await bench.open("/c/c1", { bypassCSP, prepare: (api) => api.addConversation("c1", "Chat", messages) });
  await ui.page.getByText("End of it.").nth(contents.length - 1).waitFor();
  return ui;
}

/**
 * Each case is tried twice: as the page is, and with its policy switched off, where cleaning alone has to hold. (What the
 * console tells of the policy is no witness: it also speaks of the inert document in which replies are cleaned.)
 */
const WAYS = [["under the page's policy", false], ["without the page's policy", true]] as const;

/** Everything that could load or run. */
const LIVE =
  "img, video, audio, source, picture, object, embed, iframe, form, input, base, meta, link, style, script, svg *, math *, template";

/** Selects the HTML of replies; code blocks are ours, with their own icons. */
const FOREIGN_HTML = ".html-block, .table-scroll";

test.each(WAYS)(
  "requests no remote media of a reply, %s; each is a link",
  { tags: ["W01"] },
  async (_, bypassCSP) => {
    await using ui = await show([
      `![inline](${FAR}/1.png)`,
      `![by reference][ref]\n\n[ref]: ${FAR}/2.png`,
      `<img src="${FAR}/3.png" alt="tag">`,
      `<img srcset="${FAR}/4.png 2x" alt="set">`,
      `<picture><source srcset="${FAR}/5.png"><img src="${FAR}/5b.png" alt="picture"></picture>`,
      `<video src="${FAR}/6.mp4" poster="${FAR}/6.png"></video>`,
      `<p style="background:url(${FAR}/7.png)">styled</p>`,
      `<style>body{background:url(${FAR}/8.png)}</style>`,
      `<link rel="stylesheet" href="${FAR}/9.css"><meta http-equiv="refresh" content="0;url=${FAR}/9">`,
      `![no scheme](//far.example/10.png)`,
      `<img src="&#104;ttps://far.example/11.png" alt="entities">`,
      `<svg><image href="${FAR}/12.png" /></svg>`,
      `<iframe src="${FAR}/13"></iframe><object data="${FAR}/14"></object><embed src="${FAR}/15">`,
      `<input type="image" src="${FAR}/16.png"><table background="${FAR}/17.png"><tr><td>t</td></tr></table>`,
    ], bypassCSP);
    await ui.page.evaluate(() => new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted))));
    expect(ui.foreign).toEqual([]);
    await expect.poll(() => ui.page.locator(FOREIGN_HTML).locator(LIVE).count()).toBe(0);
    // On a busy machine, a message is plain text until there is time to format it.
    const links = () => ui.page.locator(".prose a").evaluateAll((all) => all.map((a) => a.getAttribute("href")));
    const paths = ["/1.png", "/2.png", "/3.png", "/4.png", "/5b.png", "/6.mp4", "/10.png", "/11.png"];
    await expect.poll(links).toEqual(expect.arrayContaining(paths.map((path) => `${FAR}${path}`)));
    expect(ui.foreign).toEqual([]);
    expect(new URL(ui.page.url()).pathname).toBe("/c/c1");
  },
);

test("only plain web and mail addresses become links, and they open without an opener", { tags: ["W02"] }, async () => {
  await using ui = await show([
    "[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](java\nscript:alert(1)) [d](&#106;avascript:alert(1))",
    "[e](data:text/html,<script>alert(1)</script>) [f](vbscript:x) [g](file:///etc/passwd) [h](/api/conversations)",
    '<a href="java&#9;script:alert(1)">i</a> <a href=" javascript:alert(1)">j</a> <a href="\u0001javascript:x">k</a>',
    '<a href="">n</a> <a href>o</a> <a href=" ">p</a> [q](<>)',
    '<a href="https://fine.example" ping="https://far.example/ping" target="_top" rel="opener">l</a> [m](mailto:a@b.example)',
  ]);
  const links = () =>
    ui.page.locator(".prose a[href]").evaluateAll((all) =>
      all.map((a) => ["href", "target", "rel", "ping"].map((name) => a.getAttribute(name)))
    );
  await expect.poll(links).toEqual([
    ["https://fine.example", "_blank", "noopener noreferrer nofollow", null],
    ["mailto:a@b.example", "_blank", "noopener noreferrer nofollow", null],
  ]);
});

const RUNNERS = [
  "<script>globalThis.hit=1</script>",
  "<img src=x onerror=globalThis.hit=1>",
  "<svg onload=globalThis.hit=1><script>globalThis.hit=1</script></svg>",
  "<svg><style><img src=x onerror=globalThis.hit=1></style></svg>",
  '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=globalThis.hit=1&gt;">',
  '<noscript><p title="</noscript><img src=x onerror=globalThis.hit=1>"></noscript>',
  "<template><img src=x onerror=globalThis.hit=1></template>",
  '<iframe srcdoc="<script>parent.hit=1</script>"></iframe>',
  "<form action=https://far.example><input name=x autofocus onfocus=globalThis.hit=1><button>go</button></form>",
  "<base href=https://far.example/><a href=x>relative</a>",
  "<details open ontoggle=globalThis.hit=1><summary>s</summary>d</details>",
  "<p id=app class=toast name=getElementById style=position:fixed>clobber</p>",
  "```html\n<script>globalThis.hit=1</script>\n```",
  '[x](https://ok.example "onmouseover=globalThis.hit=1" onclick=1)',
];

test.each(WAYS)(
  "nothing in a reply runs, submits, clobbers or imitates the page, %s",
  { tags: ["W03"] },
  async (_, bypassCSP) => {
    await using ui = await show(RUNNERS, bypassCSP);
    await expect.poll(() => ui.page.evaluate(() => "hit" in globalThis)).toBe(false);
    await expect.poll(() => ui.page.locator(FOREIGN_HTML).locator(LIVE).count()).toBe(0);
    const attributes = await ui.page.locator(".html-block *").evaluateAll((all) =>
      all.flatMap((each) => each.getAttributeNames())
    );
    expect(attributes.filter((name) => /^on|^id$|^name$|^style$|^class$|^src|^action$/.test(name))).toEqual([]);
    expect(ui.foreign).toEqual([]);
  },
);

/** Each would set attributes if formulas were inserted into HTML text after sanitizing, or if placeholders could be forged. */
const BREAKOUT = String
  .raw`\text{"/onmouseover="globalThis.hit=1"/onfocus="globalThis.hit=1"/autofocus=""/tabindex="1"/class="toast"/id="app"/x="/}`;

/** The placeholders of an earlier renderer, and imitations of the current ones. */
const FORGED_MARKS = [
  "\uFDD00\uFDD1",
  "&#xFDD0;0&#xFDD1;",
  "&#64976;0&#64977;",
  "&#xfdd0;&#48;&#xfdd1;",
  "&amp;#xFDD0;0&amp;#xFDD1;",
  "%EF%B7%900%EF%B7%91",
  "0",
  "-0",
  "00000000000000000000000000000000-0",
];

const FORGERIES = FORGED_MARKS.map((mark) =>
  [
    `<b title="${mark}">b</b> <a href="https://ok.example/${mark}" title='${mark}'>a</a> $${BREAKOUT}$`,
    `<span title="${mark}"></span> [l](https://ok.example "${mark}") ![${mark}](https://ok.example/${mark}) $$${BREAKOUT}$$`,
    `${mark} \`${mark}\` <abbr lang=${mark} dir="${mark}">c</abbr> $\\nonesuch{${BREAKOUT}}$`,
    `- <div title='\n\n  $${BREAKOUT}$\n\n  ' class="toast">${mark}\n  $x$\n- <b title="\n- $y / "z"$ ">`,
    `| <b title="${mark} | $${BREAKOUT.replaceAll("|", "")}$ |\n|-|-|\n| "> | $"/"$ |`,
  ].join("\n\n")
);

/** Triggers every handler of pointer, keyboard and load events. */
function stir(page: Page): Promise<void> {
  return page.evaluate(() => {
    for (const element of document.querySelectorAll(".prose *")) {
      for (const type of ["mouseover", "focus", "load", "error", "toggle", "pointerenter"]) {
        element.dispatchEvent(new Event(type, { bubbles: true }));
      }
    }
  });
}

/** Attributes that only the page may set, with their elements. */
async function ownAttributes(page: Page): Promise<string[]> {
  return await page.locator(FOREIGN_HTML).locator("*").evaluateAll((all) =>
    all.flatMap((element) => {
      const isFormula = element.localName === "span" && element.className === "formula" && element.tabIndex === 0 &&
        element.children.length === 1 && element.firstElementChild!.localName === "math";
      const isMathML = element.namespaceURI === "http://www.w3.org/1998/Math/MathML";
      const allowed = element.localName === "a"
        ? ["href", "title", "target", "rel"]
        : isFormula
        ? ["class", "tabindex"]
        : element.matches("span.formula-source, button.formula-copy")
        ? ["class", "type", "title", "aria-label"]
        : ["title", "lang", "dir", "align"];
      return element.getAttributeNames()
        .filter((name) => isMathML ? /^on|^(?:id|style|href|src|tabindex|title)$/.test(name) : !allowed.includes(name))
        .map((name) => `${element.localName} ${name}`);
    })
  );
}

test.each(WAYS)(
  "forged formula placeholders set no attribute and run nothing, %s",
  { tags: ["F04"] },
  async (_, bypassCSP) => {
    // The page renders long chats in parts.
    for (const forgeries of [FORGERIES.slice(0, 3), FORGERIES.slice(3, 6), FORGERIES.slice(6)]) {
      await using ui = await show([...forgeries, "A formula of its own: $x^2$"], bypassCSP);
      await ui.page.locator(".prose").last().locator("math msup").waitFor();
      await stir(ui.page);
      await expect.poll(() => ui.page.evaluate(() => "hit" in globalThis)).toBe(false);
      await expect.poll(() => ownAttributes(ui.page)).toEqual([]);
      await expect.poll(() =>
        ui.page.locator(FOREIGN_HTML).locator("[autofocus], [tabindex]:not(.formula), #app").count()
      ).toBe(
        0,
      );
      await expect.poll(() => ui.page.locator("#app").count()).toBe(1);
      expect(ui.foreign).toEqual([]);
    }
  },
);

test.each(WAYS)(
  "the same forgeries do nothing while streaming, cut at every position, %s",
  { tags: ["F04"] },
  async (_, bypassCSP) => {
    await using ui = await bench.open("/c/c1", {
      bypassCSP,
      prepare: (api) => api.addConversation("c1", "Chat", [{ role: "user", content: "Go" }]),
    });
    const reply = ui.api.startReply("c1", "r1");
    await ui.page.getByRole("button", { name: "Stop" }).waitFor();
    for (const character of `$x^2$\n\n${FORGERIES.slice(0, 4).join("\n\n")}\n\nEnd of it.`) reply.say(character);
    await ui.page.locator(".reply .prose").getByText("End of it.").waitFor();
    await ui.page.locator(".prose math msup").first().waitFor();
    await stir(ui.page);
    await expect.poll(() => ownAttributes(ui.page)).toEqual([]);
    reply.end("complete");
    await ui.page.getByRole("button", { name: "Regenerate" }).waitFor();
    await stir(ui.page);
    await expect.poll(() => ui.page.evaluate(() => "hit" in globalThis)).toBe(false);
    await expect.poll(() => ownAttributes(ui.page)).toEqual([]);
    expect(ui.foreign).toEqual([]);
  },
);

test("shows the quotes and slashes of a formula in its own place", { tags: ["F04"] }, async () => {
  const tex = String.raw`\text{"a"/'b' = <c>} / "`;
  await using ui = await show([
    `<span title="0">one</span> $${tex}$ <b title="&#xFDD0;0&#xFDD1;">two</b> $\\nonesuch{"/'}$`,
  ]);
  await ui.page.locator("math").waitFor();
  const prose = ui.page.locator(".prose").first();
  await expect.poll(() => prose.locator("math").count()).toBe(1);
  await expect.poll(() => prose.locator("mtext").first().textContent()).toContain("<c>");
  await expect.poll(() => prose.locator("code").textContent()).toBe(`$\\nonesuch{"/'}$`);
  await expect.poll(() => prose.locator("b").getAttribute("title")).toBe("\uFDD00\uFDD1");
  await expect.poll(() => prose.locator("p").first().evaluate((p) => [...p.children].map(({ localName }) => localName)))
    .toEqual([
      ...["span", "math", "b", "span"],
    ]);
});

test.each(WAYS)(
  "the same text does nothing while streaming, cut at every position, %s",
  { tags: ["W03"] },
  async (_, bypassCSP) => {
    await using ui = await bench.open("/c/c1", {
      bypassCSP,
      prepare: (api) => api.addConversation("c1", "Chat", [{ role: "user", content: "Go" }]),
    });
    const reply = ui.api.startReply("c1", "r1");
    await ui.page.getByRole("button", { name: "Stop" }).waitFor();
    const whole = `${RUNNERS.join("\n\n")}\n\n![far](${FAR}/s.png)\n\nEnd of it.`;
    for (const character of whole) reply.say(character);
    await ui.page.locator(".reply .prose").getByText("End of it.").waitFor();
    reply.end("complete");
    await ui.page.getByRole("button", { name: "Regenerate" }).waitFor();
    await expect.poll(() => ui.page.evaluate(() => "hit" in globalThis)).toBe(false);
    await expect.poll(() => ui.page.locator(FOREIGN_HTML).locator(LIVE).count()).toBe(0);
    expect(ui.foreign).toEqual([]);
  },
);

test("shows messages, titles, drafts, names and errors as plain text", { tags: ["W03"] }, async () => {
  const hostile = `<img src="${FAR}/x.png" onerror="globalThis.hit=1">`;
  await using ui = await bench.open("/c/c1", {
    prepare: (api) => {
      const error = { code: "upstream_error", message: hostile, request_id: hostile };
      const conversation = api.addConversation("c1", hostile, [
        { role: "user", content: hostile },
        { role: "assistant", content: "", reasoning: hostile, status: "failed", error, model: hostile },
      ]);
      conversation.draft = hostile;
      api.connections[0]!.name = hostile;
    },
  });
  await ui.page.locator(".user-text").waitFor();
  await expect.poll(() => ui.page.locator(".user-text").innerText()).toBe(hostile);
  await expect.poll(() => ui.page.locator("h1").innerText()).toBe(hostile);
  await expect.poll(() => ui.page.getByLabel("Message", { exact: true }).inputValue()).toBe(hostile);
  await ui.page.locator(".ending").getByText(hostile).first().waitFor();
  await ui.page.getByRole("link", { name: hostile }).first().waitFor();
  await expect.poll(() => ui.page.evaluate(() => "hit" in globalThis)).toBe(false);
  await expect.poll(() => ui.page.locator("img").count()).toBe(0);
  expect(ui.foreign).toEqual([]);
});

test("renders the same blocks from pieces as from the whole text", async () => {
  const text = [
    "# Title\n\nA paragraph with a [link][late] that is\ncontinued.",
    "1. one\n2. two\n\n3. three\n   - nested\n\n     more",
    "> quote\n> > deeper\n\nlazy\n===\n\n---",
    "| a | b |\n|---|:-:|\n| 1 | 2 |",
    "```js\nconst x = `1`;\n\n\n# no heading\n```\n\n~~~\nopen\n~~~",
    "    indented\n\n- [ ] open\n- [x] done\n\n### Deep\n\n## Less deep\r\n\r\n\ttabbed",
    "[late]: https://late.example",
  ].join("\n\n");
  await using whole = await show([text]);
  await using ui = await bench.open("/c/c1", {
    prepare: (api) => api.addConversation("c1", "Chat", [{ role: "user", content: "Go" }]),
  });
  const reply = ui.api.startReply("c1", "r1");
  await ui.page.getByRole("button", { name: "Stop" }).waitFor();
  for (const character of `${text}\n\nEnd of it.`) reply.say(character);
  await ui.page.locator(".reply .prose").getByText("End of it.").waitFor();
  reply.end("complete");
  await ui.page.getByRole("button", { name: "Regenerate" }).waitFor();
  const html = async (opened: Opened) => {
    await opened.page.locator(".code-keyword", { hasText: "const" }).waitFor(); // highlighting comes last
    return await opened.page.locator(".prose").innerHTML();
  };
  // Either may be plain text until there is time to format it.
  await expect.poll(async () => await html(ui) === await html(whole)).toBe(true);
  await expect.poll(() => html(ui)).toContain('href="https://late.example"');
});

test("renders only the last block again while a reply streams", async () => {
  await using ui = await bench.open("/c/c1", {
    prepare: (api) => api.addConversation("c1", "Chat", [{ role: "user", content: "Go" }]),
  });
  const reply = ui.api.startReply("c1", "r1");
  reply.say("First paragraph.\n\nSecond");
  await ui.page.getByText("Second").waitFor();
  await ui.page.locator(".prose p").first().evaluate((first) => first.setAttribute("data-mark", "kept"));
  reply.say(" paragraph.\n\n- and\n- a list");
  await ui.page.locator(".prose li").nth(1).waitFor();
  await expect.poll(() => ui.page.locator(".prose p").first().getAttribute("data-mark")).toBe("kept");
});
