/**
 * The formatted text of a message.
 *
 * Markdown: `text`, `isFinal` (the text is complete), `citations` (makes references to pages buttons; keep it the same
 * function while nothing changes), `hasSpeech` (of a character: quoted speech and actions are marked), `hasBreaks` (a
 * single line break is one; the default). PlainText: `text`.
 */
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ErrorBoundary } from "../ErrorBoundary.tsx";
import { copyText } from "../Button.tsx";
import { useStore } from "../../state/store.ts";
import { lazy } from "../Lazy.tsx";
import { CodeBlock } from "./CodeBlock.tsx";
import { memo, whenIdle } from "../hooks.ts";
import { GrowingMarkdown, type NodesBlock } from "../../markdown/blocks.ts";
import { type CitationResolver, linkCitations } from "../../markdown/citations.ts";
import { markSpeech } from "../../markdown/speech_marks.ts";
import type { MathToNode } from "../../markdown/render.ts";
import { texts } from "../../texts/texts.ts";

const DiagramBlock = lazy(() => import("./DiagramBlock.tsx").then((file) => file.DiagramBlock));

/** Renders formulas, once loaded. */
const maths = signal<MathToNode | undefined>(undefined);

interface MarkdownProps {
  text: string;
  isFinal: boolean;
  citations?: CitationResolver;
  hasSpeech?: boolean;
  hasBreaks?: boolean;
}

/**
 * Renders Markdown. While it grows, only its last block is rendered again. What can't be rendered is shown as plain
 * text.
 */
export function Markdown(props: MarkdownProps) {
  const { text, isFinal, hasBreaks = true } = props;
  return (
    <ErrorBoundary resetKey={isFinal} fallback={<PlainText text={text} />}>
      <Blocks key={hasBreaks} {...props} />
    </ErrorBoundary>
  );
}

/** Shows unformatted text with a note that says so. */
export function PlainText({ text }: { text: string }) {
  return (
    <div class="prose">
      <p class="plain-note">{texts.chat.shownPlain}</p>
      <div class="plain-text">{text}</div>
    </div>
  );
}

function Blocks({ text, isFinal, citations, hasSpeech = false, hasBreaks = true }: MarkdownProps) {
  const { toasts } = useStore();
  const growing = useRef<GrowingMarkdown>(undefined);
  growing.current ??= new GrowingMarkdown({ hasBreaks });
  const blocks = growing.current.update(text, isFinal, maths.value);
  const needsMaths = growing.current.hasMaths && maths.value === undefined;
  useEffect(() => {
    if (needsMaths) void loadMath();
  }, [needsMaths]);
  const [tries, setTries] = useState(0);
  const { retryAfterMs } = growing.current;
  useEffect(() => {
    if (retryAfterMs === undefined) return;
    let cancel: (() => void) | undefined;
    const timer = setTimeout(() => {
      cancel = whenIdle(() => {
        growing.current!.retry();
        setTries(tries + 1);
      });
    }, retryAfterMs);
    return () => {
      clearTimeout(timer);
      cancel?.();
    };
  }, [retryAfterMs, tries]);
  const onClick = (event: MouseEvent & { currentTarget: EventTarget }) => {
    const copy = event.target instanceof Element ? event.target.closest(".formula-copy") : null;
    if (!copy) return showFootnote(event);
    copyText(copy.previousElementSibling?.textContent ?? "").then(
      () => toasts.show(texts.chat.copied),
      () => toasts.show(texts.chat.copyFailed, { isError: true }),
    );
  };
  if (growing.current.isPlain) return <PlainText text={text} />;
  return (
    <div class={hasSpeech ? "prose of-character" : "prose"} onClick={onClick}>
      {blocks.map((block, index) =>
        block.kind === "code" && block.language === "mermaid" && isFinal
          ? <DiagramBlock key={index} text={block.text} />
          : block.kind === "code"
          ? <CodeBlock key={index} language={block.language} text={block.text} isOpen={block.isOpen} />
          : block.kind === "plain"
          ? <div key={index} class="plain-text">{block.text}</div>
          : (
            <Nodes
              key={index}
              kind={block.kind}
              fragment={block.fragment}
              citations={citations}
              hasSpeech={hasSpeech}
            />
          )
      )}
    </div>
  );
}

/** A footnote's mark leads to its text, and the text's mark back. Ids would have to be unique in the whole page. */
function showFootnote({ target, currentTarget }: MouseEvent): void {
  const button = target instanceof Element ? target.closest<HTMLElement>(".footnote-mark") : null;
  if (!button || !(currentTarget instanceof Element)) return;
  const isText = button.closest(".footnote") !== null;
  const number = button.textContent;
  const marks = [...currentTarget.querySelectorAll<HTMLElement>(".footnote-mark")];
  const other = marks.find((mark) => mark.textContent === number && (mark.closest(".footnote") !== null) !== isText);
  other?.scrollIntoView({ block: "nearest" });
  other?.focus({ preventScroll: true });
}

async function loadMath(): Promise<void> {
  try {
    const { mathToNode, warmUp } = await import("../../markdown/math.ts");
    warmUp();
    maths.value = mathToNode;
  } catch {
    // Offline: formulas are shown as source, and the next one tries again.
  }
}

/** One block of sanitized nodes. `display: contents` keeps the margins of adjacent blocks. */
const Nodes = memo((
  { kind, fragment, citations, hasSpeech }:
    & Pick<NodesBlock, "kind" | "fragment">
    & Pick<MarkdownProps, "citations" | "hasSpeech">,
) => {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    box.current!.replaceChildren(document.importNode(fragment, true));
    if (citations) linkCitations(box.current!, citations);
    if (hasSpeech) markSpeech(box.current!);
  }, [fragment, citations, hasSpeech]);
  return kind === "table"
    ? <div ref={box} class="table-scroll" tabIndex={0} role="region" aria-label={texts.chat.table} />
    : <div ref={box} class="html-block" />;
});
