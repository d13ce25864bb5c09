/** What was made here and the server doesn't have yet: what it is, and Send now, Edit, Discard. */
import { useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import type { ReplyStream } from "../../state/chat/reply_stream.ts";
import type { StoredEntry } from "../../state/app/outbox_store.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** The changes of a chat that wait, after its messages. */
export function UnsentChanges({ chat }: { chat: OpenChat }) {
  const entries = chat.unsent.value;
  if (entries.length === 0) return null;
  return (
    <div class="column unsent-list">
      {entries.map((entry) => <UnsentEntry key={entry.key} entry={entry} chat={chat} />)}
    </div>
  );
}

/** One change that waits, or that the server refused. @param chat The open chat, if it belongs to it. */
export function UnsentEntry({ entry, chat }: { entry: StoredEntry; chat?: OpenChat }) {
  const { outbox } = useStore();
  const [isBusy, setBusy] = useState(false);
  const { key, kind, text, problem } = entry;
  const t = texts.unsent;
  const run = (work: Promise<void>) => {
    setBusy(true);
    void work.finally(() => setBusy(false));
  };
  const isClash = problem?.theirs !== undefined;
  const canEdit = chat !== undefined && (kind === "edit_message" || kind === "send") &&
    chat.load.value.kind === "ready";
  const edit = () => {
    void outbox.discard(key);
    const messageId = decodeURIComponent(entry.path.split("/").at(-1)!);
    if (kind === "send") chat!.draft.putBack(text ?? "");
    else chat!.actions.editText(messageId, text ?? "");
  };
  return (
    <div class="notice warning unsent" role="status">
      <Icon name="warning" />
      <div class="notice-body">
        <p class="notice-title">{isClash ? t.clash : problem ? t.refused : t.title}</p>
        {text === undefined && kind !== "queued" && <p>{t.kinds[kind]}</p>}
        {isClash
          ? (
            <div class="unsent-sides">
              <Side label={t.mine} text={text ?? ""} />
              <Side label={t.theirs} text={problem.theirs!} />
            </div>
          )
          : text !== undefined && <p class="unsent-text">{text === "" ? t.emptied : text}</p>}
        <p class="hint">{isClash ? t.choose : problem ? getReason(problem) : t.waits}</p>
        <div class="actions-row">
          {isClash
            ? <Button isBusy={isBusy} onClick={() => run(outbox.overwrite(entry))}>{texts.composer.keepMine}</Button>
            : <Button icon="send" isBusy={isBusy} onClick={() => run(outbox.send(key))}>{t.sendNow}</Button>}
          {canEdit && <Button kind="quiet" onClick={edit}>{texts.chat.edit}</Button>}
          <Button kind="quiet" onClick={() => void outbox.discard(key)}>
            {isClash ? texts.composer.takeTheirs : t.discard}
          </Button>
        </div>
      </div>
    </div>
  );
}

function getReason({ code, message }: NonNullable<StoredEntry["problem"]>): string {
  return code === "in_trash" ? texts.errors.inTrash : message;
}

function Side({ label, text }: { label: string; text: string }) {
  return (
    <figure>
      <figcaption>{label}</figcaption>
      <p class="unsent-text">{text === "" ? texts.unsent.emptied : text}</p>
    </figure>
  );
}

/** Under a message that this page keeps trying to send. The live region announces it. */
export function UnsentReply({ chat, run }: { chat: OpenChat; run: ReplyStream }) {
  const { outbox } = useStore();
  const t = texts.unsent;
  return (
    <div class="unsent">
      <p class="reply-state warning">
        {t.title}. {outbox.isAvailable.value && !chat.isTemporary ? t.waits : t.onlyHere}
      </p>
      <div class="actions-row">
        <Button icon="send" onClick={() => run.retryNow()}>{t.sendNow}</Button>
        {run.canEdit && <Button kind="quiet" onClick={() => chat.replies.withdraw(true)}>{texts.chat.edit}</Button>}
        <Button kind="quiet" onClick={() => chat.replies.withdraw(false)}>{t.discard}</Button>
      </div>
    </div>
  );
}
