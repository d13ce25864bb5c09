/** Settings of the tailnet node, with the next step for each state. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type TailnetApi, tailnetApi } from "../../api/server.ts";
import type { ChangeEvent, TailnetStatus } from "../../api/types.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, CopyButton } from "../../components/Button.tsx";
import { VisibleText } from "../../components/content/VisibleText.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ConfirmDialog } from "../auth/ConfirmDialog.tsx";
import { QrCode } from "../auth/QrCode.tsx";
import { LatestRead } from "../../state/app/latest_read.ts";
import { useAction } from "../hooks.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";

/** The panel; it follows changes while shown. */
export function TailnetPanel() {
  const store = useStore();
  const [node] = useState(() => new TailnetNode(tailnetApi(store.api.client)));
  useEffect(() => {
    void node.refresh();
    return store.listen((event) => node.onChange(event));
  }, []);
  const t = texts.tailnet;
  const [status, error] = [node.status.value, node.error.value];
  return (
    <section class="settings-part tailnet" aria-labelledby="tailnet">
      <h3 id="tailnet" tabIndex={-1}>
        {t.title}
        {status && <span class="badge" role="status">{t.states[status.state]}</span>}
      </h3>
      <p class="muted">{t.intro}</p>
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={() => void node.refresh()} />}
      {status && <State key={status.state} node={node} status={status} />}
    </section>
  );
}

function State({ node, status }: { node: TailnetNode; status: TailnetStatus }) {
  const t = texts.tailnet;
  const { state, error, enabled } = status;
  switch (state) {
    case "disabled":
      return <Off node={node} status={status} />;
    case "needs_auth":
      return <WithTurnOff node={node} status={status}>{<SignIn status={status} />}</WithTurnOff>;
    case "running":
      return <Running node={node} status={status} />;
    case "starting":
      return (
        <WithTurnOff node={node} status={status}>
          {error ? <Notice tone="warning">{error}</Notice> : <p>{t.starting}</p>}
        </WithTurnOff>
      );
    case "stopped":
      return enabled
        ? <WithTurnOff node={node} status={status} canRetry>{<p>{t.stopped}</p>}</WithTurnOff>
        : <p>{t.stopping}</p>;
    case "error":
      return (
        <WithTurnOff node={node} status={status} canRetry={enabled}>
          <Notice tone="danger" title={t.failed}>{error}</Notice>
        </WithTurnOff>
      );
  }
}

function Off({ node, status }: { node: TailnetNode; status: TailnetStatus }) {
  const t = texts.tailnet;
  return (
    <>
      <div class="tailnet-before">
        <h4>{t.before}</h4>
        <ul>
          <li>{t.beforeOpen}</li>
          <li>{t.beforeClosed}</li>
          <li>{t.beforeLog}</li>
        </ul>
      </div>
      <NameForm node={node} hostname={status.hostname} action={t.turnOn} isFirst />
    </>
  );
}

/** The URL is a secret, so the link sends no referrer. */
function SignIn({ status: { auth_url, error } }: { status: TailnetStatus }) {
  const t = texts.tailnet;
  if (auth_url === null) return <p>{error}</p>;
  return (
    <div class="shown-once">
      <p>{t.signInText}</p>
      <p class="muted mono">
        <VisibleText text={new URL(auth_url).origin} isStrict />
      </p>
      <div class="actions-row">
        <a class="button primary" href={auth_url} target="_blank" rel="noopener noreferrer">{t.signIn}</a>
      </div>
      <QrCode text={auth_url} label={t.signInQr} />
      <Notice tone="warning">{t.beforeOpen}</Notice>
    </div>
  );
}

function Running({ node, status }: { node: TailnetNode; status: TailnetStatus }) {
  const t = texts.tailnet;
  const { url, error, hostname } = status;
  return (
    <WithTurnOff node={node} status={status}>
      {url && (
        <div class="shown-once">
          <p class="secret">
            <a class="tailnet-address" href={url} aria-label={`${t.address}: ${url}`}>{url}</a>
            <CopyButton text={url} />
          </p>
          <QrCode text={url} label={t.addressQr} />
        </div>
      )}
      {error ? <Notice tone="warning" title={t.plain}>{error}. {t.plainOpen}</Notice> : <p class="hint">{t.copied}</p>}
      <NameForm node={node} hostname={hostname} action={t.rename} />
    </WithTurnOff>
  );
}

