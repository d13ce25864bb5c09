/** Renders texts like the chat and serializes what a reader sees. Bundled for the browser. */
import { type Block, GrowingMarkdown } from "../../../static/src/markdown/blocks.ts";
import { MarkdownRenderer, randomMark } from "../../../static/src/markdown/render.ts";
import { mathToNode, warmUp } from "../../../static/src/markdown/math.ts";

/** How to render a text. */
export interface RenderTask {
  text: string;
  /** Line breaks as Markdown has them. */
  isMarkdown?: boolean;
  /** Also render it as it grows, in pieces of these lengths in UTF-8 bytes. */
  pieces?: number[];
}

/** What a reader sees of a text. */
export interface Rendered {
  /** The form of `Reply.shows`. */
  shows: string;
  /** The form of `Reply.directions`. */
  directions: string;
  /** What is different after the text has grown, with its exact nodes at the end. */
  differences: { isFinal: boolean; bytes: number; shows: string }[];
  isPlain: boolean;
}

const BLOCKS = new Set(
  ("p h3 h4 h5 h6 ul ol li blockquote pre table thead tbody tfoot tr th td caption dl dt dd details summary div hr " +
    "figure").split(" "),
);
/** Elements whose inline content counts as a paragraph, so that tight and loose lists look the same. */
const CONTAINERS = new Set("li blockquote th td dd div details".split(" "));
const FORMATTING = new Set("b i u s em strong del ins small mark span q".split(" "));
const KEPT_ATTRIBUTES = ["href", "start", "align", "dir", "open", "title", "colspan", "rowspan"];

function toNodes(blocks: readonly Block[]): HTMLElement {
  const root = document.createElement("div");
  for (const block of blocks) {
    if ("fragment" in block) root.append(document.importNode(block.fragment, true));
    else {
      const element = document.createElement(block.kind === "code" ? "pre" : "plain");
      element.textContent = block.text;
      root.append(element);
    }
  }
  return root;
}

/** Elements without text of their own. */
const SKELETON = new Set("ul ol table thead tbody tfoot tr dl".split(" "));

/** Returns a text's nodes in the form of `Reply.shows`. */
function serialize(root: Element): string {
  return [...root.childNodes].map(serializeNode).join("").replace(/\s*(<br>)\s*/g, "$1");
}

function serializeNode(node: ChildNode): string {
  if (node.nodeType === Node.TEXT_NODE) return escape(node.textContent!.replace(/[ \t\n\r]+/g, " "));
  if (!(node instanceof Element)) return "";
  const name = node.localName;
  if (name === "math") return `<math>`;
  if (node.classList.contains("formula")) return "<math block>";
  if (node.classList.contains("formula-source")) {
    return `<source>${escape(node.querySelector("code")!.textContent!)}</source>`;
  }
  if (name === "pre") return `<pre>${escape(node.textContent!.replace(/\n$/, ""))}</pre>`;
  if (name === "button") return `[${node.textContent}]`;
  const attributes = KEPT_ATTRIBUTES.flatMap((key) => {
    const value = node.getAttribute(key);
    return value === null ? [] : [value === "" ? ` ${key}` : ` ${key}="${escape(value)}"`];
  }).join("");
  // What is left of formatting around white space between blocks.
  if (FORMATTING.has(name) && node.textContent!.trim() === "") return " ";
  if (name === "br" || name === "hr" || name === "wbr") return `<${name}>`;
  return `<${name}${attributes}>${CONTAINERS.has(name) ? paragraphs(node) : content(node)}</${name}>`;
}

function content(element: Element): string {
  if (SKELETON.has(element.localName)) return [...element.children].map(serializeNode).join("");
  const inner = serialize(element);
  return BLOCKS.has(element.localName) ? inner.replace(/^(?:\s|<br>)+|(?:\s|<br>)+$/g, "") : inner;
}

/** Wraps inline content between blocks into paragraphs. */
function paragraphs(element: Element): string {
  let html = "";
  let inline = "";
  const flush = () => {
    const text = inline.replace(/\s*(<br>)\s*/g, "$1").replace(/^(?:\s|<br>)+|(?:\s|<br>)+$/g, "");
    if (text !== "") html += `<p>${text}</p>`;
    inline = "";
  };
  for (const node of element.childNodes) {
    if (node instanceof Element && BLOCKS.has(node.localName)) {
      flush();
      html += serializeNode(node);
    } else inline += serializeNode(node);
  }
  flush();
  return html;
}

