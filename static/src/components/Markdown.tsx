/** A message's text as it is read. */
import { signal } from "@preact/signals";
import { memo } from "./memo.ts";
import { useEffect, useRef } from "preact/hooks";
import { type Block, GrowingMarkdown } from "../markdown/blocks.ts";
import type { MathsToHtml } from "../markdown/render.ts";
import { texts } from "../texts/texts.ts";
import { CodeBlock } from "./CodeBlock.tsx";

/** What makes formulas of their source, once one was needed. */
const maths = signal<MathsToHtml | undefined>(undefined);

/** Shows markdown; while it grows only its last block is made again. */
export function Markdown({ text, isFinal }: { text: string; isFinal: boolean }) {
  const growing = useRef<GrowingMarkdown>(undefined);
  growing.current ??= new GrowingMarkdown();
  const blocks = growing.current.update(text, isFinal, maths.value);
  const needsMaths = growing.current.hasMaths && maths.value === undefined;
  useEffect(() => {
    if (needsMaths) void loadMaths();
  }, [needsMaths]);
  return (
    <div class="prose">
      {blocks.map((block, index) =>
        block.kind === "code"
          ? <CodeBlock key={index} language={block.language} text={block.text} isOpen={block.isOpen} />
          : <HtmlBlock key={index} kind={block.kind} html={block.html} />
      )}
    </div>
  );
}

async function loadMaths(): Promise<void> {
  try {
    maths.value = (await import("../markdown/maths.ts")).mathsToHtml;
  } catch {
    // Not reached: formulas stay as their source, and the next one tries again.
  }
}

/** One block of cleaned HTML. `display: contents` keeps the margins of the blocks next to each other. */
const HtmlBlock = memo(({ kind, html }: Exclude<Block, { kind: "code" }>) => {
  const inner = { __html: html };
  return kind === "table"
    ? (
      <div
        class="table-scroll"
        tabIndex={0}
        role="region"
        aria-label={texts.chat.table}
        dangerouslySetInnerHTML={inner}
      />
    )
    : <div class="html-block" dangerouslySetInnerHTML={inner} />;
});
