/** Formulas as MathML. Loaded with the first formula, since most chats have none. */
import DOMPurify from "dompurify";
import { getSanitizerPolicy } from "../trusted_types.ts";
import temml from "temml";
import { adaptLatex, MACROS } from "./latex.ts";
import { RenderBudget } from "./limits.ts";

/** MathML elements that the converter creates and that are inert: no `maction`, no links. */
const ALLOWED_TAGS = (
  "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle merror mpadded mphantom menclose msub msup msubsup " +
  "munder mover munderover mmultiscripts mprescripts none mtable mtr mtd"
).split(" ");

const ALLOWED_ATTRIBUTES = (
  "class display displaystyle scriptlevel mathvariant mathcolor stretchy fence form separator symmetric largeop " +
  "movablelimits accent accentunder minsize maxsize linethickness notation width height depth lspace rspace voffset " +
  "columnalign rowspan columnspan dir"
).split(" ");

/** Classes that prose.css styles. Any other class could imitate a part of the page. */
const ALLOWED_CLASS = /^(?:tml-(?:left|right|jot|cancel|overline|underline|vec|[a-z]+-pad)|upstrike|downstrike)$/;

/** Time for one formula, in milliseconds; then its source is shown. */
const FORMULA_MS = 100;

/** Minimum time, in milliseconds, for an attempt to count as a failure. */
const FAIR_MS = 20;

/** Failures after which a formula counts as slow. A busy machine makes a quick one late, too, and perhaps twice. */
const MAX_LATE = 3;

/** Longest formula and longest MathML of one, in UTF-16 code units. */
const MAX_TEX_LENGTH = 4000;
const MAX_MATHML_LENGTH = 400_000;

/** Deepest nesting of braces and environments, and of elements. Browsers lay out nested formulas slowly. */
const MAX_DEPTH = 64;

/** Most macros that one formula may expand, its own and TeX's. */
const MAX_EXPANSIONS = 200;

/** Longest formula that may define macros: each use of a macro can be as long as the formula. */
const MAX_DEFINING_LENGTH = 1000;
const DEFINITION = /\\(?:[egx]?def|(?:re|provide)?newcommand|providecommand|let|futurelet)(?![A-Za-z])/;

/** Largest size in em and largest thickness, so that no formula covers other messages. */
const MAX_SIZE_EM = 20;

/** Cache. While a reply streams, the same formulas recur in every frame. */
const MAX_CACHED = 300;

const cache = new Map<string, DocumentFragment | "source">();
/** How often formulas took too long. */
const lateFormulas = new Map<string, number>();
let purifier: ReturnType<typeof DOMPurify> | undefined;
/** The budget of the current sanitizing. */
let running: RenderBudget | undefined;

/**
 * Returns the sanitized MathML of a formula. `source` means: it isn't TeX, is incomplete or exceeds a limit, so its
 * source says more than an error; `late` means: it took too long, and may succeed next time. After some times it's
 * `source`, too.
 *
 * The page's content security policy forbids `style` attributes, so colors become `mathcolor`, boxes `notation`, and the rest is
 * removed.
 *
 * @param budget The message's remaining time. A formula gets at most 100 ms of it.
 */
export function mathToNode(tex: string, isDisplay: boolean, budget: RenderBudget): Node | "source" | "late" {
  const key = `${isDisplay ? "d" : "i"}${tex}`;
  const ms = Math.min(FORMULA_MS, budget.leftMs);
  let found = cache.get(key) ?? convert(tex, isDisplay, ms);
  if (found === "late") {
    if (ms < FAIR_MS) return "late";
    const count = (lateFormulas.get(key) ?? 0) + 1;
    if (count < MAX_LATE) {
      if (count > 1 || lateFormulas.size < MAX_CACHED) lateFormulas.set(key, count);
      return "late";
    }
    found = "source";
  }
  lateFormulas.delete(key);
  if (!cache.has(key)) {
    if (cache.size >= MAX_CACHED) cache.delete(cache.keys().next().value!);
    cache.set(key, found);
  }
  return typeof found === "string" ? "source" : found.cloneNode(true);
}

