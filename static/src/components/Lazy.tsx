/**
 * Parts of the page that are loaded when they are first shown.
 *
 * `lazy(() => import("./X.tsx").then(({ X }) => X))` gives a component with X's props. Make it once, outside of components.
 * `{ as: "screen" }` has the main landmark also while it loads; `{ as: "overlay" }` shows nothing until it is there.
 */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { loadLater } from "../texts/en/en.ts";
import { texts } from "../texts/texts.ts";
import { Button } from "./Button.tsx";
import { laterStyles } from "./later_styles.ts";
import { Notice } from "./Notice.tsx";

/** Wraps a component whose file is loaded on demand, once for the page. */
export function lazy<P extends object>(
  load: () => Promise<ComponentType<P>>,
  { as = "part" }: { as?: "part" | "screen" | "overlay" } = {},
): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  return function Lazy(props: P) {
    const [state, setState] = useState<"loading" | "ready" | "failed">(loaded ? "ready" : "loading");
    useEffect(() => {
      if (loaded) return;
      let isHere = true;
      Promise.all([load(), laterStyles(), loadLater()]).then(([component]) => {
        loaded = component;
        if (isHere) setState("ready");
      }, () => isHere && setState("failed"));
      return () => isHere = false;
    }, []);
    if (loaded) {
      const Loaded = loaded;
      return <Loaded {...props} />;
    }
    const inside = state === "failed"
      ? (
        <Notice
          tone="danger"
          title={texts.chunkFailed}
          actions={<Button onClick={() => globalThis.location.reload()}>{texts.reload}</Button>}
        >
          {texts.chunkFailedText}
        </Notice>
      )
      : as === "overlay"
      ? null
      : <p class="lazy-loading muted" role="status">{texts.loading}</p>;
    return as === "screen" ? <main id="main" tabIndex={-1}>{inside}</main> : inside;
  };
}
