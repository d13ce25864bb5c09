/** Names the fields in which two versions of a document differ. @param names Words for fields; others go by their own. */
export function differingFields(mine: object, theirs: object, names: Readonly<Record<string, string>>): string[] {
  const [one, other] = [mine as Record<string, unknown>, theirs as Record<string, unknown>];
  return [...new Set([...Object.keys(one), ...Object.keys(other)])]
    .filter((field) => JSON.stringify(one[field]) !== JSON.stringify(other[field]))
    .map((field) => Object.hasOwn(names, field) ? names[field]! : field);
}
