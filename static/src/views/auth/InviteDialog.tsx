/** A code for another device, in letters and to scan. */
import type { Invite } from "../../api/types.ts";
import { useEffect, useState } from "preact/hooks";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { Notice } from "../../components/Notice.tsx";
import { CopyButton } from "../../components/content/CopyButton.tsx";
import { wordsFor } from "../../state/app/passkeys.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { moment } from "../../texts/times.ts";
import { QrCode } from "./QrCode.tsx";

/** Makes the invite when it opens. */
export function InviteDialog({ onClose }: { onClose: () => void }) {
  const store = useStore();
  const t = texts.privacy;
  const [invite, setInvite] = useState<Invite>();
  const [failure, setFailure] = useState<string>();
  useEffect(() => {
    store.access.invite().then(setInvite, (thrown) => setFailure(wordsFor(thrown)));
  }, []);
  // Another device reaches this machine by another name than the one it has for itself.
  const isLocal = /^(localhost|127\.|\[::1\])|\.localhost$/.test(globalThis.location.hostname);
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
          <p class="hint">{t.inviteUntil(moment(invite.expires_at, new Date()))}</p>
        </div>
      )}
    </Dialog>
  );
}
