/** Guides from this machine to a phone: an HTTPS address, a QR code, and a check whether the phone has signed in. */
import { useEffect, useState } from "preact/hooks";
import { tailnetApi } from "../../api/server.ts";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { AddressCheck, Invite } from "../../api/types.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, CopyButton } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Notice } from "../../components/Notice.tsx";
import { isLoopback } from "../../state/app/loopback.ts";
import { describePasskeyError } from "../../state/app/passkeys.ts";
import { TailnetNode, TailnetPanel } from "../tailnet/TailnetPanel.tsx";
import { useStore } from "../../state/store.ts";
import { formatTime } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { QrCode } from "./QrCode.tsx";

/** Debounce delay before a typed address is checked, in milliseconds. */
const TYPING_MS = 600;
/** Interval between checks of an address that doesn't work yet, in milliseconds. */
const CHECK_AGAIN_MS = 5_000;

type AccessMethod = "tailnet" | "proxy";

/** Expands in place on click. @param props.onTailnet Called when the guide shows or hides the tailnet. */
export function PhoneGuide({ onTailnet }: { onTailnet: (isShown: boolean) => void }) {
  const t = texts.phone;
  const [isOpen, setOpen] = useState(false);
  return (
    <div class="settings-part">
      <h3 id="phone">{t.title}</h3>
      <p class="muted">{t.intro}</p>
      {isOpen ? <Steps onTailnet={onTailnet} /> : (
        <div class="actions-row">
          <Button kind="primary" onClick={() => setOpen(true)}>{t.open}</Button>
        </div>
      )}
    </div>
  );
}

function Steps({ onTailnet }: { onTailnet: (isShown: boolean) => void }) {
  const t = texts.phone;
  const { location } = globalThis;
  const isLocal = isLoopback(location.hostname);
  const isReachable = !isLocal && location.protocol === "https:";
  const [way, setWay] = useState<AccessMethod>("tailnet");
  const [typed, setTyped] = useState("");
  const tailnetUrl = useTailnetUrl();
  const own = readAddress(typed);
  const showsTailnet = !isReachable && way === "tailnet";
  useEffect(() => onTailnet(showsTailnet), [showsTailnet]);
  const draft = useFormDraft("phone_address");
  const address = isReachable ? location.origin : way === "tailnet" ? tailnetUrl : own;
  return (
    <ol class="phone-steps">
      {!isReachable && (
        <li>
          <h4>{t.address}</h4>
          <p>{isLocal ? t.whyNotLocalhost(location.host) : t.whyHttps}</p>
          <fieldset class="command-choice">
            <legend class="visually-hidden">{t.address}</legend>
            {(["tailnet", "proxy"] as const).map((one) => (
              <label key={one} class="command-option">
                <input type="radio" checked={one === way} onChange={() => setWay(one)} />
                <span>{t.ways[one]}</span>
              </label>
            ))}
          </fieldset>
          {way === "tailnet" ? <TailnetPanel /> : (
            <div class="form">
              <p>{t.proxyText}</p>
              <Drafted draft={draft}>
                <TextField
                  label={t.proxyAddress}
                  value={typed}
                  error={typed !== "" && own === undefined ? t.proxyWrong : undefined}
                  onInput={setTyped}
                />
              </Drafted>
              {own !== undefined && <AddressCheckNote address={own} />}
            </div>
          )}
        </li>
      )}
      <li>
        <h4>{t.scan}</h4>
        {address === undefined ? <p class="muted" role="status">{t.waitingAddress}</p> : <Scan address={address} />}
      </li>
    </ol>
  );
}

/** Returns the tailnet node's HTTPS URL, or undefined until it has one. Updates live. */
function useTailnetUrl(): string | undefined {
  const store = useStore();
  const [node] = useState(() => new TailnetNode(tailnetApi(store.api.client)));
  useEffect(() => {
    void node.refresh();
    return store.listen((event) => node.onChange(event));
  }, []);
  const status = node.status.value;
  return status?.state === "running" && status.url?.startsWith("https:") ? status.url.replace(/\/$/, "") : undefined;
}

