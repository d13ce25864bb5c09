/** Asks whether the regex scripts of a card or preset may run, before they run for the first time. */
import { useState } from "preact/hooks";
import type { AttachedRegexScripts } from "../../../api/types.ts";
import { Button } from "../../../components/Button.tsx";
import { VisibleText } from "../../../components/content/VisibleText.tsx";
import { Notice } from "../../../components/Notice.tsx";
import { Dialog } from "../../../components/overlays/Dialog.tsx";
import type { RegexDisplay } from "../../../state/chat/regex_display.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";

/** One question at a time. */
export function ScriptConsent({ display }: { display: RegexDisplay }) {
  const store = useStore();
  const t = texts.regexScripts;
  const [isOpen, setOpen] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const asked = display.undecided.value[0];
  if (asked === undefined) return null;
  const decide = async (isAccepted: boolean) => {
    setBusy(true);
    await display.decide(asked.hash, isAccepted).catch((thrown) => store.report(thrown));
    setBusy(false);
    setOpen(false);
  };
  const answers = (
    <>
      <Button kind="primary" isBusy={isBusy} onClick={() => void decide(true)}>{t.accept}</Button>
      <Button isBusy={isBusy} onClick={() => void decide(false)}>{t.decline}</Button>
    </>
  );
  return (
    <div class="column script-consent">
      <Notice
        tone="info"
        title={t.ask[asked.kind](asked.name, asked.scripts.length)}
        actions={
          <>
            {answers}
            <Button kind="quiet" onClick={() => setOpen(true)}>{t.show}</Button>
          </>
        }
      >
        {t.askText}
      </Notice>
      {isOpen && (
        <Dialog title={t.title} onClose={() => setOpen(false)} actions={answers}>
          <ScriptList scripts={asked.scripts} />
        </Dialog>
      )}
    </div>
  );
}

function ScriptList({ scripts }: Pick<AttachedRegexScripts, "scripts">) {
  const t = texts.regexScripts;
  return (
    <ul class="script-list">
      {scripts.map(({ name, find, replace, enabled }, n) => (
        <li key={n}>
          <strong>
            <VisibleText text={name || t.unnamed} />
          </strong>
          {!enabled && ` (${t.off})`}
          <dl>
            <dt>{t.find}</dt>
            <dd>
              <code>
                <VisibleText text={find} />
              </code>
            </dd>
            <dt>{t.replace}</dt>
            <dd>
              {replace === "" ? <em>{t.nothing}</em> : (
                <code>
                  <VisibleText text={replace} />
                </code>
              )}
            </dd>
          </dl>
        </li>
      ))}
    </ul>
  );
}
