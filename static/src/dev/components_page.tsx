/** Shows every component in all its states. For developers: not translated, and not part of a production build. */
import { render } from "preact";
import { createApi } from "../api/api.ts";
import { createAccessApi } from "../api/auth.ts";
import { createClient } from "../api/client.ts";
import { Button } from "../components/Button.tsx";
import { Select, Slider } from "../components/forms/inputs.tsx";
import { Toasts } from "../components/overlays/Toasts.tsx";
import { ButtonSamples, ContentSamples, FormSamples, ListSamples, NoticeSamples, OverlaySamples } from "./samples.tsx";
import type { Theme } from "../state/app/device.ts";
import { Outbox } from "../state/app/outbox.ts";
import { Store, StoreProvider, useStore } from "../state/store.ts";
import { LANGUAGES } from "../texts/texts.ts";

/** Renders the page of components. */
export function showComponents(window: Window & typeof globalThis): void {
  const client = createClient(window.fetch.bind(window), window.location.origin);
  const outbox = new Outbox(window.fetch.bind(window), {}, () => undefined);
  const store = new Store(createApi(client), createAccessApi(client), window, outbox);
  store.device.open(window.document.documentElement);
  window.document.title = "Components · Parlor";
  const root = window.document.getElementById("app");
  if (!root) return;
  root.replaceChildren();
  render(
    <StoreProvider value={store}>
      <ComponentsPage />
      <Toasts />
    </StoreProvider>,
    root,
  );
}

function ComponentsPage() {
  const { device } = useStore();
  return (
    <main id="main" class="settings-body components-page">
      <h1>Components</h1>
      <p class="muted">Every component in every state. Looks are those of this device.</p>
      <div class="form">
        <Select<Theme>
          label="Theme"
          value={device.theme.value}
          options={[
            { value: "system", name: "As the system" },
            { value: "light", name: "Light" },
            { value: "dark", name: "Dark" },
          ]}
          onChange={(theme) => device.theme.value = theme}
        />
        <Slider
          label="Accent hue"
          value={device.hue.value}
          min={0}
          max={360}
          format={String}
          onInput={(hue) => device.hue.value = hue}
          onChange={(hue) => device.hue.value = hue}
        />
        <p class="muted">Languages: {Object.values(LANGUAGES).join(", ")}</p>
        <div>
          <Button onClick={() => document.documentElement.dir = document.documentElement.dir === "rtl" ? "ltr" : "rtl"}>
            Change direction
          </Button>
        </div>
      </div>
      <ButtonSamples />
      <FormSamples />
      <OverlaySamples />
      <ListSamples />
      <NoticeSamples />
      <ContentSamples />
    </main>
  );
}
