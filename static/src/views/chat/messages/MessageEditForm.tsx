/** Edits a message in place. */
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { CancelButton, Drafted, useFormDraft } from "../../../components/forms/Drafted.tsx";
import { Button } from "../../../components/Button.tsx";
import { useDraftField } from "../../../components/forms/draft_field.ts";
import { Notice } from "../../../components/Notice.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { getRegexDisplay } from "../../../state/chat/regex_display.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { useAutoHeight } from "../../../components/hooks.ts";

/** Escape closes it and keeps what was typed for the next time; Ctrl or ⌘ with Enter saves, and sends again where offered. */
export function MessageEditForm({ chat, canResend }: { chat: OpenChat; canResend: boolean }) {
  const store = useStore();
  const area = useRef<HTMLTextAreaElement>(null);
  const editing = chat.actions.editing.value;
  const [text, setText] = useState(editing?.text ?? editing?.base ?? "");
  const [isBusy, setBusy] = useState(false);
  // A text that couldn't be sent is nobody's: what was typed since replaces it.
  const draft = useFormDraft(
    editing === undefined || chat.isTemporary ? undefined : `message:${chat.id}:${editing.messageId}`,
    { isAnyBase: editing?.text !== undefined },
  );
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
    await chat.actions.saveEdit(await runScripts());
    if (chat.actions.editing.peek() === undefined) draft.clear();
    setBusy(false);
  };
  const send = async () => {
    if (text.trim() === "" || isBusy) return;
    setBusy(true);
    draft.clear(); // The outbox has it from now on.
    const labels = { done: texts.chat.versionSent, undo: texts.undo };
    chat.actions.sendEdit(await runScripts(), (undo) => store.offerUndo(labels, undo));
    setBusy(false);
  };
  /** Regex scripts that run on edits change what is saved. */
  const runScripts = async () => {
    const message = editing && chat.pages.find(editing.messageId);
    const isChanged = message && text !== editing.base;
    return isChanged ? await getRegexDisplay(chat, store.api.client).edit(message, text) : text;
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
      <Drafted draft={draft}>
        <EditArea area={area} text={text} onInput={setText} onKeyDown={onKeyDown} />
      </Drafted>
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
            label={texts.chat.saveAndSendLabel}
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
        <CancelButton draft={draft} onCancel={() => chat.actions.cancelEdit()} />
      </div>
    </div>
  );
}

function EditArea({ area, text, onInput, onKeyDown }: {
  area: RefObject<HTMLTextAreaElement | null>;
  text: string;
  onInput: (text: string) => void;
  onKeyDown: (event: KeyboardEvent) => void;
}) {
  const keep = useDraftField("text", text, onInput);
  return (
    <textarea
      ref={area}
      rows={2}
      value={text}
      aria-label={texts.chat.editLabel}
      onInput={(event) => keep(event.currentTarget.value)}
      onKeyDown={onKeyDown}
    />
  );
}

/** Returns the focus to the control that opened the form, or to the actions of the message. */
function returnFocus(opener: Element | null, message: Element): void {
  const isShown = opener instanceof HTMLElement && opener !== document.body && opener.isConnected;
  const target = isShown ? opener : message.querySelector<HTMLElement>(".message-actions [aria-haspopup]");
  target?.focus({ preventScroll: true });
}
