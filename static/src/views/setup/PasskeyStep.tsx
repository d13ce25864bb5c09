/** The third step: who may come in from now on. */
import { Button } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import { deviceName, enrol } from "../../state/app/passkeys.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { WhyNoPasskeys } from "../auth/NoPasskeys.tsx";
import { useAction } from "../use_action.ts";
import type { StepProps } from "./SetupScreen.tsx";

/** Offers a passkey where one is possible, and says how things stand. */
export function PasskeyStep({ onNext, isLeaving }: StepProps) {
  const store = useStore();
  const t = texts.welcome;
  const auth = store.auth.value;
  const { isBusy, failure, run } = useAction(async () => {
    await enrol(store.access, { name: deviceName(globalThis.navigator.userAgent) });
    await store.refreshAuth();
    onNext();
  });
  if (auth === undefined) return <p class="muted" role="status">{texts.loading}</p>;
  const isOpen = !auth.paired && auth.passkeys_supported;
  // Who skips it here said "not now" to the question that would come next.
  const skip = () => {
    if (isOpen && auth.bypass === "grace") store.device.isPairingDeclined.value = true;
    onNext();
  };
  return (
    <>
      {isOpen && <p>{auth.bypass === "loopback" ? t.passkeyLocal : texts.access.pairText(globalThis.location.host)}</p>}
      {auth.paired && <p>{t.passkeyThere}</p>}
      {!auth.passkeys_supported && <WhyNoPasskeys level={2} />}
      {failure && <Notice tone="danger">{failure}</Notice>}
      <div class="gate-actions">
        {isOpen && (
          <Button
            kind={auth.bypass === "loopback" ? "plain" : "primary"}
            icon="key"
            isBusy={isBusy}
            onClick={() => void run()}
          >
            {texts.access.create}
          </Button>
        )}
        <Button
          kind={isOpen && auth.bypass !== "loopback" ? "quiet" : "primary"}
          isBusy={isLeaving}
          onClick={skip}
        >
          {isOpen && auth.bypass !== "loopback" ? t.skip : t.start}
        </Button>
      </div>
    </>
  );
}
