/** The reasoning of a reply. */
import { texts } from "../../../texts/texts.ts";

/** Reasoning that opens on demand. Plain text, since Markdown of unfinished reasoning helps nobody. */
export function Reasoning(
  { text, isThinking, durationMs, tokens }: {
    text: string;
    isThinking: boolean;
    durationMs: number | undefined;
    tokens: number | undefined;
  },
) {
  const title = isThinking
    ? texts.chat.thinking
    : durationMs === undefined
    ? texts.chat.thoughts
    : texts.chat.thoughtFor(Math.max(1, Math.round(durationMs / 1000)));
  return (
    <details class="thoughts">
      <summary>{tokens === undefined ? title : `${title} · ${texts.chat.tokens(tokens)}`}</summary>
      <div class="thoughts-text">{text}</div>
    </details>
  );
}
