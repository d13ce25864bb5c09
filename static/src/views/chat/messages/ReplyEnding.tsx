/** How a reply ended, unless it is complete, and what to do about it. */
import type { Message } from "../../../api/types.ts";
import { Button, LinkButton } from "../../../components/Button.tsx";
import { ErrorDetails } from "../../../components/Notice.tsx";
import { Icon } from "../../../components/Icon.tsx";
import { textOf } from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { texts } from "../../../texts/texts.ts";

/** Nothing for a complete reply with content. */
export function ReplyEnding({ chat, message, isLast }: { chat: OpenChat; message: Message; isLast: boolean }) {
  const hasText = textOf(message.content) !== "";
  const { error, status } = message;
  const retry = isLast && (
    <Button icon="redo" onClick={() => chat.replies.regenerate(message.id)}>{texts.chat.retry}</Button>
  );
  const more = isLast && hasText && (
    <Button icon="forward" onClick={() => chat.replies.continueReply(message.id)}>
      {texts.chat.continueReply}
    </Button>
  );
  const attempt = message.last_attempt;
  if (status === "complete" && attempt) {
    return (
      <div class="ending danger">
        <p>
          <Icon name="warning" />
          <strong>{attempt.status === "interrupted" ? texts.chat.attemptInterrupted : texts.chat.attemptFailed}</strong>
        </p>
        {attempt.error && <p>{attempt.error.message}</p>}
        {isLast && <div class="actions-row">{retry}</div>}
      </div>
    );
  }
  if (status === "failed") {
    return (
      <div class="ending danger">
        <p>
          <Icon name="warning" />
          <strong>{texts.chat.failed}</strong>
        </p>
        {error && <p>{error.message}</p>}
        {error?.request_id && <ErrorDetails code={error.code} requestId={error.request_id} />}
        {isLast && (
          <div class="actions-row">
            {retry}
            {more}
            <LinkButton href="/settings/connections" icon="plug">{texts.chat.switchConnection}</LinkButton>
          </div>
        )}
      </div>
    );
  }
  if (status === "interrupted" || status === "stopped") {
    return (
      <div class="ending">
        <p>{status === "stopped" ? texts.chat.stopped : texts.chat.interrupted}</p>
        {isLast && <div class="actions-row">{more}{!hasText && retry}</div>}
      </div>
    );
  }
  if (!hasText && status !== "streaming") {
    return (
      <div class="ending">
        <p>{texts.chat.empty}</p>
        {isLast && <div class="actions-row">{retry}</div>}
      </div>
    );
  }
  return null;
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
