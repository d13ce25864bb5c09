/** The first-run setup: a model, a name, a passkey, each skippable; then a chat with the built-in character. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, asApiError } from "../../api/client.ts";
import { getReleases } from "../../api/server.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, LinkButton } from "../../components/Button.tsx";
import type { IconName } from "../../components/Icon.tsx";
import { lazy } from "../../components/Lazy.tsx";
import { Notice } from "../../components/Notice.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Switch } from "../../components/forms/inputs.tsx";
import { deviceName, enroll } from "../../state/app/passkeys.ts";
import { SETUP_STEPS, type SetupStep } from "../../state/app/router.ts";
import { type Store, useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { GateFrame, PasskeysUnavailable } from "../auth/GateFrame.tsx";
import { DetectedServers } from "../connections/DetectedServers.tsx";
import { useAction, useResource } from "../hooks.tsx";

const ConnectionForm = lazy(() => import("../connections/ConnectionForm.tsx").then((file) => file.ConnectionForm));

/** Props of a step. */
interface StepProps {
  /** Continues, whether the step was done or skipped. */
  onNext: () => void;
  /** The page is navigating. */
  isLeaving: boolean;
}

const ICONS: Record<SetupStep, IconName> = { model: "plug", name: "user", passkey: "shield" };
const PARTS = { model: ModelStep, name: NameStep, passkey: PasskeyStep };

/** One step. Each has a URL, so that the back button returns to the previous one. */
export function SetupScreen({ step }: { step: SetupStep }) {
  const store = useStore();
  const t = texts.welcome;
  const [isLeaving, setLeaving] = useState(false);
  const at = SETUP_STEPS.indexOf(step);
  const next = SETUP_STEPS[at + 1];
  const Part = PARTS[step];
  // The form is at the same step, with an address of its own for the Back button.
  const isManual = step === "model" && store.router.hash.value === "url";
  const goOn = async () => {
    if (next !== undefined) return store.router.go(`/welcome/${next}`);
    setLeaving(true);
    try {
      await beginFirstChat(store);
    } catch (thrown) {
      store.report(thrown);
      setLeaving(false);
    }
  };
  return (
    <GateFrame
      key={isManual ? "url" : "step"}
      title={isManual ? texts.firstRun.manual : t.titles[step]}
      icon={ICONS[step]}
    >
      <p class="muted welcome-step">{t.step(at + 1, SETUP_STEPS.length)}</p>
      {isManual
        ? <ConnectionForm connection={undefined} listAddress="/welcome" onSaved={() => void goOn()} />
        : <Part onNext={() => void goOn()} isLeaving={isLeaving} />}
    </GateFrame>
  );
}

/** Id of the built-in character. */
const BUILTIN_ID = "pim";

/**
 * Completes the setup and opens a chat with the built-in character, or an empty one if it was deleted. @throws
 * {ApiError}
 */
async function beginFirstChat(store: Store): Promise<void> {
  await store.completeSetup();
  try {
    const { id } = await store.api.beginChat({ character_ids: [BUILTIN_ID], greeting: 0 });
    store.router.go(`/c/${encodeURIComponent(id)}`, { replace: true });
  } catch (thrown) {
    if (!(thrown instanceof ApiError) || thrown.status !== 404) throw thrown;
    store.router.go("/new", { replace: true });
  }
}

/** Searches for servers at once; below that, an address by hand. */
function ModelStep({ onNext }: StepProps) {
  const { connections } = useStore();
  const t = texts.welcome;
  useEffect(() => void connections.discover(), []);
  const active = connections.active.value;
  const hasModel = active !== undefined && active.kind !== "demo";
  return (
    <>
      <p>{hasModel ? t.modelThere(active.name) : t.modelText}</p>
      <DetectedServers level={2} isUntitled onUsed={onNext} />
      <div class="gate-actions">
        {hasModel && <Button kind="primary" onClick={onNext}>{t.goOn}</Button>}
        <Button
          icon="search"
          isBusy={connections.discovery.value.kind === "searching"}
          onClick={() => void connections.discover()}
        >
          {texts.connections.searchAgain}
        </Button>
        <LinkButton href="/welcome#url">{texts.firstRun.manual}</LinkButton>
        {!hasModel && <Button kind="quiet" onClick={onNext}>{t.skip}</Button>}
      </div>
    </>
  );
}

/** Asks for the name, and once whether to look for new versions, if this build names a server for that. */
function NameStep({ onNext }: StepProps) {
  const { api, preferences } = useStore();
  const t = texts.welcome;
  const [typed, setTyped] = useState<string>();
  const [failure, setFailure] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const draft = useFormDraft("setup:name");
  const { value: releases } = useResource(() => getReleases(api.client));
  const [checks, setChecks] = useState<boolean>();
  const settings = preferences.settings.value;
  const name = typed ?? settings?.display_name ?? "";
  const isChecking = checks ?? settings?.check_releases ?? false;
  const save = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      await preferences.change({
        ...(name.trim() !== "" && { display_name: name.trim() }),
        ...(checks !== undefined && { check_releases: checks }),
      });
      draft.clear();
      onNext();
    } catch (thrown) {
      setFailure(asApiError(thrown).message);
    }
    setBusy(false);
  };
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim() === "" && checks === undefined) onNext();
        else void save();
      }}
    >
      <Drafted draft={draft}>
        <TextField
          label={texts.general.displayName}
          hint={t.nameHint}
          error={failure}
          autocomplete="nickname"
          maxLength={100}
          value={name}
          onInput={setTyped}
        />
      </Drafted>
      {releases && releases.host !== null && (
        <Switch
          label={texts.releases.check}
          hint={texts.releases.checkHint(releases.host)}
          isOn={isChecking}
          onChange={setChecks}
        />
      )}
      <div class="gate-actions">
        <Button type="submit" kind="primary" isBusy={isBusy}>{t.goOn}</Button>
        <Button kind="quiet" onClick={onNext}>{t.skip}</Button>
      </div>
    </form>
  );
}

/** Offers a passkey where possible, and shows the current state. */
function PasskeyStep({ onNext, isLeaving }: StepProps) {
  const store = useStore();
  const t = texts.welcome;
  const auth = store.auth.value;
  const { isBusy, failure, run } = useAction(async () => {
    await enroll(store.access, { name: deviceName(globalThis.navigator.userAgent) });
    await store.refreshAuth();
    onNext();
  });
  if (auth === undefined) return <p class="muted" role="status">{texts.loading}</p>;
  const isOpen = !auth.paired && auth.passkeys_supported;
  // Skipping here also declines the later question.
  const skip = () => {
    if (isOpen && auth.bypass === "grace") store.device.isPairingDeclined.value = true;
    onNext();
  };
  return (
    <>
      {isOpen && <p>{auth.bypass === "loopback" ? t.passkeyLocal : texts.access.pairText(globalThis.location.host)}</p>}
      {auth.paired && <p>{t.passkeyThere}</p>}
      {!auth.passkeys_supported && <PasskeysUnavailable level={2} />}
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
