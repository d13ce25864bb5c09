/** One message: author, content, how it ended, actions. */
import { useMemo, useRef, useState } from "preact/hooks";
import type { ReplyNotice } from "../../../api/reply_frames.ts";
import type { Message } from "../../../api/types.ts";
import { ErrorBoundary } from "../../../components/ErrorBoundary.tsx";
import { lazy } from "../../../components/Lazy.tsx";
import { Markdown, PlainText } from "../../../components/content/Markdown.tsx";
import type { CitationResolver } from "../../../markdown/citations.ts";
import { EDGE_PX, memo, useNow } from "../../../components/hooks.ts";
import {
  findThinkingTokens,
  getContentText,
  isLocalImage,
  listImageUrls,
  listRecordingUrls,
  splitReasoning,
} from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { getRegexDisplay, type RegexDisplay } from "../../../state/chat/regex_display.ts";
import type { ReplyStream } from "../../../state/chat/reply_stream.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { formatClock, formatNumber, formatTime } from "../../../texts/format.ts";
import { UnsentReply } from "../Unsent.tsx";
import { MessageActionBar, SpeakButton } from "./MessageActionBar.tsx";
import { ReplyAuthor, UserAuthor } from "./MessageAuthor.tsx";
import { MessageImage } from "./MessageImage.tsx";
import { MessageSources } from "./MessageSources.tsx";
import { Reasoning } from "./Reasoning.tsx";
import { ReplyEnding, StalledNote, Unanswered } from "./ReplyEnding.tsx";

const ImageViewer = lazy(() => import("../../images/ImageViewer.tsx").then((file) => file.ImageViewer), {
  as: "overlay",
});
const DocumentReader = lazy(() => import("../../documents/DocumentReader.tsx").then((file) => file.DocumentReader), {
  as: "overlay",
});
const MessageDocuments = lazy(() => import("./MessageAttachments.tsx").then((file) => file.MessageDocuments), {
  as: "overlay",
});
const MessageRecordings = lazy(
  () => import("./MessageAttachments.tsx").then((file) => file.MessageRecordings),
  { as: "overlay" },
);
const ToolRounds = lazy(() => import("./ToolCallCard.tsx").then((file) => file.ToolRounds));
const UsedMemories = lazy(() => import("../../memory/UsedMemories.tsx").then((file) => file.UsedMemories), {
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
    {props.message.role === "assistant"
      ? <ReplyView {...props} />
      : props.message.role === "tool"
      ? <ToolMessageView {...props} />
      : <UserMessageView {...props} />}
  </ErrorBoundary>
));

/** A message whose view threw: its text, and the actions that don't depend on rendering it. */
function BrokenMessage({ chat, message, isLast }: MessageProps) {
  const isEdited = chat.actions.editing.value?.messageId === message.id;
  return (
    <article
      class={getClassName(message.role === "assistant" ? "reply" : "user-message", message)}
      data-message-id={message.id}
    >
      {isEdited
        ? <MessageEditForm chat={chat} canResend={false} />
        : <PlainText text={getContentText(message.content)} />}
      {!isEdited && <MessageActionBar chat={chat} message={message} isLast={isLast} />}
    </article>
  );
}

function UserMessageView({ chat, message, isLast }: MessageProps) {
  const isEdited = chat.actions.editing.value?.messageId === message.id;
  const display = useRegexDisplay(chat);
  const text = display.find(message, getContentText(message.content), "user_input");
  const isFormatted = useStore().preferences.settings.value?.user_markdown === true;
  const hasSpeech = useSpeech(chat, message);
  const hasBreaks = useBreaks(chat, message);
  const { tapped } = chat.actions;
  // Its versions stay in sight.
  const isOpened = tapped.value === message.id || (message.variant_count ?? 1) > 1;
  const onTap = (event: MouseEvent) => {
    const isText = getSelection()?.isCollapsed !== false &&
      !(event.target instanceof Element && event.target.closest("a, button, summary, img"));
    if (isText) tapped.value = tapped.peek() === message.id ? undefined : message.id;
  };
  return (
    <article
      class={isOpened ? `${getClassName("user-message", message)} is-opened` : getClassName("user-message", message)}
      data-message-id={message.id}
    >
      <UserAuthor message={message} />
      {message.hidden && <HiddenNote />}
      {isEdited ? <MessageEditForm chat={chat} canResend={message.role === "user"} /> : (
        <div
          class={isFormatted ? "user-text is-formatted" : "user-text"}
          title={formatTime(message.created_at, new Date())}
          onClick={onTap}
        >
          <Images chat={chat} message={message} />
          {isFormatted ? <Markdown text={text} isFinal hasSpeech={hasSpeech} hasBreaks={hasBreaks} /> : text}
        </div>
      )}
      {listRecordingUrls(message).length > 0 && <MessageRecordings message={message} />}
      {hasDocuments(message) && <MessageDocuments message={message} />}
      {!isEdited && <MessageActionBar chat={chat} message={message} isLast={isLast} />}
      <BranchLinks chat={chat} message={message} />
      {isLast && message.role === "user" && !isEdited && !chat.replies.isRunning.value && (
        <Unanswered onAsk={() => chat.replies.askAgain()} />
      )}
    </article>
  );
}

