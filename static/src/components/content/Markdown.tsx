/**
 * The formatted text of a message.
 *
 * Markdown: `text`, `isFinal` (the text is complete). PlainText: `text`.
 */
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ErrorBoundary } from "../ErrorBoundary.tsx";
import { CodeBlock } from "./CodeBlock.tsx";
import { memo, whenIdle } from "../hooks.ts";
import { GrowingMarkdown, type NodesBlock } from "../../markdown/blocks.ts";
import type { MathToNode } from "../../markdown/render.ts";
import { texts } from "../../texts/texts.ts";

/** Renders formulas, once loaded. */
const maths = signal<MathToNode | undefined>(undefined);

/**
 * Renders Markdown. While it grows, only its last block is rendered again. What can't be rendered is shown as plain
 * text.
 */
export function Markdown({ text, isFinal }: { text: string; isFinal: boolean }) {
  return (
    <ErrorBoundary resetKey={isFinal} fallback={<PlainText text={text} />}>
      <Blocks text={text} isFinal={isFinal} />
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

function Blocks({ text, isFinal }: { text: string; isFinal: boolean }) {
  const growing = useRef<GrowingMarkdown>(undefined);
  growing.current ??= new GrowingMarkdown();
  const blocks = growing.current.update(text, isFinal, maths.value);
  const needsMaths = growing.current.hasMaths && maths.value === undefined;
  useEffect(() => {
    if (needsMaths) void loadMath();
  }, [needsMaths]);
  const [tries, setTries] = useState(0);
  const { isLate } = growing.current;
  useEffect(() => {
    if (!isLate) return;
    return whenIdle(() => {
      growing.current!.retry();
      setTries(tries + 1);
    });
  }, [isLate, tries]);
  if (growing.current.isPlain) return <PlainText text={text} />;
  return (
    <div class="prose">
      {blocks.map((block, index) =>
        block.kind === "code"
          ? <CodeBlock key={index} language={block.language} text={block.text} isOpen={block.isOpen} />
          : block.kind === "plain"
          ? <div key={index} class="plain-text">{block.text}</div>
          : <Nodes key={index} kind={block.kind} fragment={block.fragment} />
      )}
    </div>
  );
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
const Nodes = memo(({ kind, fragment }: Pick<NodesBlock, "kind" | "fragment">) => {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => box.current!.replaceChildren(document.importNode(fragment, true)), [fragment]);
  return kind === "table"
    ? <div ref={box} class="table-scroll" tabIndex={0} role="region" aria-label={texts.chat.table} />
    : <div ref={box} class="html-block" />;
});