/** Returns the origin of a typed URL, or undefined if passkeys can't work there: they need HTTPS and a hostname. */
function readAddress(typed: string): string | undefined {
  const url = URL.canParse(typed.trim()) ? new URL(typed.trim()) : undefined;
  if (url?.protocol !== "https:" || isLoopback(url.hostname) || /^[\d.]+$|^\[/.test(url.hostname)) return undefined;
  return url.origin;
}

/** Shows whether the server can reach itself at an address. Checks again until it can. */
function AddressCheckNote({ address }: { address: string }) {
  const t = texts.phone;
  const { result, error } = useAddressCheck(address);
  if (error) return <Notice tone="warning">{error.message}</Notice>;
  if (result === undefined) return <p class="muted" role="status">{t.checking}</p>;
  if (result === "ok") return <Notice tone="info">{t.checks.ok}</Notice>;
  return (
    <Notice tone="warning" title={t.checks[result]}>
      {t.checkHints[result](new URL(address).hostname)}
    </Notice>
  );
}

type AddressState = { of?: string; result?: AddressCheck["result"]; error?: ApiError };

function useAddressCheck(address: string): AddressState {
  const store = useStore();
  const [state, setState] = useState<AddressState>({});
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    let isOver = false;
    const check = async () => {
      const found: AddressState = await store.access.checkAddress(address)
        .catch((thrown) => ({ error: asApiError(thrown) }));
      if (isOver) return;
      setState({ of: address, ...found });
      if (found.result !== "ok") timer = setTimeout(check, CHECK_AGAIN_MS);
    };
    timer = setTimeout(check, TYPING_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [address]);
  return state.of === address ? state : {};
}

/** The address with its code as a QR code, and the new device once it has signed in. */
function Scan({ address }: { address: string }) {
  const store = useStore();
  const t = texts.phone;
  const [invite, setInvite] = useState<Invite>();
  const [failure, setFailure] = useState<string>();
  const arrived = useNewDevice();
  const create = () => {
    setFailure(undefined);
    store.access.invite().then(setInvite, (thrown) => setFailure(describePasskeyError(thrown)));
  };
  useEffect(create, [address]);
  if (failure) {
    return <Notice tone="danger" actions={<Button onClick={create}>{texts.retry}</Button>}>{failure}</Notice>;
  }
  if (!invite) return <p class="muted" role="status">{texts.loading}</p>;
  const url = `${address}/pair#code=${invite.code}`;
  return (
    <div class="shown-once">
      <p>{t.scanText}</p>
      <QrCode text={url} label={texts.privacy.qr} />
      <p class="secret">
        <code>{address}</code>
        <CopyButton text={address} />
      </p>
      <p class="secret large">
        <code aria-label={texts.privacy.inviteCode}>{invite.code}</code>
        <CopyButton text={invite.code} />
      </p>
      <p class="hint">{texts.privacy.inviteUntil(formatTime(invite.expires_at, new Date()))}</p>
      <p role="status">
        {arrived === undefined
          ? (
            <>
              <span class="pulse" aria-hidden="true" /> {t.waitingDevice}
            </>
          )
          : <strong>{t.arrived(arrived)}</strong>}
      </p>
      {arrived === undefined && <p class="hint">{t.unreachable}</p>}
    </div>
  );
}

/** Returns the name of the first passkey added since the component mounted. */
function useNewDevice(): string | undefined {
  const store = useStore();
  const [known, setKnown] = useState<ReadonlySet<string>>();
  const [arrived, setArrived] = useState<string>();
  const version = store.accessVersion.value;
  useEffect(() => {
    store.access.listPasskeys().then((passkeys) => {
      if (known === undefined) return setKnown(new Set(passkeys.map(({ id }) => id)));
      setArrived(passkeys.find(({ id }) => !known.has(id))?.name);
    }, () => {}); // The next event retries.
  }, [version]);
  return arrived;
}
