/**
 * Text from elsewhere that the user decides by: invisible characters are shown, words of mixed scripts are marked, and it
 * doesn't change the direction of what surrounds it.
 *
 * Props: `text`; `isStrict?` (show joiners in emoji, too).
 */
import { language, texts } from "../../texts/texts.ts";
import { splitVisibly } from "../../texts/visible_text.ts";

/** A value with its own direction. */
export function VisibleText({ text, isStrict }: { text: string; isStrict?: boolean }) {
  return (
    <bdi dir="auto">
      {splitVisibly(text, { isStrict }).map((part, n) =>
        part.kind === "text"
          ? part.text
          : part.kind === "hidden"
          ? <span key={n} class="code-point">⟨{part.code}⟩</span>
          : (
            <span key={n} class="mixed-word">
              <bdi>{part.text}</bdi>
              <span class="code-point">⟨{texts.mixedScripts(nameScripts(part.scripts))}⟩</span>
            </span>
          )
      )}
    </bdi>
  );
}

function nameScripts(scripts: readonly string[]): string {
  const names = new Intl.DisplayNames(language.value, { type: "script" });
  return new Intl.ListFormat(language.value, { type: "unit" }).format(scripts.map((code) => names.of(code) ?? code));
}