/** A tool result without its call. */
function ToolMessageView({ chat, message, isLast }: MessageProps) {
  return (
    <article class={getClassName("reply", message)} data-message-id={message.id}>
      <ToolRounds chat={chat} message={message} rounds={[message]} />
      <MessageActionBar chat={chat} message={message} isLast={isLast} />
    </article>
  );
}

function ReplyView({ chat, message, isLast }: MessageProps) {
  const running = chat.replies.run.value;
  const run = running?.messageId === message.id ? running : undefined;
  const lastCall = run?.calls.value.at(-1);
  const rounds = run ? undefined : chat.tools.value.rounds.get(message.id);
  const whole = run ? run.text.value.slice(lastCall?.textLength) : getContentText(message.content);
  const { reasoning: inText, text: written } = splitReasoning(whole);
  const separate = run ? run.reasoning.value.slice(lastCall?.reasoningLength) : message.reasoning ?? "";
  const thoughts = [separate, inText].filter((part) => part !== "").join("\n\n");
  const display = useRegexDisplay(chat);
  const text = run ? written : display.find(message, written, "ai_output");
  const reasoning = run ? thoughts : display.find(message, thoughts, "reasoning");
  const reasoningMs = run ? run.reasoningMs.value : chat.replies.measured.value.get(message.id)?.reasoningMs;
  const isEdited = chat.actions.editing.value?.messageId === message.id;
  const [cited, setCited] = useState<CitedDocument>();
  const citations = useMemo(() => resolveCitations(message, setCited), [message.documents]);
  const hasSpeech = useSpeech(chat, message);
  const hasBreaks = useBreaks(chat, message);
  const swipe = useSwipe((step) => void chat.actions.switchVariant(message.id, step));
  const canSwipe = (message.variant_count ?? 1) > 1 && !run && !isEdited;
  return (
    <article
      class={canSwipe ? `${getClassName("reply", message)} is-swiped` : getClassName("reply", message)}
      data-message-id={message.id}
      data-status={run ? "streaming" : message.status}
      {...(canSwipe ? swipe : {})}
    >
      <ReplyAuthor chat={chat} message={message} />
      {message.hidden && <HiddenNote />}
      {(lastCall ?? rounds) && <ToolRounds chat={chat} message={message} run={run} rounds={rounds} />}
      {reasoning !== "" && (
        <Reasoning
          text={reasoning}
          isThinking={run !== undefined && text === ""}
          durationMs={reasoningMs}
          tokens={run ? undefined : findThinkingTokens(message.usage)}
        />
      )}
      <Images chat={chat} message={message} />
      {isEdited ? <MessageEditForm chat={chat} canResend={false} /> : (
        <Markdown
          text={text}
          isFinal={run === undefined}
          citations={citations}
          hasSpeech={hasSpeech}
          hasBreaks={hasBreaks}
        />
      )}
      {!run && hasOwnCalls(message) && (
        <ToolRounds
          chat={chat}
          message={message}
          rounds={[
            { ...message, content: "", reasoning: undefined },
            ...chat.tools.value.results.get(message.id) ?? [],
          ]}
        />
      )}
      {!run && listRecordingUrls(message).length > 0 && <MessageRecordings message={message} />}
      {!run && (message.sources?.length ?? 0) > 0 && <MessageSources sources={message.sources!} />}
      {hasDocuments(message) && !run && <MessageDocuments message={message} />}
      {!run && (message.memories?.length ?? 0) > 0 && <UsedMemories message={message} />}
      {cited && <DocumentReader {...cited} onClose={() => setCited(undefined)} />}
      {run ? <ReplyProgress chat={chat} run={run} /> : <ReplyEnding chat={chat} message={message} isLast={isLast} />}
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

function useRegexDisplay(chat: OpenChat): RegexDisplay {
  return getRegexDisplay(chat, useStore().api.client);
}

/** Quotation marks mean speech only in chats with characters. */
function useSpeech(chat: OpenChat, message: Message): boolean {
  const { color_speech, dim_actions } = useStore().device.look.value;
  return isOfCharacter(chat, message) && (color_speech || dim_actions);
}

/** Cards and replies of characters are written for programs in which a line break is a line break. */
function useBreaks(chat: OpenChat, message: Message): boolean {
  const { settings } = useStore().preferences;
  return settings.value?.line_breaks !== "markdown" || isOfCharacter(chat, message);
}

function isOfCharacter(chat: OpenChat, message: Message): boolean {
  return Boolean(message.character_id) || (chat.options.value.participants?.length ?? 0) > 0;
}

interface CitedDocument {
  id: string;
  name: string;
  page: number;
}

/** References mean the documents that were sent with the reply. Without a name, there has to be just one. */
function resolveCitations(
  { documents }: Message,
  open: (cited: CitedDocument) => void,
): CitationResolver | undefined {
  const sent = documents?.flatMap(({ id, sent }) =>
    sent ? [{ id, name: sent.name ?? "", pages: sent.page_count ?? 0 }] : []
  );
  if (sent === undefined || sent.length === 0) return undefined;
  return (name, page) => {
    const meant = sent.length === 1 && name === undefined
      ? sent[0]
      : sent.find((one) => one.name.toLowerCase() === name?.toLowerCase());
    if (meant === undefined || page < 1 || page > meant.pages) return undefined;
    return { title: meant.name, open: () => open({ id: meant.id, name: meant.name, page }) };
  };
}

function hasOwnCalls({ tool_calls }: Message): boolean {
  return (tool_calls?.length ?? 0) > 0;
}

function hasDocuments({ documents }: Message): boolean {
  return (documents?.length ?? 0) > 0;
}

function getClassName(kind: "user-message" | "reply", message: Message): string {
  return message.hidden ? `message ${kind} is-hidden` : `message ${kind}`;
}

/** Shown as text, because a paler color alone is not accessible. */
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
                <MessageImage url={url} alt={texts.chat.image(index + 1)} />
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

/** Waiting with its clock, or a lost connection. The live region announces it. */
function ReplyProgress({ chat, run }: { chat: OpenChat; run: ReplyStream }) {
  const phase = run.phase.value;
  const calls = run.calls.value;
  const current = calls.find(({ call }) => call.state === "pending" || call.state === "running")?.call;
  // After tool results, the model processes them first.
  const isReading = calls.length > 0 && !current && run.text.value.length === calls.at(-1)!.textLength;
  const isWaiting = phase === "waiting" || phase === "sending";
  const now = useNow(isWaiting);
  if (phase === "unsent") return <UnsentReply chat={chat} run={run} />;
  if (phase === "reconnecting") return <p class="reply-state warning">{texts.chat.reconnecting}</p>;
  if (current) {
    // The card of a waiting call already says so.
    if (current.state === "pending") return null;
    return (
      <p class="reply-state">
        <span class="pulse" aria-hidden="true" />
        {texts.chat.callRunning(current.tool_name ?? current.name)}
      </p>
    );
  }
  if (isReading) {
    return (
      <p class="reply-state">
        <span class="pulse" aria-hidden="true" />
        {texts.chat.waitingPlain}
      </p>
    );
  }
  if (!isWaiting) return <StalledNote chat={chat} run={run} />;
  const notice = run.notice.value;
  return (
    <p class="reply-state">
      <span class="pulse" aria-hidden="true" />
      {texts.chat.waiting(formatClock(now - run.startedAtMs))}
      {notice && <span role="status">{getNoticeText(notice)}</span>}
    </p>
  );
}

function getNoticeText({ code, message, context_size }: ReplyNotice): string {
  if (code === "prompt_shortened") return texts.chat.promptShortened;
  if (code === "reattaching") return texts.chat.reattaching;
  if (code !== "model_reload" || context_size === undefined) return message;
  return texts.chat.reloading(context_size % 1024 === 0 ? `${context_size / 1024}k` : formatNumber(context_size));
}

/** A swipe has at least this length in px, and at most this slope. */
const MIN_PX = 64;
const MAX_SLOPE = 0.6;

/** Elements that scroll horizontally handle their own swipes. */
const SCROLLERS = "pre, .table-scroll, .formula, textarea";

/** Returns touch handlers; a swipe to the left goes forward, as with pages. */
function useSwipe(onSwipe: (step: 1 | -1) => void) {
  const start = useRef<{ x: number; y: number }>(undefined);
  return {
    onTouchStart(event: TouchEvent) {
      const touch = event.touches[0]!;
      // A swipe from the edge opens the drawer.
      const isFree = event.touches.length === 1 && touch.clientX > EDGE_PX &&
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
