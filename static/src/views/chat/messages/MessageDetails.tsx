/** Details of a message. */
import type { Message } from "../../../api/types.ts";
import { Sheet } from "../../../components/overlays/Dialog.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { formatDateTime, formatNumber } from "../../../texts/format.ts";
import { texts } from "../../../texts/texts.ts";

/** Model, tokens, speed and times. */
export function MessageDetails(
  { chat, message, onClose }: { chat: OpenChat; message: Message; onClose: () => void },
) {
  const speed = tokensPerSecond(chat, message);
  const { usage } = message;
  const t = texts.chat.details;
  const rows: [string, string | undefined][] = [
    [t.model, message.model ?? undefined],
    [t.written, formatDateTime(message.created_at)],
    [t.changed, message.updated_at === message.created_at ? undefined : formatDateTime(message.updated_at)],
    [t.promptTokens, usage?.prompt_tokens === undefined ? undefined : formatNumber(usage.prompt_tokens)],
    [t.replyTokens, usage?.completion_tokens === undefined ? undefined : formatNumber(usage.completion_tokens)],
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
    </Sheet>
  );
}

/** As the model's server measured it, otherwise as this page did. */
function tokensPerSecond(chat: OpenChat, message: Message): number | undefined {
  const told = message.timings?.predicted_per_second;
  if (typeof told === "number" && told > 0) return told;
  const ms = chat.replies.measured.peek().get(message.id)?.writingMs;
  const tokens = message.usage?.completion_tokens;
  return ms && tokens ? tokens / (ms / 1000) : undefined;
}
