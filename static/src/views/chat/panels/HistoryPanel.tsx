/** Revisions of the chat: when and why each was replaced, the difference, and Restore. */
import { useEffect, useState } from "preact/hooks";
import type { MessageDiff, Revision } from "../../../api/types.ts";
import { compareRevision, listRevisions, restoreRevision } from "../../../api/versions.ts";
import { Button, IconButton } from "../../../components/Button.tsx";
import { EmptyState, ErrorNote } from "../../../components/Notice.tsx";
import { TextDiff } from "../../../components/content/TextDiff.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { formatDateTime } from "../../../texts/format.ts";
import { useResource } from "../../hooks.tsx";

/** The list, reloaded when the conversation changes. */
export function HistoryPanel({ chat }: { chat: OpenChat }) {
  const { api } = useStore();
  const t = texts.chatOptions.history;
  const revision = chat.head.value?.revision;
  const { value, error, again } = useResource(() => listRevisions(api.client, chat.id));
  useEffect(() => void again(), [revision]);
  return (
    <div class="history-panel">
      <p class="muted">{t.intro}</p>
      {error && <ErrorNote title={t.failed} error={error} onRetry={again} />}
      {value === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      {value?.length === 0 && <EmptyState level={3} title={t.noneTitle} text={t.noneText} />}
      {value && value.length > 0 && (
        <ul class="history-list" aria-label={t.title}>
          {value.map((each) => <Entry key={`${each.n}/${revision}`} chat={chat} revision={each} />)}
        </ul>
      )}
    </div>
  );
}

function Entry({ chat, revision }: { chat: OpenChat; revision: Revision }) {
  const store = useStore();
  const [isOpen, setOpen] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const t = texts.chatOptions.history;
  const restore = async () => {
    setBusy(true);
    try {
      await restoreAndOfferUndo();
    } catch (thrown) {
      store.report(thrown);
    }
    setBusy(false);
  };
  const restoreAndOfferUndo = async () => {
    const { client } = store.api;
    await restoreRevision(client, chat.id, revision.n);
    await chat.reload();
    // Restoring stores the replaced version as the newest one.
    const [replaced] = await listRevisions(client, chat.id);
    store.offerUndo(
      { done: t.restored, undo: texts.undo },
      replaced && (async () => {
        try {
          await restoreRevision(client, chat.id, replaced.n);
        } catch (thrown) {
          store.report(thrown);
        }
      }),
    );
  };
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class="history-cause">{t.causes[revision.cause]}</span>
          <span class="muted">
            {formatDateTime(revision.created_at)} · {t.messages(revision.message_count)}
          </span>
        </summary>
        {isOpen && <Difference chat={chat} n={revision.n} />}
        <div class="actions-row">
          <Button
            icon="restore"
            isBusy={isBusy}
            isDisabled={chat.replies.isRunning.value}
            onClick={() => void restore()}
          >
            {t.restore}
          </Button>
        </div>
      </details>
    </li>
  );
}

function Difference({ chat, n }: { chat: OpenChat; n: number }) {
  const { api } = useStore();
  const t = texts.chatOptions.history;
  const { value, error, again } = useResource(() => compareRevision(api.client, chat.id, n));
  if (error) return <ErrorNote title={t.compareFailed} error={error} onRetry={again} />;
  if (value === undefined) return <p class="muted" role="status">{texts.loading}</p>;
  const { fields, messages, more } = value;
  if (fields.length === 0 && messages.length === 0) return <p class="muted">{t.same}</p>;
  return (
    <>
      {fields.length > 0 && <p>{t.fields(fields.map(getFieldName).join(", "))}</p>}
      {messages.length > 0 && (
        <ul class="history-messages">
          {messages.map((message) => <MessageChange key={message.id} chat={chat} message={message} />)}
        </ul>
      )}
      {more > 0 && <p class="muted">{t.more(more)}</p>}
    </>
  );
}

function MessageChange({ chat, message: { id, role, change, before = "", after = "" } }: {
  chat: OpenChat;
  message: MessageDiff;
}) {
  const t = texts.chatOptions.history;
  const who = role === "user" ? texts.chat.you : texts.chat.assistant;
  const isHere = change !== "removed";
  return (
    <li>
      <p class="history-who">
        <span class="muted">{who}, {t.changes[change]}</span>
        {isHere && <IconButton icon="search" label={t.show} onClick={() => void chat.show(id)} />}
      </p>
      {change === "changed" && before === after
        ? <p class="muted">{t.otherChange}</p>
        : <TextDiff before={before} after={after} />}
    </li>
  );
}

function getFieldName(field: string): string {
  const names: Record<string, string> = texts.chatOptions.history.fieldNames;
  return names[field] ?? field;
}
