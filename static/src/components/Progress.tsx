/**
 * The progress of a task.
 *
 * Props: `label` (the task), `value` (0 to 1, null while unknown); `text?` (figures: "12 of 40 MB").
 */

/** A progress bar with its label. */
export function Progress({ label, value, text }: { label: string; value: number | null; text?: string }) {
  return (
    <div class="progress">
      <progress aria-label={label} aria-valuetext={text} max={1} value={value ?? undefined} />
      {text && <span class="progress-text">{text}</span>}
    </div>
  );
}
