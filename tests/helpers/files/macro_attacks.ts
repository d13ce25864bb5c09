/** Texts with expensive macros. None is larger than 1.5 MB. */

const times = (count: number, text: (n: number) => string) => Array.from({ length: count }, (_, n) => text(n)).join("");

/** Doubles a variable 24 times to 128 MiB, then copies it 60 times. */
export const DOUBLING = "{{setvar::a::xxxxxxxx}}" +
  times(24, () => "{{setvar::a::{{getvar::a}}{{getvar::a}}}}") +
  times(60, (n) => `{{setvar::b${n}::{{getvar::a}}${n}}}`);

/** Fields of a card that name each other 100 times, four levels deep: 10^8 macros. */
export const LEVELS = {
  description: "{{personality}}".repeat(100),
  personality: "{{scenario}}".repeat(100),
  scenario: "{{mesExamples}}".repeat(100),
  mes_example: "{{charPrompt}}".repeat(100),
  system_prompt: "Be {{char}}.",
};

/** 1.5 MB of braces that open and never close. */
export const BRACES = "{{ ".repeat(500_000);

/** 1.5 MB of nested braces. */
export const NESTED_BRACES = "{{ ".repeat(300_000) + "}}".repeat(300_000);

/** A name of 1 MB. */
export const LONG_NAME = "N".repeat(1_000_000);