/** Returns the MathML of a formula as unsanitized text. @throws What the converter throws, or a limit. */
export function mathToText(tex: string, isDisplay: boolean, budget = new RenderBudget(FORMULA_MS)): string {
  if (tex.length > MAX_TEX_LENGTH) throw new Error("Can't render the formula: it is too long");
  if (tex.length > MAX_DEFINING_LENGTH && DEFINITION.test(tex)) {
    throw new Error("Can't render the formula: it is too long to define macros");
  }
  if (measureDepth(tex) > MAX_DEPTH) throw new Error("Can't render the formula: it is nested too deeply");
  const mathml = temml.renderToString(adaptLatex(tex), {
    displayMode: isDisplay,
    throwOnError: true,
    trust: false,
    strict: false,
    maxExpand: MAX_EXPANSIONS,
    maxSize: [MAX_SIZE_EM, MAX_SIZE_EM],
    macros: clockedMacros(budget),
  });
  if (mathml.length > MAX_MATHML_LENGTH) throw new Error("Can't render the formula: its MathML is too long");
  return mathml;
}

function convert(tex: string, isDisplay: boolean, ms: number): DocumentFragment | "source" | "late" {
  if (ms <= 0) return "late";
  const budget = new RenderBudget(ms);
  let mathml: string;
  try {
    mathml = mathToText(tex, isDisplay, budget);
  } catch {
    return budget.leftMs === 0 ? "late" : "source";
  }
  if (budget.leftMs === 0) return "late";
  purifier ??= createPurifier();
  running = budget;
  try {
    const fragment = purifier.sanitize(withoutStyles(mathml), { RETURN_DOM_FRAGMENT: true });
    // Formulas that only define macros show nothing.
    return isDeep(fragment) || fragment.textContent?.trim() === "" ? "source" : fragment;
  } catch (error) {
    if (budget.leftMs === 0) return "late";
    throw error;
  } finally {
    running = undefined;
  }
}

/** Returns the nesting depth of braces and environments: a linear scan before a parser recurses. */
function measureDepth(tex: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [mark] of tex.matchAll(/\\(?:begin|end|left|right)(?![A-Za-z])|\\[^]|[{}]/g)) {
    if (mark === "{" || mark === "\\begin" || mark === "\\left") deepest = Math.max(deepest, ++depth);
    else if (mark === "}" || mark === "\\end" || mark === "\\right") depth--;
  }
  return deepest;
}

/**
 * True if elements nest deeper than browsers lay out in time. Arguments without braces nest too: `\sqrt\sqrt\sqrt x`.
 */
function isDeep(fragment: DocumentFragment): boolean {
  const walker = fragment.ownerDocument.createTreeWalker(fragment, NodeFilter.SHOW_ELEMENT);
  let depth = 0;
  while (true) {
    if (walker.firstChild()) depth++;
    else {
      while (!walker.nextSibling()) {
        if (!walker.parentNode()) return false;
        depth--;
      }
    }
    if (depth > 2 * MAX_DEPTH) return true;
  }
}

/**
 * The macro table of one formula, which checks the time. The converter reads it for every token it expands and has no
 * other hook between tokens.
 */
function clockedMacros(budget: RenderBudget): Record<string, string> {
  return new Proxy<Record<string, string>>({ ...MACROS }, {
    getOwnPropertyDescriptor(target, name) {
      budget.check();
      return Reflect.getOwnPropertyDescriptor(target, name);
    },
  });
}

/** A separate instance: its hook must not affect the HTML of replies. */
function createPurifier() {
  const own = DOMPurify(globalThis.window);
  own.setConfig({
    ALLOWED_TAGS,
    ALLOWED_ATTR: ALLOWED_ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
    TRUSTED_TYPES_POLICY: getSanitizerPolicy() as never,
  });
  own.addHook("beforeSanitizeElements", () => running?.check());
  own.addHook("afterSanitizeAttributes", (node) => {
    const names = (node.getAttribute("class") ?? "").split(" ").filter((name) => ALLOWED_CLASS.test(name));
    if (names.length > 0) node.setAttribute("class", names.join(" "));
    else node.removeAttribute("class");
  });
  return own;
}

/** The content security policy would refuse these even when only read, and log each. */
function withoutStyles(mathml: string): string {
  return mathml.replace(/ style="([^"]*)"/g, (_, style: string) => {
    const color = /(?:^|;)\s*color:\s*(#[0-9a-f]{3,8})/i.exec(style)?.[1];
    const box = /(?:^|;)\s*border:/i.test(style) ? ' notation="box"' : "";
    return color === undefined ? box : `${box} mathcolor="${color}"`;
  });
}

/** Renders one formula without a limit, so that the first formula of a message isn't late. */
export function warmUp(): void {
  const tex = String.raw`\begin{aligned} \frac{a_1^2}{\sqrt{b}} &= \left( \sum_{i=0}^n \text{x} \right) \end{aligned}`;
  convert(tex, true, Infinity);
}
