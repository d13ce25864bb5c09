/** The sign-in screen of a protected address. */
import { Button, LinkButton } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import { signIn } from "../../state/app/passkeys.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { GateFrame, PasskeysUnavailable, TokenForm } from "./GateFrame.tsx";
import { useAction } from "../hooks.tsx";

/** With a passkey, or a token where passkeys don't work. */
export function SignInScreen() {
  const store = useStore();
  const t = texts.access;
  const { isBusy, failure, run } = useAction(async () => {
    await signIn(store.access);
    // Everything is reloaded: nothing was visible before.
    globalThis.location.reload();
  });
  if (store.auth.value?.passkeys_supported === false) {
    return (
      <GateFrame title={t.signIn}>
        <PasskeysUnavailable level={2} />
        <TokenForm />
      </GateFrame>
    );
  }
  return (
    <GateFrame title={t.signIn}>
      <p>{t.signInText(globalThis.location.host)}</p>
      {failure && <Notice tone="danger">{failure}</Notice>}
      <div class="gate-actions">
        <Button kind="primary" icon="key" isBusy={isBusy} onClick={run}>{t.usePasskey}</Button>
        <LinkButton href="/pair" kind="quiet">{t.haveCode}</LinkButton>
      </div>
      <p class="hint">{t.haveCodeHint}</p>
    </GateFrame>
  );
}
