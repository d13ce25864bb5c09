/** A block of code: language, highlighting, copy, wrap. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { CopyButton, IconButton } from "../Button.tsx";
import { memo, whenIdle } from "../hooks.ts";
import { canHighlight, type CodePiece, highlight } from "../../markdown/highlight.ts";
import { texts } from "../../texts/texts.ts";

/** How far from its end, in px, a reader of growing code may be and still follow. */
const NEAR_END_PX = 40;

/** Props of a code block. `isOpen`: it may still grow, so highlighting waits. */
export interface CodeBlockProps {
  language: string;
  text: string;
  isOpen: boolean;
}

/** One block of code, which scrolls by itself. */
export const CodeBlock = memo(({ language, text, isOpen }: CodeBlockProps) => {
  const [isWrapped, setWrapped] = useState(false);
  const pre = useRef<HTMLPreElement>(null);
  const pieces = useHighlight(language, text, isOpen);
  const name = language === "" ? texts.chat.code : language;
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const box = pre.current;
    if (isOpen && isAtEnd.current && box) box.scrollTop = box.scrollHeight;
  }, [text, isOpen]);
  const onScroll = () => {
    const box = pre.current!;
    isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PX;
  };
  return (
    <figure class="code-block">
      <figcaption>
        <span>{name}</span>
        <IconButton icon="wrap" label={texts.chat.wrap} isPressed={isWrapped} onClick={() => setWrapped(!isWrapped)} />
        <CopyButton text={text} />
      </figcaption>
      <pre
        class={isWrapped ? "wrapped" : ""}
        ref={pre}
        onScroll={onScroll}
        tabIndex={0}
        role="group"
        aria-label={name}
      ><code>{pieces ? toElements(pieces) : text}</code></pre>
    </figure>
  );
});

/** The highlighted spans of exactly this code, once available. */
function useHighlight(language: string, text: string, isOpen: boolean): CodePiece[] | undefined {
  const [found, setFound] = useState<{ text: string; pieces: CodePiece[] }>();
  useEffect(() => {
    if (isOpen || !canHighlight(language, text.length)) return;
    let isWanted = true;
    // Highlighting must not delay a frame.
    const cancel = whenIdle(async () => {
      try {
        const pieces = await highlight(language, text);
        if (isWanted) setFound({ text, pieces });
      } catch {
        // Without the highlighter, code stays plain.
      }
    });
    return () => {
      isWanted = false;
      cancel();
    };
  }, [language, text, isOpen]);
  return found?.text === text ? found.pieces : undefined;
}

function toElements(pieces: CodePiece[]): ComponentChildren {
  return pieces.map((piece, index) =>
    typeof piece === "string"
      ? piece
      : <span key={index} class={`code-${piece.scope.replace(/[^a-z].*$/, "")}`}>{toElements(piece.pieces)}</span>
  );
}
