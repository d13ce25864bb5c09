/** Markdown and maths of messages, rendered in a real browser in a page without a policy: cleaning alone has to hold. */
import type { Browser, CDPSession, Page } from "playwright-core";
import { openBrowser } from "../../helpers/browser/browser.ts";
import { bundleForPage } from "../../helpers/browser/page_bundle.ts";
import { mutateText, tokenText } from "../mutations.ts";
import { claim, target } from "../target.ts";

/** A message, and where it is cut while it grows. */
interface Message {
  text: string;
  cuts: number[];
}

/** A message has 200 ms for its own rendering and 100 ms for each update; the browser's layout comes on top. */
const MAX_CPU_MS = 1_000;
const MEASUREMENTS = 3;
const ORIGIN = "http://fuzz.example/";

const TOKENS = [
  ...[
    "word",
    " ",
    "\n",
    "\n\n",
    "\r\n",
    "    ",
    "\t",
    "\\",
    "\0",
    "日本",
    "🦊",
    "\ud800",
    "\uFDD00\uFDD1",
    "&#xFDD0;0&#xFDD1;",
  ],
  ...[
    "# ",
    "###### ",
    "> ",
    ">",
    "- ",
    "1. ",
    "- [ ] ",
    "***",
    "---",
    "===",
    "| a | b |\n|-|-|\n",
    "|",
    "|-",
    "```",
    "~~~js\n",
  ],
  ...[
    "*",
    "**",
    "_",
    "~~",
    "`",
    "[",
    "]",
    "](",
    ")",
    "![",
    "[a]: ",
    "[a]",
    "<",
    ">",
    "<!--",
    "-->",
    "&lt;",
    "&#0;",
    "&",
  ],
  ...[
    "https://far.example/x.png",
    "www.far.example",
    "a@b.example",
    "[x](javascript:globalThis.hit=1)",
    "(https://ok.example)",
  ],
  ...[
    "<b>",
    "</b>",
    "<div>",
    "</div>",
    "<table><tr><td>",
    "</table>",
    "<details open ontoggle=globalThis.hit=1>",
    "<p id=x>",
  ],
  ...[
    "<img src=https://far.example/1.png onerror=globalThis.hit=1>",
    "<script>globalThis.hit=1</script>",
    "<svg onload=globalThis.hit=1>",
  ],
  ...[
    "<math><mtext><mglyph><style>",
    '<noscript><p title="</noscript><img src=x onerror=globalThis.hit=1>">',
    '<a href="',
  ],
  ...[
    '<span title="',
    '"',
    "'",
    "=",
    "<template>",
    '<iframe srcdoc="<script>parent.hit=1</script>">',
    "<form action=//far.example>",
  ],
  ...[
    "$",
    "$$",
    "\\(",
    "\\)",
    "\\[",
    "\\]",
    "\\frac{a}{b}",
    "^2",
    "_i",
    "{",
    "}",
    '\\text{"/onfocus="globalThis.hit=1"/}',
    "\\sqrt{",
  ],
  ...[
    "\\def\\a{xx}",
    "\\def\\a{\\a\\a}",
    "\\a",
    "\\begin{matrix}",
    "\\end{matrix}",
    "&",
    "\\\\",
    "\\href{javascript:globalThis.hit=1}{x}",
  ],
  ...[
    "\\class{toast}{x}",
    "\\style{color:red}{x}",
    "\\includegraphics{https://far.example/2.png}",
    "\\color{red}",
    "\\rule{1000em}{1000em}",
  ],
];
const PAIRS: [string, string][] = [
  ...[["*", "*"], ["**", "**"], ["[", "]"], ["[", "](x)"], ["<div>", "</div>"], ["<b>", "</b>"], ["{", "}"]] as const,
  ...[["$\\frac{", "}{b}$"], ["> ", ""], ["- ", ""], ["<table><tr><td>", "</td></tr></table>"], ["(", ")"]] as const,
].map(([open, close]): [string, string] => [open, close]);
const SAMPLES = [
  "# Title\n\nA *formatted* text with `code`, [a link](https://ok.example) and $x^2$.\n\n- one\n  - two\n\n> quote\n",
  "| a | b |\n|---|:-:|\n| 1 | $\\frac{a}{b}$ |\n\n```js\nlet a = 1;\n```\n\n$$\\begin{matrix}1&2\\\\3&4\\end{matrix}$$\n",
  '<details><summary>More</summary>\n\n**inside**\n\n</details>\n\n1. a\n2. b\n\n[ref]: https://ok.example "title"\n[ref]',
];

/** Markup that a browser would run, load or submit. */
const RUNNERS = [
  "<script>globalThis.hit=1</script>",
  "<img src=https://far.example/1.png onerror=globalThis.hit=1>",
  "<svg onload=globalThis.hit=1><style><img src=x onerror=globalThis.hit=1></style></svg>",
  '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror=globalThis.hit=1&gt;">',
  '<noscript><p title="</noscript><img src=x onerror=globalThis.hit=1>"></noscript>',
  '<iframe srcdoc="<script>parent.hit=1</script>"></iframe>',
  "<form action=//far.example><input autofocus onfocus=globalThis.hit=1><button>go</button></form>",
  "<details open ontoggle=globalThis.hit=1><summary>s</summary>d</details>",
  "<p id=app class=toast name=getElementById style=position:fixed onclick=globalThis.hit=1>clobber</p>",
  '<a href="java&#9;script:globalThis.hit=1" onmouseover=globalThis.hit=1>a</a>',
  "[x](javascript:globalThis.hit=1) ![x](https://far.example/2.png)",
  "$\\href{javascript:globalThis.hit=1}{x} \\includegraphics{https://far.example/3.png} \\class{toast}{x}$",
];

