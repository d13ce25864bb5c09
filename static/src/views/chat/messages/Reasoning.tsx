/** What a model thought before it spoke, folded away. */
import { texts } from "../../../texts/texts.ts";

/** Opens on demand; its text is plain, since half-thought markdown helps nobody. */
export function Thoughts(
  { text, isThinking, durationMs }: { text: string; isThinking: boolean; durationMs: number | undefined },
) {
  const title = isThinking
    ? texts.chat.thinking
    : durationMs === undefined
    ? texts.chat.thoughts
    : texts.chat.thoughtFor(Math.max(1, Math.round(durationMs / 1000)));
  return (
    <details class="thoughts">
      <summary>{title}</summary>
      <div class="thoughts-text">{text}</div>
    </details>
  );
}
