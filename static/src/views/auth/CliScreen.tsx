/** The sign-in of the command line: sign in, then allow or deny. */
import { useState } from "preact/hooks";
import { Button, CopyButton } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import { deviceName, enroll, signIn } from "../../state/app/passkeys.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { GateFrame, PasskeysUnavailable } from "./GateFrame.tsx";
import { useAction } from "../hooks.tsx";

interface CliRequest {
  port: number;
  state: string;
  challenge: string;
  /** The machine's name as sent by the command line. It isn't verified. */
  name: string;
}

/** Parses what the command line put in the fragment; undefined if incomplete. */
function parseRequest(hash: string): CliRequest | undefined {
  const params = new URLSearchParams(hash.slice(1));
  const port = Number(params.get("port"));
  const [state, challenge] = [params.get("state") ?? "", params.get("challenge") ?? ""];
  const isWhole = Number.isInteger(port) && port > 0 && port < 65536 && /^[\w-]{22}$/.test(state) &&
    /^[\w-]{43}$/.test(challenge);
  return isWhole ? { port, state, challenge, name: (params.get("name") ?? "?").slice(0, 64) } : undefined;
}

/** Renders the approval screen of a command-line sign-in. */
export function CliScreen() {
  const { auth } = useStore();
  const [request] = useState(() => parseRequest(globalThis.location.hash));
  const t = texts.access;
  const status = auth.value;
  if (status === undefined) return <p class="lazy-loading muted" role="status">{texts.loading}</p>;
  return (
    <GateFrame title={t.cli} icon="shield">
      {request === undefined
        ? <Notice tone="danger">{t.cliBroken}</Notice>
        : !status.passkeys_supported
        ? <PasskeysUnavailable level={2} />
        : status.method === "session"
        ? <Approval request={request} />
        : <FirstSignIn name={request.name} isPaired={status.paired} />}
    </GateFrame>
  );
}

function FirstSignIn({ name, isPaired }: { name: string; isPaired: boolean }) {
  const store = useStore();
  const t = texts.access;
  const { isBusy, failure, run } = useAction(async () => {
    if (isPaired) await signIn(store.access);
    else await enroll(store.access, { name: deviceName(globalThis.navigator.userAgent) });
    await store.refreshAuth();
  });
  return (
    <>
      <p>{t.cliText(name)}</p>
      <p>{isPaired ? t.cliSignIn : t.pairText(globalThis.location.host)}</p>
      {failure && <Notice tone="danger">{failure}</Notice>}
      <div class="gate-actions">
        <Button kind="primary" icon="key" isBusy={isBusy} onClick={run}>{isPaired ? t.usePasskey : t.create}</Button>
      </div>
    </>
  );
}

function Approval({ request }: { request: CliRequest }) {
  const store = useStore();
  const t = texts.access;
  const [code, setCode] = useState<string>();
  const callback = (answer: Record<string, string>) =>
    globalThis.location.assign(
      `http://127.0.0.1:${request.port}/callback?${new URLSearchParams({ state: request.state, ...answer })}`,
    );
  const allow = useAction(async () => callback(await store.access.approveCli(request.challenge)));
  const show = useAction(async () => setCode((await store.access.approveCli(request.challenge)).code));
  const failure = allow.failure ?? show.failure;
  if (code !== undefined) {
    return (
      <>
        <p id="cli-code">{t.cliCode}</p>
        <p class="secret">
          <code aria-labelledby="cli-code">{code}</code>
          <CopyButton text={code} />
        </p>
        <p class="hint">{t.cliCodeText}</p>
      </>
    );
  }
  return (
    <>
      <p>{t.cliText(request.name)}</p>
      <p class="gate-warning">{t.cliWarning}</p>
      {failure && <Notice tone="danger">{failure}</Notice>}
      <div class="gate-actions">
        <Button kind="primary" isBusy={allow.isBusy} onClick={allow.run}>{t.cliAllow}</Button>
        <Button onClick={() => callback({ error: "denied" })}>{t.cliDeny}</Button>
        <Button kind="quiet" isBusy={show.isBusy} onClick={show.run}>{t.cliElsewhere}</Button>
      </div>
    </>
  );
}