const columns = (text: string) => `|${text}`.repeat(10_000) + "|\n";
const alone = (text: string): Message => ({ text, cuts: [] });

let browser: Browser;
let page: Page;
let devtools: CDPSession;
let foreign: string[] = [];
/** CPU time of the page's thread. */
let cpuMs = 0;

async function openBlankPage(): Promise<void> {
  const context = await browser.newContext({ serviceWorkers: "block" });
  page = await context.newPage();
  page.setDefaultTimeout(0); // the parent process kills it if it hangs
  await page.route("**/*", (route) => {
    const url = route.request().url();
    if (url === ORIGIN) return route.fulfill({ contentType: "text/html", body: "<!doctype html><title>fuzz</title>" });
    foreign.push(url);
    return route.abort();
  });
  await page.goto(ORIGIN);
  await page.addScriptTag({ content: await bundleForPage(new URL("../markdown_page.ts", import.meta.url)) });
  devtools = await context.newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
}

/** Reads one of the page's own measures, by its name in the DevTools protocol. */
async function metric(name: string): Promise<number> {
  const { metrics } = await devtools.send("Performance.getMetrics");
  return metrics.find((each) => each.name === name)!.value;
}

async function render({ text, cuts }: Message): Promise<string[]> {
  return await page.evaluate(
    ([text, cuts]) => {
      const { renderFuzz } = globalThis as unknown as { renderFuzz: (text: string, cuts: number[]) => string[] };
      return renderFuzz(text, cuts);
    },
    [text, cuts] as const as [string, number[]],
  );
}

export const MARKDOWN = target<Message>({
  name: "markdown",
  async open() {
    browser = await openBrowser();
    await openBlankPage();
  },
  close: () => browser.close(),
  cpuElsewhereMs: () => cpuMs,
  async retainedBytes() {
    await devtools.send("HeapProfiler.collectGarbage");
    return await metric("JSHeapUsedSize");
  },
  generate(random) {
    const text = random.chance(0.4)
      ? mutateText(random, random.pick([...SAMPLES, ...RUNNERS]) + random.pick(RUNNERS), TOKENS)
      : tokenText(random, TOKENS, PAIRS).slice(0, 100_000);
    const cuts = random.list(random.below(3), () => random.below(text.length + 1)).sort((a, b) => a - b);
    return { text, cuts };
  },
  async run(message) {
    foreign = [];
    let shortestMs = Infinity;
    for (let n = 0; n < MEASUREMENTS && shortestMs > MAX_CPU_MS; n++) {
      const before = await metric("TaskDuration");
      const faults = await render(message);
      const ms = (await metric("TaskDuration") - before) * 1000;
      cpuMs += ms;
      shortestMs = Math.min(shortestMs, ms);
      claim(faults.length === 0, () => `A message put into the page ${faults.join(", ")}`);
    }
    claim(shortestMs <= MAX_CPU_MS, () => `Rendering held the page for ${Math.round(shortestMs)} ms of CPU time`);
    claim(foreign.length === 0, () => `The page asked for ${foreign.join(", ")}`);
  },
  cases: {
    "markup that runs": () => alone(RUNNERS.join("\n\n")),
    "markup that runs, in one line": () => alone(RUNNERS.join(" ")),
    "links without an address": () => alone('<a href="">a</a> <a href>b</a> <a href=" ">c</a> [d](<>)'),
    "6,000 levels of quotes": () => alone(`${">".repeat(6_000)} x`),
    "3,000 levels of lists": () => alone(`${"- ".repeat(3_000)}x`),
    "100,000 asterisks": () => alone("*".repeat(100_000)),
    "10,000 nested brackets": () => alone("[".repeat(10_000) + "x" + "]".repeat(10_000)),
    "a line of 1 MB": () => alone("word ".repeat(200_000)),
    "a table of 10,000 columns": () => alone(columns("a") + columns("-") + columns("b")),
    "a macro used 20,000 times": () => alone(`$\\def\\a{xx}${"\\a".repeat(20_000)}$`),
    "a macro that uses itself": () => alone("$\\def\\a{\\a\\a}\\a$"),
    "1 MB of TeX": () => alone(`$$${"x+".repeat(500_000)}$$`),
    "marks of formulas as character references": () =>
      alone('<b title="&#xFDD0;0&#xFDD1;">b</b> &#xFDD0;0&#xFDD1; $\\text{"/onfocus="globalThis.hit=1"/}$'),
    "marks of formulas, raw": () => alone('<b title="\uFDD00\uFDD1">b</b> $\\text{"/onfocus="globalThis.hit=1"/}$'),
  },
});
