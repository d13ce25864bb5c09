/** What the prompt of a reply left out: earlier messages, sections of documents, lorebook entries, notes, examples. */
import { memoryApi } from "../../../api/memories.ts";
import type { Message } from "../../../api/types.ts";
import { getContentText } from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { formatNumber } from "../../../texts/format.ts";
import { texts } from "../../../texts/texts.ts";
import { useResource } from "../../hooks.tsx";
import { describeSent } from "../../documents/sent_document.ts";
import { formatDropReason, getPieceName } from "../panels/piece_names.ts";

/** Messages that are listed; those before them are counted. */
const LISTED = 100;

/** Characters of each that are shown. */
const FIRST_CHARS = 80;

/** Nothing if everything was sent. */
export function LeftOut({ chat, message }: { chat: OpenChat; message: Message }) {
  const { left_out: rest = {}, first_message_id: first } = message.context_use ?? {};
  const { pieces = [], lorebook_entries: entries = [], memories = [] } = rest;
  const documents = (message.documents ?? []).filter(({ sent }) => sent && describeSent(sent).isPart);
  const isEmpty = first === undefined && pieces.length + entries.length + memories.length + documents.length === 0;
  if (isEmpty) return null;
  const t = texts.chatOptions;
  return (
    <section aria-labelledby="left-out-of-prompt">
      <h3 class="left-out-title" id="left-out-of-prompt">{texts.messageDetails.notSent}</h3>
      <ul class="left-out">
        {first !== undefined && (
          <li>
            <EarlierMessages chat={chat} first={first} count={rest.messages} />
          </li>
        )}
        {documents.map(({ id, sent }) => (
          <li key={id}>
            {t.fired(t.pieces.documents, sent?.name || texts.documents.untitled)} ({describeSent(sent).text})
          </li>
        ))}
        {pieces.map(({ kind, title, tokens }, n) => (
          <li key={`piece ${n}`}>{title ?? getPieceName(kind)} ({texts.chat.tokens(tokens)})</li>
        ))}
        {entries.map((entry, n) => (
          <li key={`entry ${n}`}>{t.fired(entry.lorebook_name, entry.entry_name)} ({formatDropReason(entry)})</li>
        ))}
        {memories.length > 0 && <Notes ids={memories} />}
      </ul>
    </section>
  );
}

/** The messages by their numbers and first words. */
function EarlierMessages({ chat, first, count }: { chat: OpenChat; first: string; count: number | undefined }) {
  const { api } = useStore();
  const t = texts.messageDetails;
  const { value } = useResource(() => api.listMessages(chat.id, LISTED, first));
  const messages = value?.items.filter(({ role }) => role !== "tool") ?? [];
  const total = count ?? value?.items.length;
  if (total === undefined) return <>{t.notSentEarlier}</>;
  const places = new Map(value?.items.map(({ id }, n) => [id, total - (value.items.length - n) + 1]));
  return (
    <details>
      <summary>{t.messages(total)}</summary>
      {value && total > value.items.length && <p class="muted">{t.andEarlier(total - value.items.length)}</p>}
      <ul class="left-out-messages">
        {messages.map((each) => (
          <li key={each.id}>
            <a href={`/c/${encodeURIComponent(chat.id)}#${encodeURIComponent(each.id)}`}>
              {formatNumber(places.get(each.id)!)}
            </a>{" "}
            {getContentText(each.content).replaceAll(/\s+/g, " ").slice(0, FIRST_CHARS)}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Stored by their IDs only: a deleted note is nowhere. */
function Notes({ ids }: { ids: readonly string[] }) {
  const { client } = useStore().api;
  const { value } = useResource(() => memoryApi(client).list(), "memory");
  const { missed, pieces } = texts.chatOptions;
  const known = ids.flatMap((id) => value?.find((note) => note.id === id) ?? []);
  return <>{known.map(({ id, text }) => <li key={id}>{pieces.memory}: {text} ({missed.budget})</li>)}</>;
}
