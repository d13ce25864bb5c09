/** One message: author, content, how it ended, actions. */
import { useRef, useState } from "preact/hooks";
import type { Message } from "../../../api/types.ts";
import { ErrorBoundary } from "../../../components/ErrorBoundary.tsx";
import { lazy } from "../../../components/Lazy.tsx";
import { Markdown, PlainText } from "../../../components/content/Markdown.tsx";
import { memo, useNow } from "../../../components/hooks.ts";
import { isLocalImage, listImageUrls, splitReasoning, textOf } from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import type { ReplyStream } from "../../../state/chat/reply_stream.ts";
import { texts } from "../../../texts/texts.ts";
import { formatClock, formatTime } from "../../../texts/format.ts";
import { MessageActionBar, SpeakButton } from "./MessageActionBar.tsx";
import { ReplyAuthor, UserAuthor } from "./MessageAuthor.tsx";
import { ReplyEnding, Unanswered } from "./ReplyEnding.tsx";

const ImageViewer = lazy(() => import("../../images/ImageViewer.tsx").then((file) => file.ImageViewer), {
  as: "overlay",
});
const MessageEditForm = lazy(() => import("./MessageEditForm.tsx").then((file) => file.MessageEditForm));

/** Props of a message. */
export interface MessageProps {
  chat: OpenChat;
  message: Message;
  isLast: boolean;
}

/** A user message in a soft block, or a reply. A message that throws doesn't affect the others. */
export const MessageView = memo((props: MessageProps) => (
  <ErrorBoundary resetKey={props.message} fallback={<BrokenMessage {...props} />}>
    {props.message.role === "assistant" ? <ReplyView {...props} /> : <UserMessageView {...props} />}
  </ErrorBoundary>
));

/** A message whose view threw: its text, and the actions that don't depend on rendering it. */
function BrokenMessage({ chat, message, isLast }: MessageProps) {
  const isEdited = chat.actions.editing.value?.messageId === message.id;
  return (
    <article
      class={getClassName(message.role === "assistant" ? "reply" : "turn", message)}
      data-message-id={message.id}
    >
      {isEdited ? <MessageEditForm chat={chat} canResend={false} /> : <PlainText text={textOf(message.content)} />}
      {!isEdited && <MessageActionBar chat={chat} message={message} isLast={isLast} />}
    </article>
  );
}

function UserMessageView({ chat, message, isLast }: MessageProps) {
  const isEdited = chat.actions.editing.value?.messageId === message.id;
  const text = textOf(message.content);
  return (
    <article class={getClassName("turn", message)} data-message-id={message.id}>
      <UserAuthor message={message} />
      {message.hidden && <HiddenNote />}
      {isEdited
        ? <MessageEditForm chat={chat} canResend={message.role === "user"} />
        : (
          <div class="turn-text" title={formatTime(message.created_at, new Date())}>
            <Images chat={chat} message={message} />
            {text}
          </div>
        )}
      {!isEdited && <MessageActionBar chat={chat} message={message} isLast={isLast} />}
      <BranchLinks chat={chat} message={message} />
      {isLast && message.role === "user" && !isEdited && !chat.replies.isRunning.value && (
        <Unanswered onAsk={() => chat.replies.askAgain()} />
      )}
    </article>
  );
}

function ReplyView({ chat, message, isLast }: MessageProps) {
  const running = chat.replies.run.value;
  const run = running?.messageId === message.id ? running : undefined;
  const { thoughts, said: text } = splitReasoning(run ? run.text.value : textOf(message.content));
  const apart = run ? run.reasoning.value : message.reasoning ?? "";
  const reasoning = [apart, thoughts].filter((part) => part !== "").join("\n\n");
  const thoughtMs = run ? run.thoughtMs.value : chat.replies.measured.value.get(message.id)?.thoughtMs;
  const isEdited = chat.actions.editing.value?.messageId === message.id;
  const swipe = useSwipe((step) => void chat.actions.switchVariant(message.id, step));
  return (
    <article
      class={getClassName("reply", message)}
      data-message-id={message.id}
      data-status={run ? "streaming" : message.status}
      {...(isLast && !run && !isEdited ? swipe : {})}
    >
      <ReplyAuthor chat={chat} message={message} />
      {message.hidden && <HiddenNote />}
      {reasoning !== "" && (
        <Reasoning text={reasoning} isThinking={run !== undefined && text === ""} durationMs={thoughtMs} />
      )}
      <Images chat={chat} message={message} />
      {isEdited
        ? <MessageEditForm chat={chat} canResend={false} />
        : <Markdown text={text} isFinal={run === undefined} />}
      {run ? <ReplyProgress run={run} /> : <ReplyEnding chat={chat} message={message} isLast={isLast} />}
      {run && text + reasoning !== "" && (
        // As high as the actions that replace it, so that nothing moves when the reply ends.
        <div class="message-actions">
          {run.phase.value === "writing" && <span class="writing" aria-hidden="true" />}
          {text !== "" && <SpeakButton chat={chat} message={message} />}
        </div>
      )}
      <BranchLinks chat={chat} message={message} />
      {!run && !isEdited && <MessageActionBar chat={chat} message={message} isLast={isLast} />}
    </article>
  );
}

