/**
 * Text from elsewhere that the user decides by: invisible characters are shown, words of mixed scripts are marked, and it
 * doesn't change the direction of what surrounds it.
 *
 * Props: `text`; `isStrict?` (show joiners in emoji, too). `VisibleLines` for several lines, `FieldPreview` below a text field.
 */
import { language, texts } from "../../texts/texts.ts";
import { isPlain, splitVisibly } from "../../texts/visible_text.ts";

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

/** Lines of text, each with its own direction. */
export function VisibleLines({ text, isStrict }: { text: string; isStrict?: boolean }) {
  return (
    <>
      {text.split("\n").map((line, n) => (
        <div key={n}>
          <VisibleText text={line} isStrict={isStrict} />
        </div>
      ))}
    </>
  );
}

/** What a text field can't show of its text. Nothing if it shows all. */
export function FieldPreview({ text, isStrict }: { text: string; isStrict?: boolean }) {
  if (isPlain(text, { isStrict })) return null;
  return (
    <div class="field-preview" role="group" aria-label={texts.hiddenShown}>
      <p class="hint">{texts.hiddenShown}</p>
      <VisibleLines text={text} isStrict={isStrict} />
    </div>
  );
}

function nameScripts(scripts: readonly string[]): string {
  const names = new Intl.DisplayNames(language.value, { type: "script" });
  return new Intl.ListFormat(language.value, { type: "unit" }).format(scripts.map((code) => names.of(code) ?? code));
}
