/**
 * Two versions of a text in one: what only the earlier one has is struck out, what only the later one has is underlined.
 *
 * Props: `before`, `after`. Texts that differ too much are shown one after the other.
 */
import { diffWordsWithSpace } from "diff";
import { useMemo } from "preact/hooks";

/** Words changed before the texts count as different as a whole. */
const MOST_EDITS = 2000;
/** Time for one comparison. */
const TIMEOUT_MS = 100;

/** The difference; a screen reader reads `del` and `ins` as deletion and insertion. */
export function TextDiff({ before, after }: { before: string; after: string }) {
  const parts = useMemo(
    () => diffWordsWithSpace(before, after, { maxEditLength: MOST_EDITS, timeout: TIMEOUT_MS }),
    [before, after],
  ) ?? [{ value: before, removed: true, added: false }, { value: `\n${after}`, removed: false, added: true }];
  return (
    <p class="text-difference">
      {parts.map(({ value, added, removed }, index) =>
        removed
          ? <del key={index}>{value}</del>
          : added
          ? <ins key={index}>{value}</ins>
          : <span key={index}>{value}</span>
      )}
    </p>
  );
}