function getClassName(kind: "turn" | "reply", message: Message): string {
  return message.hidden ? `message ${kind} is-hidden` : `message ${kind}`;
}

/** Said in text: a paler color alone is not accessible. */
function HiddenNote() {
  return <p class="hidden-note">{texts.chat.hiddenNote}</p>;
}

/** Our own or embedded images. Others would be requested from elsewhere, so they are links. */
function Images({ chat, message }: { chat: OpenChat; message: Message }) {
  const [zoomed, setZoomed] = useState<string>();
  const urls = listImageUrls(message);
  if (urls.length === 0) return null;
  return (
    <>
      <span class="message-images">
        {urls.map((url, index) =>
          isLocalImage(url)
            ? (
              <button
                key={index}
                type="button"
                aria-label={texts.chat.enlarge(index + 1)}
                onClick={() => setZoomed(url)}
              >
                <img src={url} alt={texts.chat.image(index + 1)} loading="lazy" decoding="async" />
              </button>
            )
            : (
              <a key={index} href={url} target="_blank" rel="noopener noreferrer nofollow">
                {texts.chat.image(index + 1)}
              </a>
            )
        )}
      </span>
      {zoomed && <ImageViewer chat={chat} messageId={message.id} url={zoomed} onClose={() => setZoomed(undefined)} />}
    </>
  );
}

/** Where other chats branch from this one. */
function BranchLinks({ chat, message }: { chat: OpenChat; message: Message }) {
  const forks = chat.actions.branches.value.forks.filter((fork) => fork.message_id === message.id);
  if (forks.length === 0) return null;
  return (
    <ul class="branch-links" aria-label={texts.chat.branches}>
      {forks.map((fork) => (
        <li key={fork.conversation_id}>
          <a href={`/c/${encodeURIComponent(fork.conversation_id)}`}>
            {texts.chat.branchTo(fork.title || texts.chat.untitled)}
          </a>
        </li>
      ))}
    </ul>
  );
}

/** Opens on demand. Plain text, since Markdown of unfinished reasoning helps nobody. */
function Reasoning(
  { text, isThinking, durationMs }: { text: string; isThinking: boolean; durationMs: number | undefined },
) {
  const title = isThinking
    ? texts.chat.thinking
    : durationMs === undefined
    ? texts.chat.thoughts
    : texts.chat.thoughtFor(Math.max(1, Math.round(durationMs / 1000)));
  return (
    <details class="thoughts">
      <summary>{title}</summary>
      <div class="thoughts-text">{text}</div>
    </details>
  );
}

/** Waiting with its clock, or a lost connection. The live region announces it. */
function ReplyProgress({ run }: { run: ReplyStream }) {
  const phase = run.phase.value;
  const isWaiting = phase === "waiting" || phase === "sending";
  const now = useNow(isWaiting);
  if (phase === "reconnecting") return <p class="reply-state warning">{texts.chat.reconnecting}</p>;
  if (!isWaiting) return null;
  return (
    <p class="reply-state">
      <span class="pulse" aria-hidden="true" />
      {texts.chat.waiting(formatClock(now - run.startedAtMs))}
    </p>
  );
}

/** A swipe has at least this length in px, and at most this slope. */
const MIN_PX = 64;
const MAX_SLOPE = 0.6;

/** Elements that scroll sideways keep their swipes. */
const SCROLLERS = "pre, .table-scroll, .formula, textarea";

/** Returns touch handlers; a swipe to the left goes forward, as with pages. */
function useSwipe(onSwipe: (step: 1 | -1) => void) {
  const start = useRef<{ x: number; y: number }>(undefined);
  return {
    onTouchStart(event: TouchEvent) {
      const touch = event.touches[0]!;
      const isFree = event.touches.length === 1 &&
        !(event.target instanceof Element && event.target.closest(SCROLLERS));
      start.current = isFree ? { x: touch.clientX, y: touch.clientY } : undefined;
    },
    onTouchEnd(event: TouchEvent) {
      const touch = event.changedTouches[0];
      const from = start.current;
      start.current = undefined;
      if (!from || !touch) return;
      const [dx, dy] = [touch.clientX - from.x, touch.clientY - from.y];
      const isSwipe = Math.abs(dx) >= MIN_PX && Math.abs(dy) <= Math.abs(dx) * MAX_SLOPE;
      // A drag that selected text is not a swipe.
      if (isSwipe && getSelection()?.isCollapsed !== false) onSwipe(dx < 0 ? 1 : -1);
    },
  };
}
