/**
 * Components that load on demand.
 *
 * `lazy(() => import("./X.tsx").then(({ X }) => X))` returns a component with X's props. Call it once, at the top
 * level.
 * `{ as: "screen" }` renders the main landmark while loading; `{ as: "overlay" }` renders nothing while loading;
 * `{ as: "messages" }` reserves the place of the messages, and waits neither for styles nor for texts of other screens.
 * Its `load()` starts loading early.
 */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { loadLater } from "../texts/en/en.ts";
import { texts } from "../texts/texts.ts";
import { Button } from "./Button.tsx";
import { Notice } from "./Notice.tsx";

/** A component that is loaded on demand. */
type LazyComponent<P> = ComponentType<P> & {
  /** Loads the component once. Never throws. */
  load(): Promise<void>;
};

/** Wraps a component whose file is loaded on demand. */
export function lazy<P extends object>(
  load: () => Promise<ComponentType<P>>,
  { as = "part" }: { as?: "part" | "screen" | "overlay" | "messages" } = {},
): LazyComponent<P> {
  const loaded = signal<ComponentType<P>>();
  const hasFailed = signal(false);
  let loading: Promise<void> | undefined;
  const begin = () =>
    loading ??= Promise.all([load(), ...(as === "messages" ? [] : [laterStyles(), loadLater()])]).then(
      ([component]) => {
        loaded.value = component;
      },
      () => {
        hasFailed.value = true;
        loading = undefined;
      },
    );
  function Lazy(props: P) {
    useEffect(() => {
      hasFailed.value = false;
      void begin();
    }, []);
    if (loaded.value) {
      const Loaded = loaded.value;
      return <Loaded {...props} />;
    }
    const inside = hasFailed.value
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
    if (as === "messages") return <div class="message-area is-loading">{inside}</div>;
    return as === "screen" ? <main id="main" tabIndex={-1}>{inside}</main> : inside;
  }
  return Object.assign(Lazy, { load: begin });
}

let loading: Promise<void> | undefined;

/** Loads the sheet once and resolves when it is applied. If it can't be loaded, the screen is shown without it. */
export function laterStyles(): Promise<void> {
  return loading ??= new Promise((resolve) => {
    const { document } = globalThis.window;
    const path = document.querySelector<HTMLMetaElement>('meta[name="later-style"]')?.content;
    if (!path) return resolve();
    const sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = `/${path}`;
    sheet.addEventListener("load", () => resolve());
    sheet.addEventListener("error", () => {
      loading = undefined;
      sheet.remove();
      resolve();
    });
    document.head.append(sheet);
  });
}
