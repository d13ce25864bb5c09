/** Code as text: language, copying, wrapping. */
import { useState } from "preact/hooks";
import { texts } from "../texts/texts.ts";
import { CopyButton } from "./CopyButton.tsx";
import { IconButton } from "./Button.tsx";

/** One block of code; a long line scrolls in itself until wrapping is chosen. */
export function CodeBlock({ language, text }: { language: string; text: string }) {
  const [isWrapped, setWrapped] = useState(false);
  const name = language === "" ? texts.chat.code : language;
  return (
    <figure class="code-block">
      <figcaption>
        <span>{name}</span>
        <IconButton icon="wrap" label={texts.chat.wrap} isPressed={isWrapped} onClick={() => setWrapped(!isWrapped)} />
        <CopyButton text={text} />
      </figcaption>
      <pre class={isWrapped ? "wrapped" : ""} tabIndex={0} role="region" aria-label={name}><code>{text}</code></pre>
    </figure>
  );
}
