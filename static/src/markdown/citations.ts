/**
 * References to pages in a reply, in the form of the marks that the model sees: `[p. 12]`, `[report.pdf, p. 12]`.
 *
 * They become buttons after sanitizing, as nodes: text of a reply never becomes HTML here.
 */

/** One reference in a text. */
export interface Citation {
  /** Where it is in the text. */
  start: number;
  end: number;
  /** Name of the document, if given. */
  name: string | undefined;
  /** The first page that it names. */
  page: number;
}

/** Opens a page of a document. */
export interface CitedPage {
  /** Description of the button. */
  title: string;
  open(): void;
}

/** Finds the page of a reference. Returns undefined if there is no such document or page. */
export type CitationResolver = (name: string | undefined, page: number) => CitedPage | undefined;

/** Also lists and ranges, which models write on their own: `[pp. 3–5]`, `[p. 3, p. 7]`. */
const CITATION =
  /\[(?:(?!pp?\. ?\d)([^[\]\n]{1,200}), ?)?pp?\. ?(\d{1,7})(?: ?(?:[-–]|, ?(?:pp?\. ?)?) ?\d{1,7}){0,50}\]/g;

/** Text in these is not a reference. */
const EXCLUDED = "a, button, code, pre, .formula";

/** Finds references, in order. */
export function findCitations(text: string): Citation[] {
  return [...text.matchAll(CITATION)].map((match) => ({
    start: match.index,
    end: match.index + match[0].length,
    name: match[1]?.trim(),
    page: Number(match[2]),
  }));
}

/** Replaces the references below an element with buttons, except in links and code. */
export function linkCitations(root: Element, resolve: CitationResolver): void {
  const walker = root.ownerDocument.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const nodes: Text[] = [];
  while (walker.nextNode()) {
    const node = walker.currentNode as Text;
    if (node.data.includes("[") && !node.parentElement?.closest(EXCLUDED)) nodes.push(node);
  }
  for (const node of nodes) {
    // Backwards, so that the positions in front stay right.
    for (const { start, end, name, page } of findCitations(node.data).reverse()) {
      const target = resolve(name, page);
      if (target === undefined) continue;
      const button = root.ownerDocument.createElement("button");
      button.type = "button";
      button.className = "citation";
      button.title = target.title;
      button.textContent = node.data.slice(start, end);
      button.addEventListener("click", () => target.open());
      node.splitText(end);
      node.splitText(start).replaceWith(button);
    }
  }
}
