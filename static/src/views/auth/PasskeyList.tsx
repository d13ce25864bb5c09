/** The enrolled passkeys: names, dates, revoke, add. */
import { useEffect, useState } from "preact/hooks";
import type { AuthStatus, Invite, Passkey } from "../../api/types.ts";
import { Button, CopyButton } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { isLoopback } from "../../state/app/loopback.ts";
import { describePasskeyError, deviceName, enroll } from "../../state/app/passkeys.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatTime } from "../../texts/format.ts";
import { ConfirmDialog } from "./ConfirmDialog.tsx";
import { QrCode } from "./QrCode.tsx";
import { useAction, useList } from "../hooks.tsx";

/** Only shown to signed-in users. */
export function PasskeyList({ status }: { status: AuthStatus }) {
  const store = useStore();
  const t = texts.privacy;
  const { items, note, refresh } = useList(() => store.access.listPasskeys());
  const [doomed, setDoomed] = useState<Passkey>();
  const [isInviting, setInviting] = useState(false);
  const add = useAction(async () => {
    await enroll(store.access, { name: deviceName(globalThis.navigator.userAgent) });
    store.toasts.show(t.added);
    await Promise.all([store.refreshAuth(), refresh()]);
  });
  const canEnrol = status.method !== "token";
  return (
    <div class="settings-part">
      <h3 id="passkeys" tabIndex={-1}>{t.passkeys}</h3>
      <p class="muted">{t.passkeysText}</p>
      {note}
      {items?.length === 0 && <p>{t.passkeysNone}</p>}
      {items !== undefined && items.length > 0 && (
        <List label={t.passkeys}>
          {items.map((item) => (
            <ListRow
              key={item.id}
              title={
                <>
                  {item.name} {item.current && <span class="badge">{t.thisSession}</span>}
                </>
              }
              text={`${t.facts(item.rp_id, formatTime(item.created_at, new Date()))} · ${
                formatLastUsed(item.last_used_at)
              }`}
              end={
                <Button kind="quiet" label={t.revokeOf(item.name)} onClick={() => setDoomed(item)}>{t.revoke}</Button>
              }
            />
          ))}
        </List>
      )}
      {add.failure && <Notice tone="danger">{add.failure}</Notice>}
      {canEnrol && (
        <div class="actions-row">
          {status.passkeys_supported && <Button icon="key" isBusy={add.isBusy} onClick={add.run}>{t.addHere}</Button>}
          <Button icon="plus" onClick={() => setInviting(true)}>{t.addDevice}</Button>
        </div>
      )}
      {isInviting && <InviteDialog onClose={() => setInviting(false)} />}
      {doomed && (
        <ConfirmDialog
          title={t.revokePasskey(doomed.name)}
          action={t.revoke}
          act={() => revoke(doomed)}
          onClose={() => setDoomed(undefined)}
        >
          <p>{t.revokePasskeyText}</p>
          {doomed.current && <p>{t.revokeOwn}</p>}
        </ConfirmDialog>
      )}
    </div>
  );

  async function revoke(item: Passkey): Promise<void> {
    await store.access.revokePasskey(item.id);
    if (item.current) return globalThis.location.replace("/");
    store.toasts.show(t.revoked);
    await refresh();
  }
}

/** Formats the time of last use. */
export function formatLastUsed(lastUsedAt: string | null): string {
  const t = texts.privacy;
  return lastUsedAt === null ? t.neverUsed : t.lastUsed(formatTime(lastUsedAt, new Date()));
}

/** Creates the invite when it opens. */
function InviteDialog({ onClose }: { onClose: () => void }) {
  const store = useStore();
  const t = texts.privacy;
  const [invite, setInvite] = useState<Invite>();
  const [failure, setFailure] = useState<string>();
  useEffect(() => {
    store.access.invite().then(setInvite, (thrown) => setFailure(describePasskeyError(thrown)));
  }, []);
  // Another device reaches this machine under a different name.
  const isLocal = isLoopback(globalThis.location.hostname);
  return (
    <Dialog title={t.invite} onClose={onClose}>
      {failure && <Notice tone="danger">{failure}</Notice>}
      {invite && (
        <div class="shown-once">
          <p>{isLocal ? t.inviteLocal : t.inviteText}</p>
          {!isLocal && <QrCode text={invite.url} label={t.qr} />}
          <p class="secret large">
            <code aria-label={t.inviteCode}>{invite.code}</code>
            <CopyButton text={invite.code} />
          </p>
          <p class="hint">{t.inviteUntil(formatTime(invite.expires_at, new Date()))}</p>
        </div>
      )}
    </Dialog>
  );
}
