/** Bars: the progress of a task, and the level of a microphone. */
import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

/**
 * A progress bar with its label.
 *
 * @param value 0 to 1; null while unknown.
 * @param text Figures: "12 of 40 MB".
 */
export function Progress({ label, value, text }: { label: string; value: number | null; text?: string }) {
  return (
    <div class="progress">
      <progress aria-label={label} aria-valuetext={text} max={1} value={value ?? undefined} />
      {text && <span class="progress-text">{text}</span>}
    </div>
  );
}

/**
 * The level of a microphone: a bar that follows the sound without rendering the page again.
 *
 * @param level 0 to 1.
 */
export function LevelMeter({ level }: { level: Signal<number> }) {
  const bar = useRef<HTMLSpanElement>(null);
  useEffect(() => level.subscribe((value) => bar.current?.style.setProperty("--level", value.toFixed(2))), [level]);
  return (
    <span class="level-meter" aria-hidden="true">
      <span ref={bar} />
    </span>
  );
}
