/** The layout of pages before sign-in, and sign-in with a token where passkeys don't work. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Toasts } from "../../components/overlays/Toasts.tsx";
import { useTitle } from "../../components/hooks.ts";
import { Icon, type IconName } from "../../components/Icon.tsx";
import { texts } from "../../texts/texts.ts";
import { Banners } from "../shell/Banners.tsx";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Notice } from "../../components/Notice.tsx";
import { findStorage, saveDeviceToken } from "../../state/app/device.ts";
import { useStore } from "../../state/store.ts";
import { useAction } from "../hooks.tsx";

/** One column, an icon, a title, one task. The title takes the focus, so that screen readers start with the question. */
export function GateFrame(
  { title, icon = "key", children }: { title: string; icon?: IconName; children: ComponentChildren },
) {
  const heading = useRef<HTMLHeadingElement>(null);
  useTitle(`${title} · ${texts.product}`);
  useEffect(() => heading.current?.focus(), []);
  return (
    <div class="gate">
      <Banners />
      <main id="main" class="gate-card">
        <span class="gate-mark">
          <Icon name={icon} />
        </span>
        <h1 ref={heading} tabIndex={-1}>{title}</h1>
        {children}
      </main>
      <Toasts />
    </div>
  );
}

/** Explains why passkeys don't work at this address, and what would help. */
export function PasskeysUnavailable({ level }: { level: 2 | 3 }) {
  const t = texts.access;
  const Heading = level === 2 ? "h2" : "h3";
  const { hostname, port } = globalThis.location;
  const isAddress = /^[\d.]+$|^\[/.test(hostname);
  if (/^127\.|^\[::1\]$/.test(hostname)) {
    const url = `http://localhost${port === "" ? "" : `:${port}`}`;
    return (
      <div class="no-passkeys">
        <Heading>{t.unsupported}</Heading>
        <p>{t.unsupportedAddress}</p>
        <p>
          {t.useLocalhost} <a href={url}>{url}</a>
        </p>
      </div>
    );
  }
  return (
    <div class="no-passkeys">
      <Heading>{t.unsupported}</Heading>
      <p>{isAddress ? t.unsupportedAddress : t.unsupportedHttp}</p>
      <details>
        <summary>{t.howTo}</summary>
        <ul>
          <li>{t.wayTailnet}</li>
          <li>{t.wayProxy}</li>
          <li>{t.wayCert}</li>
        </ul>
      </details>
    </div>
  );
}

/** Checks a token and saves it on this device. */
export function TokenForm() {
  const store = useStore();
  const t = texts.access;
  const [token, setToken] = useState("");
  const { isBusy, failure, run } = useAction(async () => {
    const { method } = await store.access.status(token.trim());
    if (method !== "token") throw new Error(t.tokenWrong);
    saveDeviceToken(findStorage(globalThis.window), token.trim());
    globalThis.location.replace("/");
  });
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      <TextField
        label={t.token}
        hint={t.tokenHint}
        error={failure}
        type="password"
        autocomplete="off"
        isMono
        isRequired
        value={token}
        onInput={setToken}
      />
      {globalThis.location.protocol === "http:" && <Notice tone="warning">{t.tokenWarning}</Notice>}
      <div class="gate-actions">
        <Button type="submit" kind="primary" isBusy={isBusy} isDisabled={token.trim() === ""}>{t.useToken}</Button>
      </div>
    </form>
  );
}
