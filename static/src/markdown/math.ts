/** Formulas as MathML. Loaded with the first formula there is, since most chats have none. */
import DOMPurify from "dompurify";
import temml from "temml";
import { RenderBudget } from "./limits.ts";

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

/** Time for one formula, in milliseconds; then its source is shown. */
const FORMULA_MS = 100;

/** A try with less time than this says nothing about a formula, in milliseconds. */
const FAIR_MS = 20;

/** Longest formula, in UTF-16 units, and longest MathML of one. */
const MAX_TEX_LENGTH = 4000;
const MAX_MATHML_LENGTH = 400_000;

/** Deepest nesting of braces and environments, and of elements: the layout of nested formulas takes long in browsers. */
const MAX_DEPTH = 64;

/** Most macros that one formula may expand, its own and those that TeX has. */
const MAX_EXPANSIONS = 200;

/** Longest formula that may define macros: each use of one can be as long as the formula. */
const MAX_DEFINING_LENGTH = 1000;
const DEFINITION = /\\(?:[egx]?def|(?:re|provide)?newcommand|providecommand|let|futurelet)(?![A-Za-z])/;

/** Largest size, in em, and thickness that a formula may ask for, so that none covers other messages. */
const MAX_SIZE_EM = 20;

/** Formulas are often the same ones again: while a reply streams, in every frame. */
const MAX_KEPT = 300;

const kept = new Map<string, DocumentFragment | "source">();
/** Formulas that took too long once. */
const late = new Set<string>();
let purifier: ReturnType<typeof DOMPurify> | undefined;
/** What the sanitizing that is going on may take. */
let running: RenderBudget | undefined;

/**
 * Returns the sanitized MathML of a formula. `source`: it isn't TeX, isn't all of it yet or is over a limit, so its source says
 * more than an error would; `late`: it took too long, which may be different the next time.
 *
 * The policy of the page forbids `style` attributes, so colours become `mathcolor` and the rest of them goes.
 *
 * @param budget What the whole message may still take; a formula gets 100 ms of it at most.
 */
export function mathToNode(tex: string, isDisplay: boolean, budget: RenderBudget): Node | "source" | "late" {
  const key = `${isDisplay ? "d" : "i"}${tex}`;
  const ms = Math.min(FORMULA_MS, budget.leftMs);
  let found = kept.get(key) ?? convert(tex, isDisplay, ms);
  if (found === "late") {
    if (ms < FAIR_MS || !late.has(key)) {
      if (ms >= FAIR_MS && late.size < MAX_KEPT) late.add(key);
      return "late";
    }
    late.delete(key);
    found = "source";
  }
  if (!kept.has(key)) {
    if (kept.size >= MAX_KEPT) kept.delete(kept.keys().next().value!);
    kept.set(key, found);
  }
  return typeof found === "string" ? "source" : found.cloneNode(true);
}

/** Returns the MathML of a formula as text, not sanitized. @throws whatever the converter throws, or the limits. */
export function mathToText(tex: string, isDisplay: boolean, budget = new RenderBudget(FORMULA_MS)): string {
  if (tex.length > MAX_TEX_LENGTH) throw new Error("Can't render the formula: it is too long");
  if (tex.length > MAX_DEFINING_LENGTH && DEFINITION.test(tex)) {
    throw new Error("Can't render the formula: it is too long to define macros");
  }
  if (measureDepth(tex) > MAX_DEPTH) throw new Error("Can't render the formula: it is nested too deeply");
  const mathml = temml.renderToString(tex, {
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
    return isDeep(fragment) ? "source" : fragment;
  } catch (error) {
    if (budget.leftMs === 0) return "late";
    throw error;
  } finally {
    running = undefined;
  }
}

/** How deep braces and environments nest: a linear look at the source, before a parser recurses through it. */
function measureDepth(tex: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [mark] of tex.matchAll(/\\(?:begin|end|left|right)(?![A-Za-z])|\\[^]|[{}]/g)) {
    if (mark === "{" || mark === "\\begin" || mark === "\\left") deepest = Math.max(deepest, ++depth);
    else if (mark === "}" || mark === "\\end" || mark === "\\right") depth--;
  }
  return deepest;
}

/** True if elements nest deeper than a browser lays out in time. Arguments without braces nest too: `\sqrt\sqrt\sqrt x`. */
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
 * A place for the macros of one formula that looks at the clock. The converter asks it for every token it expands and has no
 * other hook between two of them.
 */
function clockedMacros(budget: RenderBudget): Record<string, string> {
  return new Proxy<Record<string, string>>({}, {
    getOwnPropertyDescriptor(target, name) {
      budget.check();
      return Reflect.getOwnPropertyDescriptor(target, name);
    },
  });
}

/** One of its own: its hook is no business of the HTML of replies. */
function createPurifier() {
  const own = DOMPurify(globalThis.window);
  own.setConfig({
    ALLOWED_TAGS,
    ALLOWED_ATTR: ALLOWED_ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  own.addHook("beforeSanitizeElements", () => running?.check());
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

/** Renders one formula without a limit, so that the first one of a message isn't late for being the first. */
export function warmUp(): void {
  const tex = String.raw`\begin{aligned} \frac{a_1^2}{\sqrt{b}} &= \left( \sum_{i=0}^n \text{x} \right) \end{aligned}`;
  convert(tex, true, Infinity);
}
