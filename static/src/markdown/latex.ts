/**
 * LaTeX that the formula converter doesn't know, as LaTeX that it knows.
 *
 * @see https://temml.org/docs/en/supported
 */

/** Commands that are short for others. Not for text, whose spaces a macro loses. */
export const MACROS: Readonly<Record<string, string>> = {
  "\\mathbbm": "\\mathbb{#1}",
  "\\mathds": "\\mathbb{#1}",
  "\\ensuremath": "#1",
  "\\textsuperscript": "{}^{\\text{#1}}",
  "\\textsubscript": "{}_{\\text{#1}}",
  "\\textdegree": "{^\\circ}",
  "\\textmu": "\\mu",
  "\\textbullet": "\\bullet",
  "\\textless": "<",
  "\\textgreater": ">",
  "\\textasciitilde": "\\sim",
  "\\textbackslash": "\\backslash",
  "\\nicefrac": "{}^{#1}\\!/_{#2}",
  "\\sfrac": "{}^{#1}\\!/_{#2}",
  "\\ddfrac": "\\dfrac{#1}{#2}",
  "\\overarc": "\\wideparen{#1}",
  "\\arc": "\\wideparen{#1}",
  "\\strut": "",
  "\\hfill": "\\quad",
  "\\noindent": "",
  "\\par": "",
  "\\mathlarger": "#1",
  "\\lcm": "\\operatorname{lcm}",
  "\\diag": "\\operatorname{diag}",
  "\\ang": "{#1}^\\circ",
  "\\hdotsfor": "\\dots",
};

/** Environments by others that look the same. */
const ENVIRONMENTS: Readonly<Record<string, string>> = {
  flalign: "align",
  "flalign*": "align*",
  displaymath: "equation*",
  math: "gathered",
  subequations: "gathered",
};

/** Name of an environment, after which its columns may follow. */
const ENVIRONMENT = /\\(begin|end)\s*\{(flalign\*?|displaymath|math|subequations)\}/g;
const EQUATIONS = /\\(begin|end)\s*\{eqnarray\*?\}/g;
/** The start of a table with its columns. Braces in it nest one level. */
const COLUMNS = /(\\begin\s*\{array\}(?:\[[^\]]*\])?)\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}/g;
/** `@{…}`, `!{…}`, `>{…}`, `<{…}`: what is between columns. */
const BETWEEN_COLUMNS = /[@!<>]\s*\{(?:[^{}]|\{[^{}]*\})*\}/g;
const FIXED_COLUMN = /[pmbX]\s*\{[^{}]*\}/g;
const REPEATED_COLUMNS = /\*\s*\{(\d{1,2})\}\s*\{([lcr|]{1,10})\}/g;

const DEFINITION = /\\(?:re)?newcommand\*?\s*(?:\{\s*(\\[A-Za-z]+)\s*\}|(\\[A-Za-z]+))/g;
const OPERATOR = /\\DeclareMathOperator(\*?)\s*\{?\s*(\\[A-Za-z]+)\s*\}?\s*\{([^{}]*)\}/g;

/** A number with its unit; a unit alone; a number alone. */
const QUANTITY = /\\(?:SI|qty)\s*(?:\[[^\]]*\])?\s*\{([^{}]*)\}\s*\{([^{}]*)\}/g;
const UNIT = /\\(?:si|unit)\s*(?:\[[^\]]*\])?\s*\{([^{}]*)\}/g;
const NUMBER = /\\num\s*(?:\[[^\]]*\])?\s*\{([^{}]*)\}/g;

