/**
 * The difference of two texts: deletions struck through, insertions underlined.
 *
 * Props: `before`, `after`. Texts that differ too much are shown one after the other.
 */
import { diffWordsWithSpace } from "diff";
import { useMemo } from "preact/hooks";

/** Most changed words before the texts count as entirely different. */
const MOST_EDITS = 2000;
/** Time for one comparison, in milliseconds. */
const TIMEOUT_MS = 100;

/** The difference. Screen readers announce `del` and `ins` as deletion and insertion. */
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
