/** The messages that wait for the end of a reply, above the composer: move, edit, remove, send now. */
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Button, IconButton } from "../../../components/Button.tsx";
import { Icon } from "../../../components/Icon.tsx";
import { Menu } from "../../../components/overlays/Menu.tsx";
import { describeQueued } from "../../../state/chat/message_queue.ts";
import type { OpenChat, WaitingMessage } from "../../../state/chat/open_chat.ts";
import { texts } from "../../../texts/texts.ts";

/** Most characters of a message in the names of its buttons and the title of its menu. */
const MAX_NAME_CHARS = 60;

/** The queue of a chat. @param area The composer's text, which gets the focus when a button of the list disappears. */
export function QueueRow({ chat, area }: { chat: OpenChat; area: RefObject<HTMLTextAreaElement | null> }) {
  const entries = chat.queued.value;
  const isRunning = chat.replies.isRunning.value;
  const t = texts.queue;
  const list = useRef<HTMLOListElement>(null);
  const moved = useRef<string | undefined>(undefined);
  useNews(chat, entries.length, isRunning);
  const order = entries.map(({ id }) => id).join();
  useLayoutEffect(() => {
    const at = entries.findIndex(({ id }) => id === moved.current);
    moved.current = undefined;
    // A row that is put elsewhere loses the focus.
    if (at < 0 || document.activeElement !== document.body) return;
    list.current?.children[at]?.querySelector<HTMLElement>("[aria-haspopup]")?.focus();
  }, [order]);
  if (entries.length === 0) return null;
  const edit = (id: string) => {
    area.current?.focus();
    void chat.replies.editQueued(id);
  };
  const remove = (id: string) => {
    area.current?.focus();
    void chat.replies.removeQueued(id);
  };
  // Those that only this browser has follow them, and can't be moved.
  const serverCount = entries.filter(({ item }) => item !== undefined).length;
  const move = async ({ id }: WaitingMessage, name: string, n: number, position: number) => {
    moved.current = id;
    await chat.replies.moveQueued(n, position);
    const now = chat.queued.peek();
    const at = now.findIndex((each) => each.id === id);
    if (at >= 0) chat.queueNews.value = t.place(name, at + 1, now.length);
  };
  return (
    <div class="queue">
      <p class="hint">{isRunning ? t.waits(entries.length) : t.held(entries.length)}</p>
      <ol ref={list} class="queue-list" aria-label={t.label}>
        {entries.map((waiting, at) => {
          const { text, attachmentCount } = describeQueued(waiting);
          const whole = text.trim() || t.attachments(attachmentCount);
          const name = shorten(whole);
          const n = waiting.item?.n;
          return (
            <li key={waiting.id} class="queue-chip">
              <span class="queue-text" dir="auto">{whole}</span>
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
              {n !== undefined && serverCount > 1 && (
                <Menu
                  label={t.move(name)}
                  items={[
                    ...(at === 0 ? [] : [{
                      label: t.up,
                      icon: "up" as const,
                      onSelect: () => void move(waiting, name, n, at - 1),
                    }]),
                    ...(at === serverCount - 1 ? [] : [{
                      label: t.down,
                      icon: "below" as const,
                      onSelect: () => void move(waiting, name, n, at + 1),
                    }]),
                  ]}
                />
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

function shorten(text: string): string {
  const chars = [...text.slice(0, 2 * MAX_NAME_CHARS + 1).replace(/\s+/g, " ")];
  return chars.length <= MAX_NAME_CHARS ? chars.join("") : `${chars.slice(0, MAX_NAME_CHARS).join("").trimEnd()}…`;
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
