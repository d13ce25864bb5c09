/** Starts the page. */
import { render } from "preact";
import { createClient } from "./api/client.ts";
import { createApi } from "./api/endpoints.ts";
import { Store, StoreProvider } from "./state/store.ts";
import { Shell } from "./views/shell/Shell.tsx";

function start(window: Window & typeof globalThis): void {
  const api = createApi(createClient(window.fetch.bind(window), window.location.origin));
  const store = new Store(api, window);
  store.device.open(window.document.documentElement);
  store.router.open();
  store.open();
  window.addEventListener("pagehide", () => store.flush());
  window.document.addEventListener("visibilitychange", () => {
    if (window.document.visibilityState === "hidden") void store.chat.peek()?.draft.save({ keepalive: true });
  });
  const root = window.document.getElementById("app");
  if (root) {
    render(
      <StoreProvider value={store}>
        <Shell />
      </StoreProvider>,
      root,
    );
  }
}

start(window);
