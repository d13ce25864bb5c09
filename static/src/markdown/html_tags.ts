/** Which angle brackets of a text are HTML: `<b>` is, `<branch-name>` and `Promise<void>` are text. */

/** Elements that a message may contain. */
export const ALLOWED_TAGS = (
  "p br hr h3 h4 h5 h6 ul ol li blockquote pre code em strong b i u s del ins sub sup kbd mark small q cite abbr " +
  "a table thead tbody tfoot tr th td caption dl dt dd details summary span div ruby rt rp wbr"
).split(" ");

/** Elements that become links to what they would load, if they have attributes. */
const MEDIA_TAGS = "img picture video audio source track embed object iframe".split(" ");

/** Elements of which only the content is shown. */
const UNWRAPPED_TAGS = (
  "h1 h2 center font big tt strike nobr acronym dfn var samp bdi bdo time data address section article aside header " +
  "footer main nav hgroup figure figcaption fieldset legend label colgroup col"
).split(" ");

const HTML_TAGS = new Set([...ALLOWED_TAGS, ...MEDIA_TAGS, ...UNWRAPPED_TAGS]);
/** Elements that mean something without an end tag and without attributes. Browsers read `</br>` as `<br>`. */
const BREAK_TAGS = new Set(["br", "hr", "wbr"]);

/** Elements without an end tag. */
const VOID_TAGS = new Set("br hr wbr img source track embed col".split(" "));

/** Elements that contain blocks and that only their end tag closes. */
const CONTAINER_TAGS = new Set(
  "blockquote ul ol table dl details div center section article aside header footer main nav figure fieldset".split(
    " ",
  ),
);

/** Elements that end where their like begins or their parent ends. */
const OPTIONAL_ENDS = new Set("p li dt dd tr td th thead tbody tfoot caption rt rp".split(" "));

/** Attributes without a value. Others are words: `a<b and c>d`. */
const BOOLEAN_ATTRIBUTES = new Set(
  "href open hidden controls autoplay loop muted nowrap noshade reversed compact allowfullscreen playsinline".split(
    " ",
  ),
);

const ATTRIBUTE = /\s+([a-z_:][\w.:-]*)(\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?/gi;
const TAG = new RegExp(`<(/?)([a-z][a-z0-9-]*)((?:${ATTRIBUTE.source})*)\\s*/?>`, "iy");

/** A tag of a text. */
export interface HtmlTag {
  name: string;
  isEnd: boolean;
  /** Without attributes, so it may be a placeholder. */
  isBare: boolean;
  /** Where it is in its text. */
  start: number;
  end: number;
}

/** Finds tags of HTML elements and comments (with the name `!`), in order. Other angle brackets are text. */
export function findTags(text: string): HtmlTag[] {
  const tags: HtmlTag[] = [];
  // Not searched again where none ends, so that a text of starts takes linear time.
  let hasComments = true;
  for (let start = text.indexOf("<"); start >= 0; start = text.indexOf("<", start)) {
    const end = hasComments && text.startsWith("<!--", start) ? text.indexOf("-->", start + 2) : undefined;
    if (end === -1) hasComments = false;
    const tag = end !== undefined && end > 0
      ? { name: "!", isEnd: false, isBare: false, start, end: end + 3 }
      : parseTag(text, start);
    if (tag) tags.push(tag);
    start = tag?.end ?? start + 1;
  }
  return tags;
}

function parseTag(text: string, start: number): HtmlTag | undefined {
  TAG.lastIndex = start;
  const match = TAG.exec(text);
  const name = match?.[2]?.toLowerCase();
  if (!match || name === undefined || !HTML_TAGS.has(name)) return undefined;
  const attributes = [...match[3]!.matchAll(ATTRIBUTE)].map(([, key, value]) => ({ key: key!.toLowerCase(), value }));
  if (attributes.some(({ key, value }) => value === undefined && !BOOLEAN_ATTRIBUTES.has(key))) return undefined;
  return { name, isEnd: match[1] === "/", isBare: attributes.length === 0, start, end: TAG.lastIndex };
}

/** True if an element contains blocks until its end tag. */
export function isContainer(name: string): boolean {
  return CONTAINER_TAGS.has(name);
}

/** True if only an end tag ends an element. */
export function needsEnd(name: string): boolean {
  return name !== "!" && !VOID_TAGS.has(name) && !OPTIONAL_ENDS.has(name);
}

/**
 * Pairs start and end tags of the same name, the innermost first, in linear time.
 *
 * @returns For each tag the position of its partner; undefined if it has none.
 */
export function pairTags(tags: readonly Pick<HtmlTag, "name" | "isEnd">[]): (number | undefined)[] {
  const open = new Map<string, number[]>();
  const partners: (number | undefined)[] = tags.map(() => undefined);
  for (const [index, { name, isEnd }] of tags.entries()) {
    if (VOID_TAGS.has(name) || name === "!") continue;
    const starts = open.get(name) ?? [];
    if (!isEnd) starts.push(index);
    else {
      const start = starts.pop();
      if (start === undefined) continue;
      partners[start] = index;
      partners[index] = start;
    }
    open.set(name, starts);
  }
  return partners;
}

/**
 * True if a tag amid words is text although its name is that of an element: a placeholder (`cp <source> <target>`), or
 * the mention of a tag.
 */
export function isMention({ name, isBare }: HtmlTag, hasPartner: boolean): boolean {
  if (name === "!" || !isBare || hasPartner) return false;
  return !BREAK_TAGS.has(name);
}

/** Escapes the angle brackets of a text that don't belong to tags. */
export function escapeOtherBrackets(html: string): string {
  let result = "";
  let from = 0;
  for (const { start, end } of findTags(html)) {
    result += html.slice(from, start).replaceAll("<", "&lt;") + html.slice(start, end);
    from = end;
  }
  return result + html.slice(from).replaceAll("<", "&lt;");
}

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Escapes a text for use in HTML. */
export function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}

/** Removes HTML from a text, and leaves other angle brackets: for search snippets, titles and reading aloud. */
export function stripTags(text: string): string {
  const tags = findTags(text);
  if (tags.length === 0) return text;
  const partners = pairTags(tags);
  let result = "";
  let from = 0;
  for (const [index, tag] of tags.entries()) {
    if (isMention(tag, partners[index] !== undefined)) continue;
    result += `${text.slice(from, tag.start)} `;
    from = tag.end;
  }
  return result + text.slice(from);
}
