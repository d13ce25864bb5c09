/** One message: who speaks, what they say, how it ended, what can be done with it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { useMedia } from "../../components/hooks.ts";
import { memo } from "../../components/memo.ts";
import { CopyButton } from "../../components/CopyButton.tsx";
import { IconButton } from "../../components/Button.tsx";
import { Markdown } from "../../components/Markdown.tsx";
import type { Message } from "../../api/types.ts";
import { textOf } from "../../state/message_text.ts";
import type { OpenChat } from "../../state/open_chat.ts";
import { useStore } from "../../state/store.ts";
import { figure, moment } from "../../texts/times.ts";
import { texts } from "../../texts/texts.ts";
import { ReplyEnding, Unanswered } from "./ReplyEnding.tsx";
import { ReplyProgress } from "./ReplyProgress.tsx";
import { Thoughts } from "./Thoughts.tsx";

/** What a message's view takes. */
export interface MessageProps {
  chat: OpenChat;
  message: Message;
  isLast: boolean;
}

/** A turn of the user stands in a soft block, a reply stands free. */
export const MessageView = memo((props: MessageProps) =>
  props.message.role === "assistant" ? <ReplyView {...props} /> : <TurnView {...props} />
);

function TurnView({ chat, message, isLast }: MessageProps) {
  return (
    <article class="message turn" data-message-id={message.id}>
      <h2 class="visually-hidden">{message.role === "user" ? texts.chat.you : message.role}</h2>
      <div class="turn-text" title={moment(message.created_at, new Date())}>{textOf(message.content)}</div>
      <Actions chat={chat} message={message} isLast={isLast} />
      {isLast && !chat.isRunning.value && <Unanswered onAsk={() => chat.askAgain()} />}
    </article>
  );
}

function ReplyView({ chat, message, isLast }: MessageProps) {
  const running = chat.run.value;
  const run = running?.messageId === message.id ? running : undefined;
  const text = run ? run.text.value : textOf(message.content);
  const reasoning = run ? run.reasoning.value : message.reasoning ?? "";
  return (
    <article class="message reply" data-message-id={message.id} data-status={run ? "streaming" : message.status}>
      <h2 class="speaker">{texts.chat.assistant}</h2>
      {reasoning !== "" && (
        <Thoughts text={reasoning} isThinking={run !== undefined && text === ""} durationMs={run?.thoughtMs.value} />
      )}
      <Markdown text={text} isFinal={run === undefined} />
      {run ? <ReplyProgress run={run} /> : <ReplyEnding chat={chat} message={message} isLast={isLast} />}
      {!run && <Actions chat={chat} message={message} isLast={isLast} />}
    </article>
  );
}

function Actions({ chat, message, isLast }: MessageProps) {
  const store = useStore();
  const isIdle = !chat.isRunning.value;
  const isReply = message.role === "assistant";
  const isTouch = useMedia("(hover: none)");
  const [isOpen, setOpen] = useState(false);
  const group = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isOpen) group.current?.querySelector("button")?.focus();
  }, [isOpen]);
  if (isTouch && !isOpen && !(isReply && isLast)) {
    return (
      <div class="message-actions">
        <IconButton icon="more" label={texts.chat.more} isExpanded={false} onClick={() => setOpen(true)} />
      </div>
    );
  }
  return (
    <div class="message-actions" ref={group} role="group" aria-label={texts.chat.actions}>
      <CopyButton text={textOf(message.content)} />
      {isReply && isLast && isIdle && (
        <IconButton
          icon="redo"
          label={texts.chat.regenerate}
          onClick={() => chat.regenerate(message.id)}
        />
      )}
      {isIdle && (
        <IconButton
          icon="trash"
          label={texts.chat.remove}
          onClick={() => store.deleteMessage(chat, message.id, { done: texts.chat.removed, undo: texts.undo })}
        />
      )}
      <span class="message-facts">{factsOf(message)}</span>
    </div>
  );
}

function factsOf(message: Message): string {
  const tokens = message.usage?.completion_tokens;
  return [
    message.role === "assistant" ? message.model : undefined,
    tokens === undefined ? undefined : texts.chat.tokens(tokens).replace(String(tokens), figure(tokens)),
    moment(message.created_at, new Date()),
  ].filter(Boolean).join(" · ");
}
