/**
 * Direction of the blocks of a message. Paragraphs take their own from CSS (`unicode-bidi: plaintext`), but the side of
 * list markers, of a quote's line and of a table's first column depends on the attribute `dir`.
 */
import type { RenderBudget } from "./limits.ts";

const CONTAINERS = "ul, ol, blockquote, table, dl, details";
/** Left to right in any language, so they say nothing about it. */
const NEUTRAL = "code, pre, kbd, .formula, math";

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const STRONG = /\p{L}/u;

/**
 * Sets the direction of lists, quotes and tables by their first letter.
 *
 * @throws {RenderLimitError} `time`
 */
export function setDirections(root: DocumentFragment, budget: RenderBudget): void {
  if (!RIGHT_TO_LEFT.test(root.textContent ?? "")) return;
  for (const container of root.querySelectorAll<HTMLElement>(CONTAINERS)) {
    budget.check();
    if (container.hasAttribute("dir")) continue;
    const own = findDirection(container);
    const outer = container.parentElement?.closest("[dir]")?.getAttribute("dir") ?? "ltr";
    if (own !== undefined && own !== outer) container.dir = own;
  }
}

/** Returns the direction of the first letter that isn't code. */
function findDirection(element: Element): "ltr" | "rtl" | undefined {
  const walker = element.ownerDocument.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const letter = STRONG.exec((walker.currentNode as Text).data)?.[0];
    if (letter === undefined || walker.currentNode.parentElement?.closest(NEUTRAL)) continue;
    return RIGHT_TO_LEFT.test(letter) ? "rtl" : "ltr";
  }
  return undefined;
}
