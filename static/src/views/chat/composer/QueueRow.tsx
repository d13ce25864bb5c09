/** The messages that wait for the end of a reply, above the composer: edit, remove, send now. */
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button, IconButton } from "../../../components/Button.tsx";
import { Icon } from "../../../components/Icon.tsx";
import { describeQueued } from "../../../state/chat/message_queue.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { texts } from "../../../texts/texts.ts";

/** The queue of a chat. @param area The composer's text, which gets the focus when a button of the list disappears. */
export function QueueRow({ chat, area }: { chat: OpenChat; area: RefObject<HTMLTextAreaElement | null> }) {
  const entries = chat.queued.value;
  const isRunning = chat.replies.isRunning.value;
  const t = texts.queue;
  useNews(chat, entries.length, isRunning);
  if (entries.length === 0) return null;
  const edit = (id: string) => {
    area.current?.focus();
    void chat.replies.editQueued(id);
  };
  const remove = (id: string) => {
    area.current?.focus();
    void chat.replies.removeQueued(id);
  };
  return (
    <div class="queue">
      <p class="hint">{isRunning ? t.waits(entries.length) : t.held(entries.length)}</p>
      <ol class="queue-list" aria-label={t.label}>
        {entries.map((waiting) => {
          const { text, attachmentCount } = describeQueued(waiting);
          const name = text.trim() || t.attachments(attachmentCount);
          return (
            <li key={waiting.id} class="queue-chip">
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
                  onClick={() => void chat.replies.sendQueued(waiting)}
                >
                  {texts.unsent.sendNow}
                </Button>
              )}
              <IconButton icon="pencil" label={t.edit(name)} onClick={() => edit(waiting.id)} />
              <IconButton icon="close" label={t.remove(name)} onClick={() => remove(waiting.id)} />
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