/** Rewrites a formula for the converter. */
export function adaptLatex(tex: string): string {
  return tex
    .replace(/\n(?:[ \t]*\n)+/g, "\n")
    .replace(
      /(\\text[a-z]*\s*)\{([^{}$\\]*)\}/g,
      (_, command, text) => `${command}{${text.replace(/[_%#&]/g, "\\$&")}}`,
    )
    .replace(/(\d\s*)%/g, "$1\\%")
    .replace(/\\[mh]box(?![A-Za-z])/g, "\\text")
    .replace(/\\(?:short)?intertext\s*(\{[^{}]*\})/g, "\\text$1 \\\\")
    .replace(/\\(?:require|vspace\*?|usepackage)\s*\{[^{}]*\}/g, "")
    .replace(/\\multicolumn\s*\{\d+\}\s*\{[^{}]*\}/g, "")
    .replace(/\\cline\s*\{[^{}]*\}/g, "")
    .replace(ENVIRONMENT, (_, edge, name) => `\\${edge}{${ENVIRONMENTS[name]}}`)
    .replace(EQUATIONS, (_, edge) => edge === "begin" ? "\\begin{array}{rcl}" : "\\end{array}")
    .replace(/\\(begin|end)\s*\{tabular\}/g, "\\$1{array}")
    .replace(COLUMNS, (_, start, columns) => `${start}{${toPlainColumns(columns)}}`)
    .replace(DEFINITION, (_, braced, bare) => `\\providecommand{${braced ?? bare}}{}\\renewcommand{${braced ?? bare}}`)
    .replace(
      OPERATOR,
      (_, star, name, text) => `\\providecommand{${name}}{}\\renewcommand{${name}}{\\operatorname${star}{${text}}}`,
    )
    .replace(
      QUANTITY,
      (whole, number, unit) =>
        whole.startsWith("\\qty") && !/^[\s\d.,eE+-]*$/.test(number) ? whole : `${toNumber(number)}\\,${toUnit(unit)}`,
    )
    .replace(UNIT, (_, unit) => toUnit(unit))
    .replace(NUMBER, (_, number) => toNumber(number));
}

function toPlainColumns(columns: string): string {
  return columns.replace(REPEATED_COLUMNS, (_, count, each) => each.repeat(Number(count)))
    .replace(BETWEEN_COLUMNS, "").replace(FIXED_COLUMN, "l");
}

/** Writes `1.5e3` as a product. */
function toNumber(number: string): string {
  const [, mantissa = "", exponent] = /^\s*([^eE]*?)(?:[eE]\s*([+-]?\d+))?\s*$/.exec(number) ?? [];
  if (exponent === undefined) return `{${number.trim()}}`;
  return mantissa === "" ? `{10^{${exponent}}}` : `{${mantissa} \\times 10^{${exponent}}}`;
}

/** Names of units and of their prefixes, by siunitx. @see https://ctan.org/pkg/siunitx */
const UNITS: Readonly<Record<string, string>> = {
  ...{ yocto: "y", zepto: "z", atto: "a", femto: "f", pico: "p", nano: "n", micro: "\\mu ", milli: "m", centi: "c" },
  ...{ deci: "d", deca: "da", hecto: "h", kilo: "k", mega: "M", giga: "G", tera: "T", peta: "P", exa: "E" },
  ...{ kibi: "Ki", mebi: "Mi", gibi: "Gi", tebi: "Ti", meter: "m", metre: "m", gram: "g", second: "s", ampere: "A" },
  ...{ kelvin: "K", mole: "mol", candela: "cd", hertz: "Hz", newton: "N", pascal: "Pa", joule: "J", watt: "W" },
  ...{ coulomb: "C", volt: "V", farad: "F", ohm: "\\Omega ", siemens: "S", weber: "Wb", tesla: "T", henry: "H" },
  ...{ lumen: "lm", lux: "lx", becquerel: "Bq", gray: "Gy", sievert: "Sv", katal: "kat", radian: "rad" },
  ...{ steradian: "sr", degreeCelsius: "{^\\circ}C", celsius: "{^\\circ}C", degree: "{^\\circ}", minute: "min" },
  ...{ hour: "h", day: "d", liter: "L", litre: "L", tonne: "t", electronvolt: "eV", bar: "bar", percent: "\\%" },
  ...{ byte: "B", bit: "bit", decibel: "dB", angstrom: "\\AA ", arcminute: "'", arcsecond: "''", hectare: "ha" },
  ...{ kg: "kg", km: "km", cm: "cm", mm: "mm", ms: "ms", kHz: "kHz", kW: "kW", kJ: "kJ", m: "m", s: "s", g: "g" },
  ...{ per: "/", squared: "^2", cubed: "^3" },
};

function toUnit(unit: string): string {
  const signs = unit.replace(
    /\\(square|cubic)\s*((?:\\[A-Za-z]+\s*){1,2})/g,
    (_, power, of) => `${of}${power === "square" ? "\\squared" : "\\cubed"}`,
  )
    .replace(/\\tothe\s*\{([^{}]*)\}/g, "^{$1}")
    .replace(/\\([A-Za-z]+)\s*/g, (whole, name) => Object.hasOwn(UNITS, name) ? UNITS[name]! : whole)
    .replace(/[.~]/g, "\\,");
  return `\\mathrm{${signs}}`;
}
