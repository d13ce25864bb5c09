/** Starts the page. */
import { render } from "preact";
import { createApi } from "./api/api.ts";
import { createAccessApi } from "./api/auth.ts";
import { createClient } from "./api/client.ts";
import { whenIdle } from "./components/hooks.ts";
import { findStorage } from "./state/app/device.ts";
import { findDeviceToken } from "./state/app/device_token.ts";
import { Store, StoreProvider } from "./state/store.ts";
import { language } from "./texts/texts.ts";
import { Shell } from "./views/shell/Shell.tsx";

/** Keeping all files takes a slow machine seconds; the first ones belong to whoever opens a chat. */
const KEEP_AFTER_MS = 4000;

async function start(window: Window & typeof globalThis): Promise<void> {
  const token = findDeviceToken(findStorage(window));
  const client = createClient(window.fetch.bind(window), window.location.origin, token);
  const store = new Store(createApi(client), createAccessApi(client), window);
  const { document } = window;
  store.device.open(document.documentElement);
  followKeyboard(window, document.documentElement);
  language.subscribe((name) => document.documentElement.lang = name);
  // What the device remembers is known without asking; a language that cannot be loaded leaves English.
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

/** Keeps the page on the device, where browsers allow that: over HTTPS and on localhost. */
function keepShell({ navigator }: Window): void {
  // A build for developers has none, and whoever forbids it does without.
  navigator.serviceWorker?.register("/service_worker.js").catch(() => {});
}

/** Another language means every text anew. */
function Page() {
  return <Shell key={language.value} />;
}

void start(window);
globalThis.addEventListener("load", () => setTimeout(() => whenIdle(() => keepShell(window)), KEEP_AFTER_MS));

/** Less than any keyboard, more than what browsers round. */
const KEYBOARD_PX = 120;

/** Keeps the page as high as what is seen of it, through `--visible-height`. */
function followKeyboard(window: Window, root: HTMLElement): void {
  const view = window.visualViewport;
  view?.addEventListener("resize", () => {
    // Zooming in makes the view small as well, and there the page has to stay.
    const isCovered = view.scale === 1 && window.innerHeight - view.height > KEYBOARD_PX;
    if (isCovered) {
      root.style.setProperty("--visible-height", `${view.height}px`);
      window.scrollTo(0, 0);
    } else root.style.removeProperty("--visible-height");
  });
}
