/** Creates the first passkey of an address, or enrolls a new device with a code. */
import { useEffect, useState } from "preact/hooks";
import { Button, LinkButton } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Notice } from "../../components/Notice.tsx";
import { deviceName, enroll } from "../../state/app/passkeys.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { GateFrame, PasskeysUnavailable, TokenForm } from "./GateFrame.tsx";
import { useAction } from "../hooks.tsx";

/** The code in an invite's fragment, which is removed from the address bar at once. */
function useCarriedCode(): string {
  const [code] = useState(() => new URLSearchParams(globalThis.location.hash.slice(1)).get("code") ?? "");
  useEffect(() => globalThis.history.replaceState(null, "", globalThis.location.pathname), []);
  return code;
}

/** @param onLater Set if the user may continue without. */
export function PairScreen({ onLater }: { onLater?: () => void }) {
  const store = useStore();
  const code = useCarriedCode();
  const t = texts.access;
  const auth = store.auth.value;
  const { host } = globalThis.location;
  if (auth === undefined) return <p class="lazy-loading muted" role="status">{texts.loading}</p>;
  if (!auth.passkeys_supported) {
    return (
      <GateFrame title={t.signIn}>
        <PasskeysUnavailable level={2} />
        <TokenForm />
      </GateFrame>
    );
  }
  const needsCode = !auth.authenticated && (auth.paired || auth.pairing === "code") && auth.bypass !== "loopback" &&
    auth.bypass !== "auth_disabled";
  return (
    <GateFrame title={needsCode ? t.pairCode : t.pair} icon="shield">
      <p>{needsCode ? t.pairCodeText(host) : t.pairText(host)}</p>
      <PairForm needsCode={needsCode} code={code}>
        {onLater && <Button kind="quiet" onClick={onLater}>{t.later}</Button>}
        {auth.paired && !auth.authenticated && <LinkButton href="/" kind="quiet">{t.havePasskey}</LinkButton>}
      </PairForm>
    </GateFrame>
  );
}

function PairForm(
  { needsCode, code: initial, children }: { needsCode: boolean; code: string; children: preact.ComponentChildren },
) {
  const store = useStore();
  const t = texts.access;
  const [name, setName] = useState(() => deviceName(globalThis.navigator.userAgent));
  const [code, setCode] = useState(initial);
  const [isMissing, setMissing] = useState(false);
  const { isBusy, failure, run } = useAction(async () => {
    await enroll(store.access, { name: name.trim() || t.device, code: needsCode ? code.trim() : undefined });
    globalThis.location.replace("/");
  });
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        const lacksCode = needsCode && code.trim() === "";
        setMissing(lacksCode);
        if (!lacksCode) void run();
      }}
    >
      {needsCode && (
        <TextField
          label={t.code}
          hint={t.codeHint}
          error={isMissing ? t.codeMissing : undefined}
          autocomplete="one-time-code"
          maxLength={20}
          isMono
          value={code}
          onInput={setCode}
        />
      )}
      <TextField label={t.name} hint={t.nameHint} maxLength={100} value={name} onInput={setName} />
      {failure && <Notice tone="danger">{failure}</Notice>}
      <div class="gate-actions">
        <Button type="submit" kind="primary" icon="key" isBusy={isBusy}>{t.create}</Button>
        {children}
      </div>
    </form>
  );
}
