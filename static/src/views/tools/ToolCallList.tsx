/** Every call that a model made: tool, arguments, who decided, how long it took. Newest first, page by page. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { type ListedToolCall, toolsApi } from "../../api/tools.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { useStore } from "../../state/store.ts";
import { formatNumber, formatTime } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";

/** Loads its pages itself. */
export function ToolCallList() {
  const store = useStore();
  const t = texts.toolCalls;
  const [calls, setCalls] = useState<ListedToolCall[]>();
  const [cursor, setCursor] = useState<string>();
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const isGone = useRef(false);
  const load = async (from?: string) => {
    setBusy(true);
    setError(undefined);
    try {
      const page = await toolsApi(store.api.client).listCalls(from);
      if (isGone.current) return;
      setCalls((before) => from === undefined ? page.items : [...before ?? [], ...page.items]);
      setCursor(page.next_cursor ?? undefined);
    } catch (thrown) {
      if (!isGone.current) setError(asApiError(thrown));
    }
    setBusy(false);
  };
  useEffect(() => {
    void load();
    return () => void (isGone.current = true);
  }, []);
  return (
    <section>
      <h2>{t.list}</h2>
      <p class="muted">{t.listHint}</p>
      {error && <ErrorNote title={t.listFailed} error={error} onRetry={() => void load(cursor)} />}
      {calls === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      {calls?.length === 0 && (
        <EmptyState level={3} title={t.none}>
          <LinkButton href="/settings/tools" kind="primary">{texts.toolsPage.title}</LinkButton>
        </EmptyState>
      )}
      {calls && calls.length > 0 && (
        <List label={t.list}>
          {calls.map((listed) => <CallRow key={`${listed.message_id} ${listed.call.id}`} listed={listed} />)}
        </List>
      )}
      {cursor !== undefined && (
        <div class="actions-row">
          <Button kind="quiet" isBusy={isBusy} onClick={() => void load(cursor)}>{t.more}</Button>
        </div>
      )}
    </section>
  );
}

function CallRow({ listed }: { listed: ListedToolCall }) {
  const t = texts.toolCalls;
  const { call, conversation_id, message_id, decided_at: decidedAt, duration_ms: durationMs } = listed;
  const who = listed.decided_by ?? call.decided_by;
  const facts = [
    call.server_name,
    call.state && t.states[call.state],
    who && t.by(Object.hasOwn(t.deciders, who) ? t.deciders[who as keyof typeof t.deciders] : who),
    decidedAt && formatTime(decidedAt, new Date()),
    typeof durationMs === "number" && t.seconds(formatNumber(Math.max(0.1, Math.round(durationMs / 100) / 10))),
  ];
  return (
    <ListRow
      title={call.tool_name ?? call.name}
      text={
        <>
          {facts.filter(Boolean).join(" · ")}
          <code class="call-arguments">{call.arguments}</code>
        </>
      }
      href={`/c/${encodeURIComponent(conversation_id)}#${encodeURIComponent(message_id)}`}
    />
  );
}
