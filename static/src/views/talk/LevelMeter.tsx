/** How loud the microphone hears: a bar that follows the sound without rendering the page again. */
import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

/** @param level 0 to 1. */
export function LevelMeter({ level }: { level: Signal<number> }) {
  const bar = useRef<HTMLSpanElement>(null);
  useEffect(() => level.subscribe((value) => bar.current?.style.setProperty("--level", value.toFixed(2))), [level]);
  return (
    <span class="level-meter" aria-hidden="true">
      <span ref={bar} />
    </span>
  );
}
