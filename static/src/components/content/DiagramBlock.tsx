/** A Mermaid diagram: the image, or its source. */
import { useEffect, useState } from "preact/hooks";
import { type Diagram, drawDiagram } from "../../markdown/diagrams.ts";
import { texts } from "../../texts/texts.ts";
import { CopyButton, IconButton } from "../Button.tsx";
import { useMedia } from "../hooks.ts";
import { CodeBlock } from "./CodeBlock.tsx";

/** Shows the source until the diagram is drawn, and if it can't be. */
export function DiagramBlock({ text }: { text: string }) {
  const t = texts.chat.diagram;
  const isDark = useIsDark();
  const [drawn, setDrawn] = useState<Diagram | "failed">();
  const [isSource, setSource] = useState(false);
  useEffect(() => {
    let diagram: Diagram | undefined;
    let isGone = false;
    drawDiagram(text, isDark).then(
      (made) => {
        diagram = made;
        if (isGone) URL.revokeObjectURL(made.url);
        else setDrawn(made);
      },
      () => isGone || setDrawn("failed"),
    );
    return () => {
      isGone = true;
      if (diagram) URL.revokeObjectURL(diagram.url);
    };
  }, [text, isDark]);
  if (drawn === undefined || drawn === "failed") {
    return (
      <>
        <CodeBlock language="mermaid" text={text} isOpen={false} />
        {drawn === "failed" && <p class="plain-note">{t.failed}</p>}
      </>
    );
  }
  return (
    <figure class="code-block diagram">
      <figcaption>
        <span>{t.name}</span>
        <IconButton icon="code" label={t.source} isPressed={isSource} onClick={() => setSource(!isSource)} />
        <CopyButton text={text} />
      </figcaption>
      {isSource
        ? <pre tabIndex={0} role="group" aria-label={t.name}><code>{text}</code></pre>
        : (
          <div class="diagram-view" tabIndex={0} role="group" aria-label={t.name}>
            <img
              src={drawn.url}
              alt={t.alt(text.slice(0, 300))}
              width={drawn.width}
              height={drawn.height}
              // Smaller text couldn't be read; a wider diagram scrolls.
              style={{ minWidth: `${Math.round(drawn.width * 0.6)}px` }}
            />
          </div>
        )}
    </figure>
  );
}

/** Whether the page is dark: by its own setting, else by the system's. */
function useIsDark(): boolean {
  const isSystemDark = useMedia("(prefers-color-scheme: dark)");
  const { theme } = document.documentElement.dataset;
  return theme === "dark" || (theme !== "light" && isSystemDark);
}
