/** Explains why a reply is incomplete, and offers actions. */
import type { ComponentChildren } from "preact";
import type { ErrorBody, Message } from "../../../api/types.ts";
import { Button } from "../../../components/Button.tsx";
import { useNow } from "../../../components/hooks.ts";
import { lazy } from "../../../components/Lazy.tsx";
import { ErrorDetails } from "../../../components/Notice.tsx";
import { Icon } from "../../../components/Icon.tsx";
import { describeEnding, getAttemptTitle } from "../../../state/chat/reply_ending.ts";
import { findRetryTime, getFailureTitle } from "../../../state/chat/reply_failure.ts";
import { getContentText } from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { findThinking } from "../../../state/connections/connection_state.ts";
import { useStore } from "../../../state/store.ts";
import { formatClock, formatNumber } from "../../../texts/format.ts";
import { texts } from "../../../texts/texts.ts";
import { useEffect, useState } from "preact/hooks";
import type { ReplyStream } from "../../../state/chat/reply_stream.ts";

const FailureRemedy = lazy(() => import("./FailureRemedy.tsx").then((file) => file.FailureRemedy), { as: "overlay" });

/** Props of all endings. */
interface EndingProps {
  chat: OpenChat;
  message: Message;
  isLast: boolean;
}

/** Nothing for a complete reply with content. */
export function ReplyEnding(props: EndingProps) {
  const { chat, message, isLast } = props;
  const hasText = getContentText(message.content) !== "";
  const { status, last_attempt: attempt } = message;
  if (attempt && status !== "streaming") {
    return (
      <Failure {...props} error={attempt.error} at={attempt.created_at} attempt={attempt}>
        {hasText && <p>{getAttemptTitle(attempt)}</p>}
      </Failure>
    );
  }
  if (status === "failed") return <Failure {...props} error={message.error} at={message.updated_at} />;
  if (status === "interrupted" || status === "stopped") {
    return (
      <div class="ending">
        <p>{describeEnding(message)}</p>
        {isLast && (
          <div class="actions-row">{hasText ? <ContinueButton {...props} /> : <RetryButton {...props} />}</div>
        )}
      </div>
    );
  }
  if (status === "complete" && message.finish_reason === "length") return <LengthNotice {...props} hasText={hasText} />;
  if (hasText && status === "complete" && message.finish_reason === "content_filter") {
    return (
      <div class="ending">
        <p>{describeEnding(message)}</p>
        {isLast && (
          <div class="actions-row">
            <RetryButton {...props} />
            <ChooseModelButton chat={chat} message={message} />
          </div>
        )}
      </div>
    );
  }
  if (!hasText && status !== "streaming" && !message.tool_calls?.length) {
    return (
      <div class="ending">
        <p>{describeEnding(message)}</p>
        {isLast && (
          <div class="actions-row">
            <RetryButton {...props} />
            <ChooseModelButton chat={chat} message={message} />
          </div>
        )}
      </div>
    );
  }
  return null;
}

/** Explains a failure and offers remedies. Retry and the choice of a model are always offered. */
function Failure(
  { error, at, attempt, children, ...props }: EndingProps & {
    error: ErrorBody | undefined;
    /** When it failed, by the server's clock. */
    at: string | undefined;
    /** The failed attempt to change a reply. Otherwise the reply itself failed. */
    attempt?: Message["last_attempt"];
    children?: ComponentChildren;
  },
) {
  const { chat, message, isLast } = props;
  const failedAtMs = chat.replies.measured.value.get(message.id)?.endedAtMs ?? (Date.parse(at ?? "") || 0);
  const hasText = getContentText(message.content) !== "";
  const isContinued = attempt?.action === "continue";
  return (
    <div class="ending danger">
      <p>
        <Icon name="warning" />
        <strong>{getFailureTitle(error)}</strong>
      </p>
      {children}
      {error && <p>{error.message}</p>}
      {error?.request_id && <ErrorDetails code={error.code} requestId={error.request_id} />}
      {isLast && error?.upstream && (
        <FailureRemedy
          key={failedAtMs}
          chat={chat}
          upstream={error.upstream}
          messageId={message.id}
          failedAtMs={failedAtMs}
          // A part of a reply is never replaced automatically. What the owner asked for is tried again: the text stays.
          canRetryAlone={!hasText || attempt !== undefined}
          onRetry={() => isContinued ? chat.replies.continueReply(message.id) : chat.replies.regenerate(message.id)}
        />
      )}
      {isLast && (
        <div class="actions-row">
          {isContinued && <ContinueButton {...props} />}
          <RetryButton {...props} untilMs={findRetryTime(error, failedAtMs)} />
          {hasText && !isContinued && message.status !== "complete" && <ContinueButton {...props} />}
          <ChooseModelButton chat={chat} message={message} />
        </div>
      )}
    </div>
  );
}

