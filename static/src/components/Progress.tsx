/**
 * How far something has come.
 *
 * Props: `label` (what runs), `value` (0 to 1, null while unknown); `text?` (figures: "12 of 40 MB").
 */

/** A bar with its words. */
export function Progress({ label, value, text }: { label: string; value: number | null; text?: string }) {
  return (
    <div class="progress">
      <progress aria-label={label} aria-valuetext={text} max={1} value={value ?? undefined} />
      {text && <span class="progress-text">{text}</span>}
    </div>
  );
}
