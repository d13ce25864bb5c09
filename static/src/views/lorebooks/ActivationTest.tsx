/** Tests which entries of the edited lorebook would be activated by a text, a chat, or both. */
import type { ActivatedEntry, LorebookTest, MissedEntry } from "../../api/types.ts";
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { Button } from "../../components/Button.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { texts } from "../../texts/texts.ts";
import { ChatSelect } from "../documents/ChatPicker.tsx";
import type { LorebookSectionProps } from "./LorebooksPage.tsx";

/** What is scanned, and the result. */
export function ActivationTest({ editor, api }: LorebookSectionProps) {
  const [text, setText] = useState("");
  const [chatId, setChatId] = useState("");
  const [found, setFound] = useState<LorebookTest>();
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const t = texts.lorebooks.trial;
  const run = async (event: Event) => {
    event.preventDefault();
    const abort = running.current = new AbortController();
    const { name, book } = editor.data.peek()!;
    setBusy(true);
    setError(undefined);
    try {
      const scanned = { ...(chatId !== "" && { conversation_id: chatId }), ...(text !== "" && { text }) };
      setFound(await api.try({ book: { ...book, name }, ...scanned }, abort.signal));
    } catch (thrown) {
      if (abort.signal.aborted) return;
      setFound(undefined);
      setError(asApiError(thrown));
    }
    setBusy(false);
  };
  return (
    <>
      <form class="form" onSubmit={run}>
        <p class="hint">{t.intro}</p>
        <TextField label={t.text} rows={5} value={text} onInput={setText} />
        <ChatSelect label={t.chat} none={t.noChat} value={chatId} onChange={setChatId} />
        <div class="actions-row">
          <Button type="submit" kind="primary" isBusy={isBusy} isDisabled={text === "" && chatId === ""}>
            {t.run}
          </Button>
        </div>
      </form>
      {error && <ErrorNote title={t.failed} error={error} />}
      {found && <Found found={found} />}
    </>
  );
}

function Found({ found: { entries, dropped, tokens } }: { found: LorebookTest }) {
  const t = texts.lorebooks.trial;
  const summary = entries.length === 0 ? t.nothing : [t.fired(entries.length), t.tokens(tokens)].join(" · ");
  return (
    <div class="trial-found">
      <p role="status" class="trial-summary">{summary}</p>
      {entries.length > 0 && (
        <List label={t.fired(entries.length)}>
          {entries.map((entry) => <ListRow key={entry.entry_id} title={entry.entry_name} text={formatReason(entry)} />)}
        </List>
      )}
      {dropped.length > 0 && (
        <>
          <h3>{t.dropped}</h3>
          <List label={t.dropped}>
            {dropped.map((entry, index) => (
              <ListRow key={index} title={entry.entry_name} text={formatMissReason(entry)} />
            ))}
          </List>
        </>
      )}
    </div>
  );
}

function formatReason({ reason, position, depth, tokens, probability }: ActivatedEntry): string {
  const t = texts.lorebooks.trial;
  const places = { ...texts.editor.entry.positions, ...texts.lorebooks.entry.places };
  const place = places[position as keyof typeof places] ?? position;
  return [
    reason.kind === "key" && reason.key !== undefined
      ? t.byKey(reason.key)
      : [t.reasons[reason.kind], reason.key && t.byKey(reason.key)].filter(Boolean).join(", "),
    depth === undefined ? place : `${place} (${texts.presets.order.depth(depth)})`,
    t.tokens(tokens),
    probability !== undefined && probability < 100 && t.percent(probability),
  ].filter(Boolean).join(" · ");
}

function formatMissReason({ reason, key }: MissedEntry): string {
  const t = texts.lorebooks.trial;
  const words = t.misses[reason as keyof typeof t.misses] ?? reason;
  return [words, key !== undefined && t.byKey(key)].filter(Boolean).join(" · ");
}
