/** Access settings: who has access, and how this browser signed in. */
import { pushApi } from "../../api/push.ts";
import type { AuthStatus } from "../../api/types.ts";
import { useEffect, useState } from "preact/hooks";
import { ConfirmDialog } from "./ConfirmDialog.tsx";
import { Button, LinkButton } from "../../components/Button.tsx";
import { isOwner } from "../../state/app/access.ts";
import { findStorage, saveDeviceToken } from "../../state/app/device.ts";
import { clearDrafts, countDrafts } from "../../state/app/form_draft_store.ts";
import { findPushId, unsubscribe } from "../../state/app/push.ts";
import { type Store, useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { TailnetPanel } from "../tailnet/TailnetPanel.tsx";
import { PasskeysUnavailable } from "./GateFrame.tsx";
import { PhoneGuide } from "./PhoneGuide.tsx";
import { PasskeyList } from "./PasskeyList.tsx";
import { TokenList } from "./TokenList.tsx";

/** Renders the settings page for access. */
export function PrivacyPage() {
  const store = useStore();
  const status = store.auth.value;
  const [isTailnetAbove, setTailnetAbove] = useState(false);
  useEffect(() => void store.refreshAuth(), []);
  if (status === undefined) return <p class="muted" role="status">{texts.loading}</p>;
  const isOwned = isOwner(status);
  return (
    <section class="settings-parts">
      <h2>{texts.privacy.title}</h2>
      <ThisBrowser status={status} />
      {!status.passkeys_supported && <PasskeysUnavailable level={3} />}
      {isOwned && <PhoneGuide onTailnet={setTailnetAbove} />}
      {isOwned && <PasskeyList status={status} />}
      {isOwned && <TokenList canMint={status.method === "session"} />}
      {isOwned && !isTailnetAbove && <TailnetPanel />}
    </section>
  );
}

function ThisBrowser({ status }: { status: AuthStatus }) {
  const store = useStore();
  const t = texts.privacy;
  const { method, bypass, paired, passkeys_supported } = status;
  const [isAsking, setAsking] = useState(false);
  const unsent = store.outbox.entries.value.length + store.outbox.queued.value.length;
  const [draftCount, setDraftCount] = useState(0);
  const leave = async () => {
    const { entries, queued, loaded } = store.outbox;
    const [count] = await Promise.all([countDrafts(), loaded]);
    setDraftCount(count);
    if (entries.peek().length + queued.peek().length + count > 0) setAsking(true);
    else if (method !== null) void signOut(store, method);
  };
  const explanation = method === "session"
    ? t.bySession
    : method === "token"
    ? t.byToken
    : bypass === "loopback"
    ? t.byLoopback
    : bypass === "auth_disabled"
    ? t.byDisabled
    : t.byGrace;
  return (
    <div class="settings-part">
      <h3>{t.here}</h3>
      <p>{explanation}</p>
      <div class="actions-row">
        {method !== null && <Button onClick={() => void leave()}>{t.signOut}</Button>}
        {isAsking && method !== null && (
          <ConfirmDialog
            title={t.signOut}
            action={t.signOut}
            act={() => signOut(store, method)}
            onClose={() => setAsking(false)}
          >
            {unsent > 0 && <p>{texts.unsent.signOut(unsent)}</p>}
            {draftCount > 0 && <p>{texts.drafts.signOut(draftCount)}</p>}
          </ConfirmDialog>
        )}
        {method === null && paired && passkeys_supported && <SignInButton />}
        {bypass === "grace" && passkeys_supported && (
          <LinkButton href="/pair" kind="primary" icon="key">{texts.access.create}</LinkButton>
        )}
      </div>
    </div>
  );
}

/** Even with a bypass, creating a token requires signing in. */
function SignInButton() {
  const store = useStore();
  const onClick = async () => {
    const { signIn, describePasskeyError } = await import("../../state/app/passkeys.ts");
    try {
      await signIn(store.access);
      await store.refreshAuth();
    } catch (thrown) {
      store.toasts.show(describePasskeyError(thrown), { isError: true });
    }
  };
  return <Button onClick={() => void onClick()}>{texts.privacy.signIn}</Button>;
}

async function signOut(store: Store, method: "session" | "token"): Promise<void> {
  const storage = findStorage(globalThis.window);
  // Until the page has reloaded, a click would still act on what belongs to the session.
  document.body.inert = true;
  try {
    if (findPushId(storage) !== undefined) await unsubscribe(pushApi(store.api.client), storage);
    if (method === "session") await store.access.logout();
    else saveDeviceToken(storage, undefined);
    await store.outbox.clear();
    await clearDrafts();
    globalThis.location.replace("/");
  } catch (thrown) {
    document.body.inert = false;
    store.report(thrown);
  }
}
