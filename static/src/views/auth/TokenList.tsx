/** Bearer tokens: create, last use, revoke; and access for programs, which use such tokens. */
import type { MintedToken, Token } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { Button, CopyButton } from "../../components/Button.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatTime } from "../../texts/format.ts";
import { ConfirmDialog } from "./ConfirmDialog.tsx";
import { formatLastUsed } from "./PasskeyList.tsx";
import { useAction, useList } from "../hooks.tsx";
import { ProgramAccess } from "./ProgramAccess.tsx";
import { QrCode } from "./QrCode.tsx";

/** @param canMint There is a session: a token can't create another. */
export function TokenList({ canMint }: { canMint: boolean }) {
  const store = useStore();
  const t = texts.privacy;
  const { items, note, refresh } = useList(() => store.access.listTokens());
  const [doomed, setDoomed] = useState<Token>();
  const [minted, setMinted] = useState<MintedToken>();
  return (
    <>
      <div class="privacy-part">
        <h3 id="tokens" tabIndex={-1}>{t.tokens}</h3>
        <p class="muted">{t.tokensText}</p>
        {note}
        {items?.length === 0 && <p>{t.tokensNone}</p>}
        {items !== undefined && items.length > 0 && (
          <List label={t.tokens}>
            {items.map((item) => (
              <ListRow
                key={item.id}
                title={item.label}
                text={describe(item)}
                end={
                  <Button kind="quiet" label={t.revokeOf(item.label)} onClick={() => setDoomed(item)}>
                    {t.revoke}
                  </Button>
                }
              />
            ))}
          </List>
        )}
        {canMint ? <MintForm onMinted={setMinted} /> : <p class="hint">{t.tokensSession}</p>}
        {minted && <MintedDialog minted={minted} onClose={close} />}
        {doomed && (
          <ConfirmDialog
            title={t.revokeToken(doomed.label)}
            action={t.revoke}
            act={() => revoke(doomed)}
            onClose={() => setDoomed(undefined)}
          >
            <p>{t.revokeTokenText}</p>
          </ConfirmDialog>
        )}
      </div>
      <ProgramAccess canMint={canMint} onMinted={setMinted} />
    </>
  );

  function close(): void {
    setMinted(undefined);
    void refresh();
  }

  async function revoke({ id }: Token): Promise<void> {
    await store.access.revokeToken(id);
    store.toasts.show(t.revoked);
    await refresh();
  }
}

/** Describes a token in one line. */
function describe({ scope, created_at, last_used_at }: Token): string {
  const t = texts.privacy;
  const facts = [t.tokenFacts(formatTime(created_at, new Date())), formatLastUsed(last_used_at)];
  if (scope === "openai") facts.unshift(t.scopeOpenai);
  return facts.join(" · ");
}

function MintForm({ onMinted }: { onMinted: (token: MintedToken) => void }) {
  const store = useStore();
  const t = texts.privacy;
  const [label, setLabel] = useState("");
  const [isMissing, setMissing] = useState(false);
  const { isBusy, failure, run } = useAction(async () => {
    onMinted(await store.access.mintToken(label.trim()));
    setLabel("");
  });
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        setMissing(label.trim() === "");
        if (label.trim() !== "") void run();
      }}
    >
      <TextField
        label={t.label}
        error={isMissing ? t.labelMissing : failure}
        maxLength={100}
        value={label}
        onInput={setLabel}
      />
      <div class="actions-row">
        <Button type="submit" icon="plus" isBusy={isBusy}>{t.mint}</Button>
      </div>
    </form>
  );
}

/** The text of a token, shown once. */
function MintedDialog({ minted, onClose }: { minted: MintedToken; onClose: () => void }) {
  const t = texts.privacy;
  return (
    <Dialog
      title={t.minted(minted.label)}
      onClose={onClose}
      actions={<Button kind="primary" onClick={onClose}>{t.mintedDone}</Button>}
    >
      <div class="shown-once">
        <p>{t.mintedText}</p>
        <p class="secret">
          <code aria-label={t.minted(minted.label)}>{minted.token}</code>
          <CopyButton text={minted.token} />
        </p>
        <p class="hint">{t.mintedQr}</p>
        <QrCode text={minted.token} label={t.minted(minted.label)} />
      </div>
    </Dialog>
  );
}
