/** Formulas as MathML. Loaded with the first formula there is, since most chats have none. */
import DOMPurify from "dompurify";
import temml from "temml";

/** Elements of MathML that the converter makes and that can do nothing but be read; no `maction`, no links. */
const ALLOWED_TAGS = (
  "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle merror mpadded mphantom menclose msub msup msubsup " +
  "munder mover munderover mmultiscripts mprescripts none mtable mtr mtd"
).split(" ");

const ALLOWED_ATTRIBUTES = (
  "class display displaystyle scriptlevel mathvariant mathcolor stretchy fence form separator symmetric largeop " +
  "movablelimits accent accentunder minsize maxsize linethickness notation width height depth lspace rspace voffset " +
  "columnalign rowspan columnspan dir"
).split(" ");

/** Classes that prose.css knows; any other would be a way to dress up as a part of the page. */
const ALLOWED_CLASS = /^(?:tml-(?:left|right|jot|cancel|overline|underline|vec|[a-z]+-pad)|upstrike|downstrike)$/;

/** Formulas are often the same ones again: while a reply streams, in every frame. */
const MAX_KEPT = 300;

const kept = new Map<string, string | undefined>();
let purifier: ReturnType<typeof DOMPurify> | undefined;

/**
 * Gives the cleaned MathML of a formula; undefined where it is none.
 *
 * The policy of the page forbids `style` attributes, so colours become `mathcolor` and the rest of them goes.
 */
export function mathsToHtml(tex: string, isDisplay: boolean): string | undefined {
  const key = `${isDisplay ? "d" : "i"}${tex}`;
  if (kept.has(key)) return kept.get(key);
  const html = convert(tex, isDisplay);
  if (kept.size >= MAX_KEPT) kept.delete(kept.keys().next().value!);
  kept.set(key, html);
  return html;
}

function convert(tex: string, isDisplay: boolean): string | undefined {
  let raw: string;
  try {
    raw = temml.renderToString(tex, { displayMode: isDisplay, throwOnError: true, trust: false, maxExpand: 200 });
  } catch {
    return undefined; // Not TeX, or not yet all of it: its source says more than an error would.
  }
  purifier ??= createPurifier();
  return purifier.sanitize(withoutStyles(raw), {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ALLOWED_ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
  });
}

/** One of its own: its hook is no business of the HTML of replies. */
function createPurifier() {
  const own = DOMPurify(globalThis.window);
  own.addHook("afterSanitizeAttributes", (node) => {
    const names = (node.getAttribute("class") ?? "").split(" ").filter((name) => ALLOWED_CLASS.test(name));
    if (names.length > 0) node.setAttribute("class", names.join(" "));
    else node.removeAttribute("class");
  });
  return own;
}

/** The page's policy would refuse them even where they are only read, and say so each time. */
function withoutStyles(mathml: string): string {
  return mathml.replace(/ style="([^"]*)"/g, (_, style: string) => {
    const color = /(?:^|;)\s*color:\s*(#[0-9a-f]{3,8})/i.exec(style)?.[1];
    return color === undefined ? "" : ` mathcolor="${color}"`;
  });
}
