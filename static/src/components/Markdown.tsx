/** A message's text as it is read. */
import { memo } from "./memo.ts";
import { useRef } from "preact/hooks";
import { type Block, GrowingMarkdown } from "../markdown/blocks.ts";
import { texts } from "../texts/texts.ts";
import { CodeBlock } from "./CodeBlock.tsx";

/** Shows markdown; while it grows only its last block is made again. */
export function Markdown({ text, isFinal }: { text: string; isFinal: boolean }) {
  const growing = useRef<GrowingMarkdown>(undefined);
  growing.current ??= new GrowingMarkdown();
  const blocks = growing.current.update(text, isFinal);
  return (
    <div class="prose">
      {blocks.map((block, index) =>
        block.kind === "code"
          ? <CodeBlock key={index} language={block.language} text={block.text} />
          : <HtmlBlock key={index} kind={block.kind} html={block.html} />
      )}
    </div>
  );
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