function escape(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&${{ "&": "amp", "<": "lt", ">": "gt", '"': "quot" }[character]};`);
}

function show(root: HTMLElement): string {
  const box = document.createElement("blockquote");
  box.append(...root.childNodes);
  // A formula with a line of its own is a paragraph, wherever it is.
  return paragraphs(box).replace(
    /<p>(?:(?!<\/?p>).)*<math block>(?:(?!<\/?p>).)*<\/p>/gs,
    (paragraph) =>
      paragraph.slice(3, -4).split(/(<math block>)/).map((part) => part.trim()).filter((part) => part !== "")
        .map((part) => `<p>${part}</p>`).join(""),
  );
}

/** Cuts a text into pieces of whole characters that have at least this many bytes together. */
function cutsOf(text: string, bytes: number): number[] {
  const cuts: number[] = [];
  let at = 0;
  let size = 0;
  for (const character of text) {
    at += character.length;
    size += new TextEncoder().encode(character).length;
    if (size >= bytes) {
      cuts.push(at);
      size = 0;
    }
  }
  return cuts;
}

/** Without limits on time, which depend on the machine. */
performance.now = () => 0;

function render({ text, isMarkdown = false, pieces = [] }: RenderTask): Rendered {
  const options = { hasBreaks: !isMarkdown };
  const whole = new GrowingMarkdown(options);
  const nodes = toNodes(whole.update(text, true, mathToNode));
  const html = nodes.innerHTML;
  const directions = measureDirections(nodes);
  const shows = show(nodes);
  const differences = pieces.flatMap((bytes) => {
    const growing = new GrowingMarkdown(options);
    for (const cut of cutsOf(text, bytes)) growing.update(text.slice(0, cut), false, mathToNode);
    const last = show(toNodes(growing.update(text, false, mathToNode)));
    const final = toNodes(growing.update(text, true, mathToNode)).innerHTML;
    return [
      ...(final === html ? [] : [{ isFinal: true, bytes, shows: final }]),
      ...(last === shows ? [] : [{ isFinal: false, bytes, shows: last }]),
    ];
  });
  return { shows, directions, differences, isPlain: whole.isPlain };
}

const LEAVES = "p, li, h3, h4, h5, h6, th, td, dt, dd, summary, blockquote, div, details";

/** Lays out a text and finds the side at which each of its blocks starts. */
function measureDirections(nodes: HTMLElement): string {
  const prose = document.createElement("div");
  prose.className = "prose";
  prose.append(document.importNode(nodes, true));
  document.body.replaceChildren(prose);
  for (const details of prose.querySelectorAll("details")) details.open = true;
  const directions = [...prose.querySelectorAll<HTMLElement>(LEAVES)].flatMap((block) => {
    const inline = [...block.childNodes].filter((node) => !(node instanceof Element && BLOCKS.has(node.localName)));
    const range = document.createRange();
    const first = inline.find((node) => node.textContent!.trim() !== "");
    if (!first || block === prose.firstElementChild) return [];
    range.setStartBefore(first);
    range.setEndAfter(inline.at(-1)!);
    const rects = [...range.getClientRects()].filter(({ width }) => width > 0);
    const line = rects.filter(({ top, bottom }) => top < rects[0]!.bottom && bottom > rects[0]!.top);
    const box = block.getBoundingClientRect();
    const style = getComputedStyle(block);
    // Centered, or at a side of its own.
    if (style.textAlign !== "start" || first instanceof Element && first.className === "formula") return [];
    const start = box.left + parseFloat(style.paddingLeft) + parseFloat(style.borderLeftWidth);
    const end = box.right - parseFloat(style.paddingRight) - parseFloat(style.borderRightWidth);
    const left = Math.min(...line.map((rect) => rect.left)) - start;
    const right = end - Math.max(...line.map((rect) => rect.right));
    return [left > right ? "rtl" : "ltr"];
  });
  document.body.replaceChildren();
  return directions.join(" ");
}

/** Returns what a reader would see of trusted HTML: what a message may contain, in the form of `Reply.shows`. */
function showReference(html: string): string {
  const headings = html.replace(/(<\/?h)[12]>/g, "$13>");
  const { fragment } = new MarkdownRenderer(randomMark()).render({
    key: "",
    html: headings,
    foreignCount: 0,
    formulas: [],
  });
  const root = document.createElement("div");
  root.append(document.importNode(fragment, true));
  return show(root);
}

warmUp();
Object.assign(globalThis, {
  renderReplies: (tasks: RenderTask[]) => tasks.map(render),
  showReferences: (htmls: string[]) => htmls.map(showReference),
});
