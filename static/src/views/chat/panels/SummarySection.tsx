/** What is told of the messages that no longer fit, and whether the model writes it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../../components/Button.tsx";
import { TextField } from "../../../components/forms/Field.tsx";
import { Switch } from "../../../components/forms/Switch.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import type { Change } from "./OptionsPanel.tsx";

/** A summary that comes while this is open is shown, unless somebody writes at it. */
export function SummaryPart({ chat, onChange }: { chat: OpenChat; onChange: Change }) {
  const store = useStore();
  const { summary } = chat.options.value;
  const [text, setText] = useState(summary?.text ?? "");
  const box = useRef<HTMLElement>(null);
  const isMine = () => box.current?.contains(document.activeElement) ?? false;
  useEffect(() => {
    if (!isMine()) setText(summary?.text ?? "");
  }, [summary?.text]);
  const settings = store.preferences.settings.value;
  const t = texts.sending;
  const write = (typed: string) => {
    setText(typed);
    onChange({ summary: typed.trim() === "" ? null : { ...summary, text: typed } });
  };
  return (
    <section aria-labelledby="options-summary" ref={box}>
      <h3 id="options-summary">{t.summary}</h3>
      <TextField
        label={t.summary}
        hint={summary?.up_to_message_id === undefined ? t.summaryHint : `${t.summaryHint} ${t.summaryTold}`}
        rows={4}
        value={text}
        onInput={write}
      />
      {text !== "" && <Button kind="quiet" icon="trash" onClick={() => write("")}>{t.removeSummary}</Button>}
      {settings && (
        <Switch
          label={t.autoSummary}
          hint={t.autoSummaryHint}
          isOn={settings.auto_summary}
          onChange={(auto_summary) =>
            void store.preferences.change({ auto_summary }).catch((thrown) => store.report(thrown))}
        />
      )}
    </section>
  );
}
