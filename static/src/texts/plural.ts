/** Plurals. */

/** The forms of a word by the categories of `Intl.PluralRules`; languages without a plural have only `other`. */
export interface Forms {
  one?: string;
  other: string;
}

/** Returns a function that formats a number with the right form of its word, such as `1,234 messages`. */
export function createCounter(locale: string): (count: number, forms: Forms, space?: string) => string {
  const rules = new Intl.PluralRules(locale);
  const figures = new Intl.NumberFormat(locale);
  return (count, forms, space = " ") => {
    const form = rules.select(count) === "one" ? forms.one ?? forms.other : forms.other;
    return `${figures.format(count)}${space}${form}`;
  };
}
