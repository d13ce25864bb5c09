/** Recall: passages of other chats about a question, added to the next message by a tap. */
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../../api/client.ts";
import { memoryApi } from "../../../api/memories.ts";
import type { SearchHit } from "../../../api/types.ts";
import { Button } from "../../../components/Button.tsx";
import { TextField } from "../../../components/forms/Field.tsx";
import { ErrorNote } from "../../../components/Notice.tsx";
import { getContentText } from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { formatTime } from "../../../texts/format.ts";
import { texts } from "../../../texts/texts.ts";

/** Pause in typing before the search, in milliseconds. */
const SEARCH_AFTER_MS = 300;
/** Characters of a message that are quoted; a longer one is quoted around the passage. */
const MAX_QUOTE = 1_500;

/** Nothing is added to the prompt by itself. */
export function RecallPanel({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const [query, setQuery] = useState(chat.draft.text.peek().slice(0, 300));
  const [found, setFound] = useState<SearchHit[] | ApiError>();
  const [round, setRound] = useState(0);
  const t = texts.memory.recall;
  useEffect(() => {
    if (query.trim() === "") return setFound(undefined);
    const abort = new AbortController();
    const timer = setTimeout(() => {
      memoryApi(store.api.client).recall(query, chat.id, abort.signal).then(setFound, (thrown) => {
        if (!abort.signal.aborted) setFound(asApiError(thrown));
      });
    }, SEARCH_AFTER_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [query, round]);
  const add = async (hit: SearchHit) => {
    try {
      const path = `/api/conversations/${encodeURIComponent(hit.conversation_id)}/messages/` +
        encodeURIComponent(hit.message_id!);
      const message = await (await store.api.client.send("GET", path)).json();
      chat.draft.type(withQuote(chat.draft.text.peek(), hit, getContentText(message.content)));
      store.toasts.show(t.added);
    } catch (thrown) {
      store.report(thrown);
    }
  };
  return (
    <div class="recall-panel">
      <TextField label={t.label} hint={t.hint} type="search" value={query} onInput={setQuery} />
      {found !== undefined && !Array.isArray(found) && (
        <ErrorNote
          title={t.failed}
          error={found}
          onRetry={() => setRound(round + 1)}
        />
      )}
      {Array.isArray(found) && found.length === 0 && <p role="status">{t.none}</p>}
      {Array.isArray(found) && found.length > 0 && (
        <ul class="recall-list">
          {found.map((hit) => (
            <li key={`${hit.conversation_id} ${hit.message_id}`}>
              <p class="memory-text">{hit.snippet}</p>
              <p class="hint">
                <a href={`/c/${encodeURIComponent(hit.conversation_id)}#${encodeURIComponent(hit.message_id!)}`}>
                  {hit.title || texts.chat.untitled}
                </a>
                {" · "}
                {formatTime(hit.created_at, new Date())}
              </p>
              <Button icon="plus" onClick={() => void add(hit)}>{t.add}</Button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Puts a passage as a Markdown quote before a draft. */
function withQuote(draft: string, hit: SearchHit, text: string): string {
  const passage = text.length <= MAX_QUOTE ? text : excerptAround(text, hit.snippet);
  const head = texts.memory.recall.from(hit.title || texts.chat.untitled, formatTime(hit.created_at, new Date()));
  const quote = [head, ...passage.trim().split("\n")].map((line) => `> ${line}`).join("\n");
  return draft.trim() === "" ? `${quote}\n\n` : `${quote}\n\n${draft}`;
}

function excerptAround(text: string, snippet: string): string {
  const quote = snippet.replaceAll("…", "").trim().slice(0, 40);
  const at = Math.max(0, text.replace(/\s+/g, " ").indexOf(quote));
  const start = Math.max(0, Math.min(at - MAX_QUOTE / 3, text.length - MAX_QUOTE));
  return `${start > 0 ? "…" : ""}${text.slice(start, start + MAX_QUOTE)}…`;
}
