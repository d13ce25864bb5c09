/** Edits a message in place. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../../components/Button.tsx";
import { Notice } from "../../../components/Notice.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { useAutoHeight } from "../../../components/hooks.ts";

/** Escape cancels; Ctrl or ⌘ with Enter saves, and sends again where offered. */
export function MessageEditForm({ chat, canResend }: { chat: OpenChat; canResend: boolean }) {
  const store = useStore();
  const area = useRef<HTMLTextAreaElement>(null);
  const editing = chat.actions.editing.value;
  const [text, setText] = useState(editing?.text ?? editing?.base ?? "");
  const [isBusy, setBusy] = useState(false);
  useAutoHeight(area, text);
  useLayoutEffect(() => {
    const opener = document.activeElement;
    area.current?.focus({ preventScroll: true });
    area.current?.setSelectionRange(text.length, text.length);
    area.current?.scrollIntoView({ block: "nearest" });
    const message = area.current?.closest(".message");
    return () => {
      const focused = document.activeElement;
      // A busy button has already lost the focus.
      const hasFocus = focused === document.body || message?.contains(focused);
      if (message && hasFocus) requestAnimationFrame(() => returnFocus(opener, message));
    };
  }, []);
  const save = async () => {
    if (text.trim() === "" || isBusy) return;
    setBusy(true);
    await chat.actions.saveEdit(text);
    setBusy(false);
  };
  const send = () => {
    if (text.trim() === "" || isBusy) return;
    const labels = { done: texts.chat.versionSent, undo: texts.undo };
    chat.actions.sendEdit(text, (undo) => store.offerUndo(labels, undo));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Escape") chat.actions.cancelEdit();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void (canResend ? send() : save());
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="edit-form">
      <textarea
        ref={area}
        rows={2}
        value={text}
        aria-label={texts.chat.editLabel}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {editing?.theirs !== undefined && (
        <Notice
          tone="warning"
          title={texts.chat.editClash}
          actions={<Button onClick={() => setText(editing.theirs ?? "")}>{texts.composer.takeTheirs}</Button>}
        >
          {editing.theirs}
        </Notice>
      )}
      <div class="actions-row">
        {canResend && (
          <Button
            kind="primary"
            isBusy={isBusy}
            isDisabled={chat.replies.isRunning.value}
            onClick={send}
          >
            {texts.chat.saveAndSend}
          </Button>
        )}
        <Button kind={canResend ? "plain" : "primary"} isBusy={isBusy} onClick={save}>
          {texts.save}
        </Button>
        <Button kind="quiet" onClick={() => chat.actions.cancelEdit()}>{texts.cancel}</Button>
      </div>
    </div>
  );
}

/** Returns the focus to the control that opened the form, or to the actions of the message. */
function returnFocus(opener: Element | null, message: Element): void {
  const isShown = opener instanceof HTMLElement && opener !== document.body && opener.isConnected;
  const target = isShown ? opener : message.querySelector<HTMLElement>(".message-actions [aria-haspopup]");
  target?.focus({ preventScroll: true });
}
