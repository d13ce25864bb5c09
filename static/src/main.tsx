/** Starts the page. */
import { render } from "preact";
import { createApi } from "./api/api.ts";
import { createAccessApi } from "./api/auth.ts";
import { createClient, getClientHeaders } from "./api/client.ts";
import { guardFetch } from "./api/proxy_sign_in.ts";
import { whenIdle } from "./components/hooks.ts";
import { findServiceWorker } from "./state/app/browser_parts.ts";
import { findDeviceToken, findStorage } from "./state/app/device.ts";
import { Outbox } from "./state/app/outbox.ts";
import { Store, StoreProvider } from "./state/store.ts";
import { language } from "./texts/texts.ts";
import { registerServiceWorker } from "./trusted_types.ts";
import { Shell } from "./views/shell/Shell.tsx";

/** Caching all files takes slow machines seconds, and opening a chat goes first. In milliseconds. */
const REGISTER_AFTER_MS = 4000;

async function start(window: Window & typeof globalThis): Promise<void> {
  const token = findDeviceToken(findStorage(window));
  const fetchFunction = guardFetch(window.fetch.bind(window), (isSignedOut) => store.onProxy(isSignedOut));
  const { origin } = window.location;
  const client = createClient(fetchFunction, origin, token, (error) => store.failedReads.add(error));
  const outbox = new Outbox(fetchFunction, getClientHeaders(origin, token), () => store.auth.peek());
  const store: Store = new Store(createApi(outbox.wrap(client)), createAccessApi(client), window, outbox);
  const { document } = window;
  store.device.open(document.documentElement);
  followKeyboard(window, document.documentElement);
  followInput(document);
  language.subscribe((name) => document.documentElement.lang = name);
  // The device's settings are known at once. A language that can't be loaded leaves English.
  await store.preferences.showLanguage().catch(() => {});
  store.preferences.open();
  store.router.open();
  store.open();
  window.addEventListener("pagehide", () => store.flush());
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") void store.chat.peek()?.draft.save({ keepalive: true });
  });
  const root = document.getElementById("app");
  if (root) {
    root.replaceChildren(); // what index.html shows until now
    render(
      <StoreProvider value={store}>
        <Page />
      </StoreProvider>,
      root,
    );
  }
}

/** Registers the service worker, where browsers allow it: over HTTPS and on localhost. */
function startServiceWorker({ navigator }: Window): void {
  // Developer builds have none, and the page works without.
  const serviceWorker = findServiceWorker(navigator);
  if (serviceWorker) registerServiceWorker(serviceWorker).catch(() => {});
}

/** Another language renders everything again. */
function Page() {
  return <Shell key={language.value} />;
}

void start(window);
globalThis.addEventListener(
  "load",
  () => setTimeout(() => whenIdle(() => startServiceWorker(window)), REGISTER_AFTER_MS),
);

/** Notes whether the last input was a press: what gets the focus from the page then has no ring. */
function followInput(document: Document): void {
  for (const kind of ["pointerdown", "keydown"]) {
    document.addEventListener(kind, () => {
      document.documentElement.dataset.input = kind;
    }, { capture: true, passive: true });
  }
}

/** Less than any keyboard, more than rounding, in px. */
const KEYBOARD_PX = 120;

/**
 * Keeps the page as high as its visible part, through `--visible-height`. Most browsers resize the page for an
 * on-screen keyboard; those of iOS lay it over the page.
 */
function followKeyboard(window: Window, root: HTMLElement): void {
  const view = window.visualViewport;
  view?.addEventListener("resize", () => {
    // Pinch zoom shrinks the visible part as well; the page must not follow that.
    const isCovered = view.scale === 1 && window.innerHeight - view.height > KEYBOARD_PX;
    if (isCovered) {
      root.style.setProperty("--visible-height", `${view.height}px`);
      window.scrollTo(0, 0);
    } else root.style.removeProperty("--visible-height");
  });
}
