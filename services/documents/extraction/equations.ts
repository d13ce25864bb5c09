/** Equations as one line of text: MathML of HTML, and OMML of Word (ECMA-376, part 1, section 22.1). */

/** An open element. */
interface Node {
  name: string;
  parts: string[];
  /** Of OMML properties: the characters of delimiters, sums and accents. */
  marks: Record<string, string>;
}

/** Wraps a text in parentheses unless it's a number or a word. */
function groupText(text: string): string {
  return /^(?:[\p{L}\p{N}\p{M}.,′]+|.?)$/su.test(text) || isGrouped(text) ? text : `(${text})`;
}

function isGrouped(text: string): boolean {
  return /^\([^()]*\)$/.test(text);
}

/** Raises a text. */
export function formatSuperscript(text: string): string {
  return text.trim() === "" ? text : `^${groupText(text.trim())}`;
}

/** Lowers a text. */
export function formatSubscript(text: string): string {
  return text.trim() === "" ? text : `_${groupText(text.trim())}`;
}

const join = (parts: readonly string[]) => parts.filter((part) => part !== "").join("");
const isBlank = (part = "") => part.trim() === "";

function formatFraction([top = "", bottom = ""]: readonly string[]): string {
  return `(${top})/(${bottom})`;
}

function formatScripts(base: string, lower: string, upper: string): string {
  return groupText(base) + formatSubscript(lower) + formatSuperscript(upper);
}

/** Formats an element whose parts are texts. */
function formatNode({ name, parts, marks }: Node): string {
  const [first = "", second = "", third = ""] = parts;
  switch (name) {
    case "mfrac":
    case "f":
      return formatFraction(parts);
    case "msup":
    case "mover":
    case "ssup":
    case "limupp":
      return formatScripts(first, "", second);
    case "msub":
    case "munder":
    case "ssub":
    case "limlow":
      return formatScripts(first, second, "");
    case "msubsup":
    case "munderover":
    case "ssubsup":
      return formatScripts(first, second, third);
    case "spre":
      return formatSubscript(first) + formatSuperscript(second) + groupText(third);
    case "msqrt":
      return `√(${join(parts)})`;
    case "mroot":
      return `root(${second}, ${first})`;
    case "rad":
      return isBlank(first) ? `√(${second})` : `root(${first}, ${second})`;
    case "nary":
      return `${marks.chr ?? "∫"}${formatSubscript(first)}${formatSuperscript(second)} ${third}`;
    case "d":
      return `${marks.begchr ?? "("}${parts.join(marks.sepchr ?? "|")}${marks.endchr ?? ")"}`;
    case "func":
      return `${first} ${second}`.trim();
    case "mtable":
    case "m":
    case "eqarr":
      return `[${parts.join("; ")}]`;
    case "mtr":
    case "mr":
      return parts.join(", ");
    case "acc":
    case "groupchr":
      return `${groupText(join(parts))}${marks.chr ?? (name === "acc" ? "\u0302" : "")}`;
    case "mfenced":
      return `(${parts.join(", ")})`;
    case "mspace":
      return " ";
    default:
      return join(parts);
  }
}

/** Elements whose text isn't part of the equation: another notation of it, and properties. */
const SKIPPED = new Set(["annotation", "annotation-xml"]);

/** Builds the text of one equation from its tags. */
export class Equation {
  readonly #open: Node[] = [{ name: "", parts: [], marks: {} }];
  #skipped = 0;

  /** @param name In lower case, without namespace. */
  open(name: string, attributes: Readonly<Record<string, string | undefined>>): void {
    if (SKIPPED.has(name) || this.#skipped > 0) return void this.#skipped++;
    // The characters of an OMML element are properties of an element inside it.
    if (/^(chr|begchr|endchr|sepchr)$/.test(name)) this.#open.at(-2)!.marks[name] = attributes.val ?? "";
    this.#open.push({ name, parts: [], marks: {} });
  }

  text(data: string): void {
    const text = data.replace(/\s+/g, " ");
    if (this.#skipped === 0 && (text.trim() !== "" || this.#open.at(-1)!.name === "t")) {
      this.#open.at(-1)!.parts.push(text);
    }
  }

  close(): void {
    if (this.#skipped > 0) return void this.#skipped--;
    if (this.#open.length === 1) return;
    const node = this.#open.pop()!;
    if (/pr$/.test(node.name) || /^(chr|begchr|endchr|sepchr)$/.test(node.name)) return;
    const text = formatNode(node);
    // An empty degree or index still has its place.
    const hasPlace = /^(deg|sub|sup|e|num|den|lim|fname|mi|mn|mo|mrow|mtd)$/.test(node.name);
    if (text !== "" || hasPlace) this.#open.at(-1)!.parts.push(text);
  }

  /** The whole text, once all elements are closed. */
  get result(): string {
    while (this.#open.length > 1) this.close();
    return join(this.#open[0]!.parts).replace(/\s+/g, " ").trim();
  }
}
