/**
 * A Mermaid diagram: the image, or its source.
 *
 * Strangers write them, so Mermaid runs in a frame without an origin, whose policy lets it load nothing. What comes back
 * is shown as an image: browsers run no script in images and load nothing for them.
 */
import { useEffect, useState } from "preact/hooks";
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
    renderDiagram(text, isDark).then(
      (rendered) => {
        diagram = rendered;
        if (isGone) URL.revokeObjectURL(rendered.url);
        else setDrawn(rendered);
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

/** A drawn diagram. */
interface Diagram {
  /** A `blob:` URL of an SVG image. Revoke it when it isn't shown any more. */
  url: string;
  /** In CSS px. */
  width: number;
  height: number;
}

/** Longest source, in UTF-16 code units, and most lines. A larger diagram couldn't be read, and takes too long. */
const MAX_LENGTH = 20_000;
const MAX_LINES = 400;
/** Time for one diagram. */
const RENDER_TIMEOUT_MS = 5000;
/** Time to load Mermaid, which is about 1 MB. */
const LOAD_MS = 30_000;
const FRAME_PATH = "/diagram.html";

/** Returns what is drawn: without settings, which a text must not change. Undefined if it's too large. */
function prepareDiagram(source: string): string | undefined {
  if (source.length > MAX_LENGTH || source.split("\n").length > MAX_LINES) return undefined;
  return removeDirectives(source.replace(/^\s*---[ \t]*\n[^]*?\n---[ \t]*(?:\n|$)/, ""));
}

/** Removes `%%{…}%%`. */
function removeDirectives(source: string): string {
  let rest = source;
  let result = "";
  for (;;) {
    const start = rest.indexOf("%%{");
    const end = start < 0 ? -1 : rest.indexOf("}%%", start);
    if (end < 0) return result + rest;
    result += rest.slice(0, start);
    rest = rest.slice(end + "}%%".length);
  }
}

/** Diagrams are drawn one after another. */
let last: Promise<unknown> = Promise.resolve();

/** Draws a diagram. @throws {Error} if it's too large, isn't valid, or takes too long. */
function renderDiagram(source: string, isDark: boolean): Promise<Diagram> {
  const drawn = last.then(() => renderNow(source, isDark));
  last = drawn.catch(() => {});
  return drawn;
}

async function renderNow(source: string, isDark: boolean): Promise<Diagram> {
  const prepared = prepareDiagram(source);
  if (prepared === undefined) throw new Error("The diagram is too large");
  const frame = await openFrame();
  try {
    const id = ++count;
    const answer = waitFor(frame, (data) => data.id === id, RENDER_TIMEOUT_MS);
    frame.contentWindow!.postMessage({ id, source: prepared, isDark }, "*");
    const drawn = await answer;
    if (drawn.error !== undefined) throw new Error(String(drawn.error));
    return toImage(drawn);
  } catch (error) {
    // It may be busy for long, or in a state that the next diagram shouldn't inherit.
    frame.remove();
    opened = undefined;
    throw error;
  }
}

let opened: HTMLIFrameElement | undefined;
let count = 0;

async function openFrame(): Promise<HTMLIFrameElement> {
  if (opened?.isConnected) return opened;
  const frame = document.createElement("iframe");
  frame.className = "diagram-frame";
  frame.setAttribute("sandbox", "allow-scripts");
  frame.setAttribute("aria-hidden", "true");
  frame.tabIndex = -1;
  frame.title = "Mermaid";
  frame.src = FRAME_PATH;
  const ready = waitFor(frame, (data) => data.isReady === true, LOAD_MS);
  document.body.append(frame);
  try {
    await ready;
  } catch (error) {
    frame.remove();
    throw error;
  }
  return opened = frame;
}

function waitFor(
  frame: HTMLIFrameElement,
  isWanted: (data: Record<string, unknown>) => boolean,
  timeoutMs: number,
): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      globalThis.removeEventListener("message", onMessage);
    };
    const onMessage = (event: MessageEvent) => {
      const isFromFrame = event.source !== null && event.source === frame.contentWindow;
      if (!isFromFrame || typeof event.data !== "object" || event.data === null || !isWanted(event.data)) return;
      end();
      resolve(event.data);
    };
    const timer = setTimeout(() => {
      end();
      reject(new Error("The diagram took too long"));
    }, timeoutMs);
    globalThis.addEventListener("message", onMessage);
  });
}

/** Largest side of the image, in CSS px. */
const MAX_SIDE_PX = 8000;

function toImage({ svg, width, height }: Record<string, unknown>): Diagram {
  const isSize = (side: unknown): side is number => typeof side === "number" && side > 0 && side <= MAX_SIDE_PX;
  if (typeof svg !== "string" || !isSize(width) || !isSize(height)) throw new Error("The diagram has no size");
  return { url: URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" })), width, height };
}
