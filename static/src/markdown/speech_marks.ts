/**
 * Quoted speech in a message of a character, for its color.
 *
 * It is wrapped after sanitizing, as nodes: text of a reply never becomes HTML here.
 */

/** Quotation marks by the one that opens: English, straight, German, French, reversed, Japanese. */
const CLOSING = new Map([
  ["“", "”"],
  ['"', '"'],
  ["„", "“”"],
  ["«", "»"],
  ["»", "«"],
  ["「", "」"],
  ["『", "』"],
]);

/** Text in these stays as it is. */
const EXCLUDED = "code, pre, button, .formula";

/** Speech doesn't go beyond one of these. */
const BLOCKS = "p, li, td, th, h3, h4, h5, h6, dt, dd, summary, caption, blockquote, div, details";

/** More quotations in one paragraph stay unmarked: they would only cost time. */
const MAX_IN_BLOCK = 2000;

/** Start and end of one quotation, with its marks. */
export type SpeechRange = readonly [start: number, end: number];

/** Finds quoted speech, in order. A mark without its partner isn't one. Takes time linear in the text. */
export function findSpeech(text: string): SpeechRange[] {
  const found: SpeechRange[] = [];
  /** Marks that don't close anywhere further on. */
  const unclosed = new Set<string>();
  for (let at = 0; at < text.length; at++) {
    const opening = text[at]!;
    const closing = CLOSING.get(opening);
    if (closing === undefined || unclosed.has(opening)) continue;
    // Inches, or the end of a quotation whose start is missing.
    if (opening === '"' && at > 0 && /[\p{L}\p{N}]/u.test(text[at - 1]!)) continue;
    const end = findFirst(text, closing, at + 1);
    if (end < 0) unclosed.add(opening);
    else if (end > at + 1) {
      found.push([at, end + 1]);
      at = end;
    }
  }
  return found;
}

/** Returns the position of the first of some characters; -1 if there is none. */
function findFirst(text: string, characters: string, from: number): number {
  for (let at = from; at < text.length; at++) if (characters.includes(text[at]!)) return at;
  return -1;
}

/** Wraps the speech below an element in spans of the class `speech`, except in code. */
export function markSpeech(root: Element): void {
  const walker = root.ownerDocument.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const blocks: Text[][] = [];
  let last: Element | null | undefined;
  while (walker.nextNode()) {
    const node = walker.currentNode as Text;
    if (node.parentElement?.closest(EXCLUDED)) continue;
    const block = node.parentElement?.closest(BLOCKS);
    if (block !== last || blocks.length === 0) blocks.push([]);
    last = block;
    blocks.at(-1)!.push(node);
  }
  for (const nodes of blocks) markBlock(nodes);
}

/** Speech may contain emphasis and links, so it may consist of several nodes. */
function markBlock(nodes: readonly Text[]): void {
  const ranges = findSpeech(nodes.map(({ data }) => data).join(""));
  if (ranges.length > MAX_IN_BLOCK) return;
  let next = 0;
  let nodeStart = 0;
  for (const node of nodes) {
    const nodeEnd = nodeStart + node.data.length;
    const parts: SpeechRange[] = [];
    for (; next < ranges.length && ranges[next]![0] < nodeEnd; next++) {
      const [start, end] = ranges[next]!;
      parts.push([Math.max(start, nodeStart) - nodeStart, Math.min(end, nodeEnd) - nodeStart]);
      if (end > nodeEnd) break; // goes on in the next node
    }
    // Backwards, so that the positions in front stay right.
    for (const [start, end] of parts.reverse()) if (end > start) wrap(node, start, end);
    nodeStart = nodeEnd;
  }
}

function wrap(node: Text, start: number, end: number): void {
  const span = node.ownerDocument.createElement("span");
  span.className = "speech";
  if (end < node.data.length) node.splitText(end);
  const spoken = start === 0 ? node : node.splitText(start);
  spoken.replaceWith(span);
  span.append(spoken);
}
