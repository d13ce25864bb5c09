/** Details of a message. */
import type { Message } from "../../../api/types.ts";
import { Sheet } from "../../../components/overlays/Dialog.tsx";
import { findThinkingTokens } from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { formatDateTime, formatNumber } from "../../../texts/format.ts";
import { texts } from "../../../texts/texts.ts";
import { LeftOut } from "./LeftOut.tsx";

/** Model, connection, tokens, speed and times, and what the server refused. */
export function MessageDetails(
  { chat, message, onClose }: { chat: OpenChat; message: Message; onClose: () => void },
) {
  const { connections } = useStore();
  const speed = tokensPerSecond(chat, message);
  const { usage, connection_id, output_limit, left_out = [], context_use: use } = message;
  const firstWordMs = chat.replies.measured.peek().get(message.id)?.firstWordMs ??
    readNumber(message.timings?.prompt_ms);
  const thinkingTokens = findThinkingTokens(usage);
  const format = (tokens: number | undefined) => tokens === undefined ? undefined : formatNumber(tokens);
  const t = texts.messageDetails;
  const rows: [string, string | undefined][] = [
    [t.model, message.model ?? undefined],
    [t.connection, connections.items.value.find(({ id }) => id === connection_id)?.name],
    [t.written, formatDateTime(message.created_at)],
    // A reply also changes when it ends.
    [
      message.role === "assistant" ? t.lastChanged : t.changed,
      message.updated_at === message.created_at ? undefined : formatDateTime(message.updated_at),
    ],
    [t.promptTokens, format(usage?.prompt_tokens)],
    [t.cachedTokens, format(findCachedTokens(message))],
    [t.replyTokens, format(usage?.completion_tokens)],
    [t.thinkingTokens, format(thinkingTokens)],
    [t.limit, format(output_limit)],
    [t.context, use && t.contextFigures(formatNumber(use.tokens), formatNumber(use.size))],
    [t.finishReason, message.finish_reason],
    [t.continued, message.continued_after_restart && t.afterRestart],
    [t.firstWord, firstWordMs === undefined ? undefined : t.seconds(formatNumber(Math.round(firstWordMs / 100) / 10))],
    [t.speed, speed === undefined ? undefined : t.perSecond(formatNumber(Math.round(speed * 10) / 10))],
    [t.id, message.id],
  ];
  return (
    <Sheet title={texts.chat.facts} onClose={onClose}>
      <dl class="facts">
        {rows.filter(([, value]) => value).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <LeftOut chat={chat} message={message} />
      <LeftOutFields title={t.leftOut} fields={left_out.filter(({ status }) => status !== 0)} />
      <LeftOutFields title={t.notOffered} fields={left_out.filter(({ status }) => status === 0)} />
    </Sheet>
  );
}

/** Parts that weren't sent, and why. Status 0 means that the model server didn't respond. */
function LeftOutFields({ title, fields }: { title: string; fields: NonNullable<Message["left_out"]> }) {
  if (fields.length === 0) return null;
  return (
    <section aria-label={title}>
      <h3 class="left-out-title">{title}</h3>
      <ul class="left-out">
        {fields.map(({ field, status, reason }) => (
          <li key={field}>
            <code>{field}</code>
            {status === 0 ? "" : ` (${status})`}: {reason}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Returns the tokens of the prompt that the server had from an earlier call, if it says. */
function findCachedTokens({ usage, timings }: Message): number | undefined {
  const { cached_tokens } = (usage?.prompt_tokens_details ?? {}) as { cached_tokens?: unknown };
  return readNumber(cached_tokens) ?? readNumber(timings?.cache_n);
}

function readNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** Measured by the model server if available, otherwise by this page. */
function tokensPerSecond(chat: OpenChat, message: Message): number | undefined {
  const measured = message.timings?.predicted_per_second;
  if (typeof measured === "number" && measured > 0) return measured;
  const ms = chat.replies.measured.peek().get(message.id)?.writingMs;
  const tokens = message.usage?.completion_tokens;
  return ms && tokens ? tokens / (ms / 1000) : undefined;
}
