/** Counted things as a language says them. */

/** Forms of one word by the categories of `Intl.PluralRules`; languages without a plural have `other` alone. */
export interface Forms {
  one?: string;
  other: string;
}

/** Gives what puts a number and the right form of its word together, such as `1,234 messages`. */
export function counter(locale: string): (count: number, forms: Forms, space?: string) => string {
  const rules = new Intl.PluralRules(locale);
  const figures = new Intl.NumberFormat(locale);
  return (count, forms, space = " ") => {
    const form = rules.select(count) === "one" ? forms.one ?? forms.other : forms.other;
    return `${figures.format(count)}${space}${form}`;
  };
}