/** Shown below every state of an enabled node. */
function WithTurnOff(
  { node, status, canRetry = false, children }: {
    node: TailnetNode;
    status: TailnetStatus;
    canRetry?: boolean;
    children: ComponentChildren;
  },
) {
  const t = texts.tailnet;
  const [isAsking, setAsking] = useState(false);
  const { isBusy, failure, run } = useAction(() => node.enable());
  return (
    <>
      {children}
      {failure && <Notice tone="danger" title={t.notOn}>{failure}</Notice>}
      <div class="actions-row">
        {canRetry && <Button isBusy={isBusy} onClick={() => void run()}>{t.again}</Button>}
        <Button onClick={() => setAsking(true)}>{t.turnOff}</Button>
      </div>
      {isAsking && <TurnOffDialog node={node} status={status} onClose={() => setAsking(false)} />}
    </>
  );
}

/** Explains what will be lost. */
function TurnOffDialog(
  { node, status: { url, fqdn }, onClose }: { node: TailnetNode; status: TailnetStatus; onClose: () => void },
) {
  const store = useStore();
  const t = texts.tailnet;
  const isHere = fqdn !== null && globalThis.location.hostname === fqdn;
  return (
    <ConfirmDialog title={t.turnOffAsk} action={t.turnOff} act={turnOff} onClose={onClose}>
      <div class="shown-once">
        {url && <p>{t.turnOffReach(url)}</p>}
        {isHere && <p class="gate-warning">{t.turnOffHere}</p>}
        <p>{t.turnOffWipe}</p>
        <p>{t.turnOffAgain}</p>
      </div>
    </ConfirmDialog>
  );

  async function turnOff(): Promise<void> {
    await node.disable();
    store.toasts.show(t.turnedOff);
  }
}

/** One DNS label, as the server accepts it. */
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * The form of the node's name: to turn it on, or to rename it. Validates the name before it asks the server.
 *
 * Props: `node`, `hostname` (the current one), `action` (label of the button); `isFirst?` (it turns the node on).
 */
function NameForm(
  { node, hostname, action, isFirst = false }: {
    node: TailnetNode;
    hostname: string;
    action: string;
    isFirst?: boolean;
  },
) {
  const t = texts.tailnet;
  const [typed, setTyped] = useState<string>();
  const [isWrong, setWrong] = useState(false);
  const draft = useFormDraft("tailnet");
  const name = (typed ?? hostname).trim().toLowerCase();
  const { isBusy, failure, run } = useAction(async () => {
    await node.enable(name);
    draft.clear();
    setTyped(undefined);
  });
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        setWrong(!LABEL.test(name));
        if (LABEL.test(name)) void run();
      }}
    >
      <Drafted draft={draft}>
        <TextField
          label={t.name}
          hint={t.nameHint}
          error={isWrong ? t.nameWrong : undefined}
          maxLength={63}
          isMono
          value={typed ?? hostname}
          onInput={setTyped}
        />
      </Drafted>
      {failure && <Notice tone="danger" title={t.notOn}>{failure}</Notice>}
      <div class="actions-row">
        <Button
          type="submit"
          kind={isFirst ? "primary" : "plain"}
          isBusy={isBusy}
          isDisabled={!isFirst && name === hostname}
        >
          {action}
        </Button>
      </div>
    </form>
  );
}

/** The state that the panel shows. */
export class TailnetNode {
  readonly status = signal<TailnetStatus | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  readonly #api: TailnetApi;
  readonly #reads = new LatestRead();

  constructor(api: TailnetApi) {
    this.#api = api;
  }

  /** Loads the state. */
  async refresh(): Promise<void> {
    try {
      await this.#reads.run(() => this.#api.getTailnet(), (status) => this.status.value = status);
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
    }
  }

  /** Handles an event of the server; `undefined` if events may have been missed. */
  onChange(event: ChangeEvent | undefined): void {
    if (event === undefined || event.kind === "tailnet") void this.refresh();
  }

  /** Turns the node on, renames it, or restarts it. @throws {ApiError} */
  async enable(hostname?: string): Promise<void> {
    await this.#api.enableTailnet(hostname);
    await this.refresh();
  }

  /** @throws {ApiError} */
  async disable(): Promise<void> {
    await this.#api.disableTailnet();
    await this.refresh();
  }
}
