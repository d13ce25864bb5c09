/** Renders messages like the chat, in a page without a content security policy, and reports what a text changed in the page. Bundled for the browser. */
import { type Block, GrowingMarkdown } from "../../static/src/markdown/blocks.ts";
import { mathToNode } from "../../static/src/markdown/math.ts";

/** Everything that loads, runs or submits by itself. */
const LIVE =
  "script, img, video, audio, source, picture, object, embed, iframe, form, input, button:not([class]), base, meta, link, " +
  "style, svg, template";
const LINK = /^(?:https?:\/\/|mailto:)/i;
const MATHML = "http://www.w3.org/1998/Math/MathML";
const FOREIGN_ATTRIBUTES = [
  ...["href", "title", "lang", "dir", "start", "align", "colspan", "rowspan", "open", "target", "rel"],
];
/** Events that a pointer, the keyboard or a load sends. */
const EVENTS = ["mouseover", "focus", "load", "error", "toggle", "click"];

function show(blocks: readonly Block[]): void {
  document.body.replaceChildren(...blocks.map((block) => {
    const box = document.createElement(block.kind === "code" ? "pre" : "div");
    if ("fragment" in block) box.append(document.importNode(block.fragment, true));
    else box.textContent = block.text;
    return box;
  }));
}

/** Attributes that the renderer adds to task list items and footnotes. */
const OWN_ATTRIBUTES: Record<string, string[]> = {
  "li.task": ["class"],
  "div.footnote": ["class"],
  "button.footnote-mark": ["class", "type", "aria-label"],
  "button.formula-copy": ["class", "type", "aria-label", "title"],
  "span.formula-source": ["class"],
};

/** Returns the forbidden content that the text has put into the page. */
function faults(): string[] {
  const found = [...document.body.querySelectorAll(LIVE)].map(({ localName }) => `a live element: ${localName}`);
  for (const element of document.body.querySelectorAll(":scope > div *")) {
    const isFormula = element.localName === "span" && element.className === "formula" &&
      element.firstElementChild?.namespaceURI === MATHML;
    const ours = isFormula ? ["class", "tabindex"] : OWN_ATTRIBUTES[`${element.localName}.${element.className}`] ?? [];
    for (const { name, value } of element.attributes) {
      const isAllowed = element.namespaceURI === MATHML
        ? !/^on|^(?:id|style|src|href|xlink:href|actiontype)$/.test(name)
        : FOREIGN_ATTRIBUTES.includes(name) || ours.includes(name);
      if (!isAllowed) found.push(`an attribute: ${element.localName} ${name}`);
      if (name === "href" && !LINK.test(value)) found.push(`a link to ${value.slice(0, 100)}`);
    }
    for (const type of EVENTS) {
      const event = new Event(type, { bubbles: true, cancelable: true });
      event.preventDefault(); // links are not followed
      element.dispatchEvent(event);
    }
  }
  if ("hit" in globalThis) found.push("a script ran");
  if (document.body.id !== "" || document.title !== "fuzz") found.push("the page was changed");
  return [...new Set(found)];
}

/** Shows a text as it grows, read in pieces that end at `cuts`, then whole. */
function render(text: string, cuts: readonly number[]): string[] {
  const growing = new GrowingMarkdown();
  const found: string[] = [];
  for (const cut of cuts) {
    show(growing.update(text.slice(0, cut), false, mathToNode));
    found.push(...faults());
  }
  show(growing.update(text, true, mathToNode));
  document.body.getBoundingClientRect(); // Including its layout.
  found.push(...faults());
  document.body.replaceChildren();
  return [...new Set(found)];
}

Object.assign(globalThis, { renderFuzz: render });