/** Counts down while the server wants no further request. */
function RetryButton({ chat, message, untilMs = 0 }: EndingProps & { untilMs?: number }) {
  const now = useNow(untilMs > Date.now());
  const leftMs = untilMs - now;
  return (
    <Button icon="redo" isDisabled={leftMs > 0} onClick={() => chat.replies.regenerate(message.id)}>
      {leftMs > 0 ? texts.chat.retryIn(formatClock(leftMs + 999)) : texts.chat.retry}
    </Button>
  );
}

function ContinueButton({ chat, message }: EndingProps) {
  return (
    <Button icon="forward" onClick={() => chat.replies.continueReply(message.id)}>{texts.chat.continueReply}</Button>
  );
}

function ChooseModelButton({ chat, message }: { chat: OpenChat; message: Message }) {
  return (
    <Button icon="plug" onClick={() => chat.picker.value = { kind: "retry", messageId: message.id }}>
      {texts.chat.chooseModel}
    </Button>
  );
}

/** Most tokens that are offered as a higher limit. */
const MAX_LIMIT = 1_000_000;

/** The reply reached its token limit, possibly before its first word. */
function LengthNotice({ hasText, ...props }: EndingProps & { hasText: boolean }) {
  const store = useStore();
  const { chat, message, isLast } = props;
  const { output_limit: limit } = message;
  const t = texts.chat;
  if (hasText) {
    return (
      <div class="ending">
        <p>{describeEnding(message)}</p>
        {isLast && (
          <div class="actions-row">
            <ContinueButton {...props} />
          </div>
        )}
      </div>
    );
  }
  const connection = store.connections.find(message.connection_id ?? chat.options.value.connection_id);
  const hasSwitch = findThinking(connection, message.model ?? undefined)?.hasOff ?? false;
  const retryWith = (name: string, value: unknown) =>
    void chat.changeParam(name, value).then(
      () => chat.replies.regenerate(message.id),
      (thrown) => store.report(thrown),
    );
  const higher = limit === undefined ? undefined : Math.min(MAX_LIMIT, limit * 2);
  return (
    <div class="ending">
      <p>{describeEnding(message)}</p>
      {isLast && (
        <div class="actions-row">
          {higher !== undefined && (
            <Button icon="redo" onClick={() => retryWith("max_tokens", higher)}>
              {t.raiseLimit(formatNumber(higher))}
            </Button>
          )}
          {hasSwitch && <Button onClick={() => retryWith("reasoning_effort", "none")}>{t.withoutThinking}</Button>}
          {higher === undefined && <RetryButton {...props} />}
        </div>
      )}
    </div>
  );
}

/** A user message without a reply. */
export function Unanswered({ onAsk }: { onAsk: () => void }) {
  return (
    <div class="ending">
      <p>{texts.chat.unanswered}</p>
      <div class="actions-row">
        <Button icon="redo" onClick={onAsk}>{texts.chat.ask}</Button>
      </div>
    </div>
  );
}

/** Delay without text after which the page says that it is waiting for the model. */
const STALLED_S = 20;

/**
 * Says that a running reply has had no new text for a while, with Stop and Retry. Shown once the reply has stalled.
 */
export function StalledNote({ chat, run }: { chat: OpenChat; run: ReplyStream }) {
  const length = run.text.value.length + run.reasoning.value.length;
  const [isStalled, setStalled] = useState(false);
  useEffect(() => {
    setStalled(false);
    const timer = setTimeout(() => setStalled(true), STALLED_S * 1000);
    return () => clearTimeout(timer);
  }, [length, run]);
  if (!isStalled) return null;
  const isStopping = run.isStopping.value;
  const retry = async () => {
    await chat.replies.stop();
    await chat.replies.replyEnded();
    chat.replies.regenerate(run.messageId);
  };
  return (
    <div class="reply-state reply-stalled">
      <span role="status">{texts.chat.stalled(STALLED_S)}</span>
      <Button icon="stop" isDisabled={isStopping} onClick={() => void chat.replies.stop()}>
        {texts.composer.stop}
      </Button>
      <Button icon="redo" isDisabled={isStopping} onClick={() => void retry()}>{texts.chat.retry}</Button>
    </div>
  );
}
