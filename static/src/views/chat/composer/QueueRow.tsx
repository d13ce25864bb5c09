/** The messages that wait for the end of a reply, above the composer: edit, remove, send now. */
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button, IconButton } from "../../../components/Button.tsx";
import { Icon } from "../../../components/Icon.tsx";
import type { StoredEntry } from "../../../state/app/outbox_store.ts";
import { editQueued, holdShown, toQueuedMessage } from "../../../state/chat/message_queue.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";

/** The queue of a chat. @param area The composer's text, which gets the focus when a button of the list disappears. */
export function QueueRow({ chat, area }: { chat: OpenChat; area: RefObject<HTMLTextAreaElement | null> }) {
  const { outbox } = useStore();
  const entries = chat.queued.value;
  const isRunning = chat.replies.isRunning.value;
  const t = texts.queue;
  useEffect(() => holdShown(chat.id), [chat.id]);
  useNews(chat, entries.length, isRunning);
  if (entries.length === 0) return null;
  const edit = async (entry: StoredEntry) => {
    area.current?.focus();
    await editQueued(chat, outbox, entry);
  };
  const remove = (entry: StoredEntry) => {
    area.current?.focus();
    void outbox.discard(entry.key);
  };
  return (
    <div class="queue">
      <p class="hint">{isRunning ? t.waits(entries.length) : t.held(entries.length)}</p>
      <ol class="queue-list" aria-label={t.label}>
        {entries.map((entry) => {
          const { key, text, attachmentCount } = toQueuedMessage(entry);
          const name = text.trim() || t.attachments(attachmentCount);
          return (
            <li key={key} class="queue-chip">
              <span class="queue-text" dir="auto">{name}</span>
              {attachmentCount > 0 && text.trim() !== "" && (
                <span class="queue-count" title={t.attachments(attachmentCount)}>
                  <Icon name="clip" />
                  <span class="visually-hidden">{t.attachments(attachmentCount)}</span>
                </span>
              )}
              {!isRunning && (
                <Button
                  icon="send"
                  label={t.sendNowNamed(name)}
                  onClick={() => void chat.replies.sendQueued(key)}
                >
                  {texts.unsent.sendNow}
                </Button>
              )}
              <IconButton icon="pencil" label={t.edit(name)} onClick={() => void edit(entry)} />
              <IconButton icon="close" label={t.remove(name)} onClick={() => remove(entry)} />
            </li>
          );
        })}
      </ol>
    </div>
  );
}

/** Tells screen readers what changed. */
function useNews(chat: OpenChat, count: number, isRunning: boolean): void {
  const before = useRef({ count: 0, isRunning });
  useEffect(() => {
    const { count: counted, isRunning: ran } = before.current;
    before.current = { count, isRunning };
    const t = texts.queue;
    if (count > counted) chat.queueNews.value = isRunning ? t.waits(count) : t.held(count);
    else if (count < counted) chat.queueNews.value = t.left(count);
    else if (ran && !isRunning && count > 0) chat.queueNews.value = t.held(count);
  }, [count, isRunning]);
}
