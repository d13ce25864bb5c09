/** The actions of a message: a few buttons, and a menu with those that have none. */
import { useRef, useState } from "preact/hooks";
import type { Message } from "../../../api/types.ts";
import { CopyButton, copyText, IconButton } from "../../../components/Button.tsx";
import { lazy } from "../../../components/Lazy.tsx";
import { useMedia } from "../../../components/hooks.ts";
import { Menu, type MenuItem } from "../../../components/overlays/Menu.tsx";
import { getContentText, splitReasoning } from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { type Store, useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { formatTime } from "../../../texts/format.ts";

const MessageDetails = lazy(() => import("./MessageDetails.tsx").then((file) => file.MessageDetails), {
  as: "overlay",
});

const CompareDialog = lazy(() => import("./CompareDialog.tsx").then((file) => file.CompareDialog), { as: "overlay" });

const RememberDialog = lazy(() => import("../../memory/NoteDialog.tsx").then((file) => file.RememberDialog), {
  as: "overlay",
});

/** Shortcut as printed on the keys. */
const CONTINUE_KEYS = "Alt C";

/** Props of the bar. */
interface BarProps {
  chat: OpenChat;
  message: Message;
  isLast: boolean;
}

/** The bar below a message. */
export function MessageActionBar({ chat, message, isLast }: BarProps) {
  const store = useStore();
  const isTouch = useMedia("(hover: none)");
  const [hasDetails, setDetails] = useState(false);
  const [isRemembering, setRemembering] = useState(false);
  const isIdle = !chat.replies.isRunning.value;
  const isReply = message.role === "assistant";
  const speech = useSpeaking(chat, message);
  const bar = useRef<HTMLDivElement>(null);
  const remove = async (isFollowing: boolean) => {
    const neighbour = findNeighbor(bar.current, isFollowing);
    const done = isFollowing ? texts.chat.removedFrom : texts.chat.removed;
    await store.deleteMessage(chat, message.id, isFollowing, { done, undo: texts.undo });
    // The message disappears together with the focused button.
    requestAnimationFrame(() => document.activeElement === document.body && neighbour?.focus());
  };
  const hasText = getContentText(message.content) !== "";
  // Those of one's own message appear on a tap, so they have the space.
  const hasButtons = !isTouch || !isReply;
  const items = listActions(store, chat, message, isLast, {
    hasButtons,
    onDetails: () => setDetails(true),
    onRemember: () => setRemembering(true),
    onRemove: (isFollowing) => void remove(isFollowing),
  });
  if (isTouch && hasText) {
    const label = speech.isHeard ? texts.chat.stopSpeaking : texts.chat.speak;
    items.splice(hasButtons ? 0 : 1, 0, { label, icon: "speaker", onSelect: speech.toggle });
  }
  const facts = [isReply ? message.model : undefined, formatTime(message.created_at, new Date())].filter(Boolean)
    .join(" · ");
  return (
    <div ref={bar} class="message-actions" role="group" aria-label={texts.chat.actions}>
      {hasButtons && <CopyButton text={getSpokenText(message)} />}
      {!isTouch && hasText && <SpeakButton chat={chat} message={message} />}
      {hasButtons && isIdle && (
        <IconButton
          icon="pencil"
          label={texts.chat.edit}
          onClick={() => chat.actions.startEdit(message.id)}
        />
      )}
      {isReply && isLast && isIdle && (
        <IconButton
          icon="redo"
          label={texts.chat.regenerate}
          onClick={() => chat.replies.regenerate(message.id)}
        />
      )}
      <VariantSwitcher chat={chat} message={message} />
      <Menu label={texts.chat.more} items={items} />
      <span class="message-facts" title={facts}>{facts}</span>
      {isRemembering && <RememberDialog chat={chat} message={message} onClose={() => setRemembering(false)} />}
      {hasDetails && <MessageDetails chat={chat} message={message} onClose={() => setDetails(false)} />}
    </div>
  );
}

function listActions(
  store: Store,
  chat: OpenChat,
  message: Message,
  isLast: boolean,
  { hasButtons, onDetails, onRemember, onRemove }: {
    /** Copy and Edit are buttons of the bar. */
    hasButtons: boolean;
    onDetails: () => void;
    onRemember: () => void;
    onRemove: (isFollowing: boolean) => void;
  },
): (MenuItem | "line")[] {
  const { id } = message;
  const isIdle = !chat.replies.isRunning.value;
  const isReply = message.role === "assistant";
  const keys = globalThis.matchMedia("(hover: none)").matches ? undefined : CONTINUE_KEYS;
  const items: (MenuItem | "line" | false)[] = [
    !hasButtons && {
      label: texts.chat.copy,
      icon: "copy",
      onSelect: () =>
        copyText(getSpokenText(message)).then(
          () => store.toasts.show(texts.chat.copied),
          () => store.toasts.show(texts.chat.copyFailed, { isError: true }),
        ),
    },
    !hasButtons && isIdle && { label: texts.chat.edit, icon: "pencil", onSelect: () => chat.actions.startEdit(id) },
    isIdle && isReply && isLast &&
    {
      label: texts.chat.tryOther,
      icon: "plug",
      onSelect: () => chat.picker.value = { kind: "version", messageId: id },
    },
    isIdle && isReply && isLast && getContentText(message.content) !== "" &&
    {
      label: texts.chat.continueReply,
      icon: "forward",
      hint: keys,
      onSelect: () => chat.replies.continueReply(id),
    },
    !chat.isTemporary &&
    { label: texts.chat.fork, icon: "branch", onSelect: () => void forkChat(store, chat, id) },
    isIdle && {
      label: message.hidden ? texts.chat.unhide : texts.chat.hide,
      icon: message.hidden ? "eye" : "eyeOff",
      onSelect: () => void chat.actions.setHidden(id, !message.hidden),
    },
    isIdle && !chat.isTemporary && {
      label: message.pinned ? texts.chat.unpinPrompt : texts.chat.pinPrompt,
      icon: "pin",
      onSelect: () => void chat.actions.setPinned(id, !message.pinned),
    },
    !chat.isTemporary && getContentText(message.content) !== "" &&
    { label: texts.chat.remember, icon: "bulb", onSelect: onRemember },
    { label: texts.chat.facts, icon: "info", onSelect: onDetails },
    isIdle && "line",
    isIdle && {
      label: texts.chat.remove,
      icon: "trash",
      isDanger: true,
      onSelect: () => onRemove(false),
    },
    isIdle && !isLast && {
      label: texts.chat.removeFrom,
      icon: "trash",
      isDanger: true,
      onSelect: () => onRemove(true),
    },
  ];
  return items.filter((item) => item !== false);
}

/** Returns the element to focus after a message is deleted: the actions of its neighbor, or the list. */
function findNeighbor(bar: HTMLElement | null, isFollowing: boolean): HTMLElement | null | undefined {
  const message = bar?.closest(".message");
  const [before, after] = [message?.previousElementSibling, isFollowing ? null : message?.nextElementSibling];
  const neighbor = [before, after].find((element) => element?.matches(".message"));
  return neighbor?.querySelector<HTMLElement>(".message-actions [aria-haspopup]") ??
    bar?.closest<HTMLElement>(".message-scroll");
}

/** Copies the visible text. */
function getSpokenText({ role, content }: Message): string {
  return role === "assistant" ? splitReasoning(getContentText(content)).text : getContentText(content);
}

/** Copies the chat up to a message and opens the copy. */
export async function forkChat(store: Store, chat: OpenChat, messageId: string): Promise<void> {
  const id = await chat.actions.fork(messageId);
  if (id === undefined) return;
  store.router.go(`/c/${encodeURIComponent(id)}`);
  store.toasts.show(texts.chat.branchCreated);
}

/** ‹ 2/3 › and Compare, if there is more than one. */
function VariantSwitcher({ chat, message }: { chat: OpenChat; message: Message }) {
  const count = message.variant_count ?? 1;
  const at = message.active_variant ?? 0;
  const [isComparing, setComparing] = useState(false);
  if (count < 2) return null;
  const isBusy = chat.replies.isRunning.value;
  const step = (by: 1 | -1) => void chat.actions.switchVariant(message.id, by);
  return (
    <>
      <span class="variants">
        <IconButton
          icon="left"
          label={texts.chat.previousVariant}
          isDisabled={isBusy || at <= 0}
          onClick={() => step(-1)}
        />
        <span role="status" aria-label={texts.chat.variant(at + 1, count)}>{at + 1}/{count}</span>
        <IconButton
          icon="right"
          label={texts.chat.nextVariant}
          isDisabled={isBusy || at + 1 >= count}
          onClick={() => step(1)}
        />
        {!chat.isTemporary && (
          <IconButton
            icon="compare"
            label={texts.chat.compare}
            onClick={() => setComparing(true)}
          />
        )}
      </span>
      {isComparing && <CompareDialog chat={chat} message={message} onClose={() => setComparing(false)} />}
    </>
  );
}

/** Returns the shared state of button and menu item: whether the message is being read, and the action. */
function useSpeaking(chat: OpenChat, { id }: Message) {
  const { speaking } = useStore();
  const isHeard = speaking.now.value?.key === id;
  return { isHeard, toggle: () => isHeard ? speaking.stop() : void speaking.readMessage(chat, id) };
}

/** Pressed while the message is being read. */
export function SpeakButton({ chat, message }: { chat: OpenChat; message: Message }) {
  const { isHeard, toggle } = useSpeaking(chat, message);
  return <IconButton icon="speaker" label={texts.chat.speak} isPressed={isHeard} onClick={toggle} />;
}
