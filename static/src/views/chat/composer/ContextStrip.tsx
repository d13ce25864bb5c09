/** The thin line above the composer: how far the prompt is read, how fast the reply is written, how full the context is. */
import type { Message } from "../../../api/types.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import type { ReplyStream } from "../../../state/chat/reply_stream.ts";
import { type Store, useStore } from "../../../state/store.ts";
import { formatNumber } from "../../../texts/format.ts";
import { texts } from "../../../texts/texts.ts";
import { openChatPanel } from "../panels/panels.tsx";

/** Share from which the context counts as almost full. */
const ALMOST_FULL = 0.9;

/** Nothing for a chat whose prompts Parlor doesn't assemble. */
export function ContextStrip({ chat }: { chat: OpenChat }) {
  const run = chat.replies.run.value;
  return run ? <RunningStrip chat={chat} run={run} /> : <RestingStrip chat={chat} />;
}

function RunningStrip({ chat, run }: { chat: OpenChat; run: ReplyStream }) {
  const store = useStore();
  const t = texts.contextStrip;
  const progress = run.progress.value;
  if (progress !== undefined && progress.total > 0) {
    const { total, cache, processed } = progress;
    const share = Math.min(1, processed / total);
    const text = [
      t.reading(Math.floor(share * 100), formatNumber(total)),
      ...(cache > 0 ? [t.cached(formatNumber(cache))] : []),
    ].join(" · ");
    return <Strip share={share} label={t.readingLabel} text={text} />;
  }
  const speed = run.speed.value;
  if (speed !== undefined) return <p class="context-strip">{t.speed(formatNumber(Math.round(speed * 10) / 10))}</p>;
  const other = run.phase.value === "waiting" ? findReplyAhead(chat, store) : undefined;
  return other === undefined ? null : <p class="context-strip" role="status">{t.ahead(other)}</p>;
}

/** A click opens the parts of the next prompt. */
function RestingStrip({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const use = findContextUse(chat.pages.items.value);
  if (use === undefined) return null;
  const { used, size, isAssumed } = use;
  const t = texts.contextStrip;
  const share = Math.min(1, used / size);
  const figures = t.figures(formatNumber(used), formatNumber(size));
  const text = isAssumed ? t.assumed(formatNumber(used)) : `${t.full(Math.round(share * 100))} · ${figures}`;
  return (
    <Strip
      share={isAssumed ? undefined : share}
      label={t.fullLabel}
      text={text}
      onOpen={() => openChatPanel(store, "preview")}
    />
  );
}

function Strip(
  { share, label, text, onOpen }: { share: number | undefined; label: string; text: string; onOpen?: () => void },
) {
  const bar = share !== undefined && (
    <progress
      class={share >= ALMOST_FULL && onOpen ? "is-full" : undefined}
      aria-label={label}
      aria-valuetext={text}
      max={1}
      value={share}
    />
  );
  if (onOpen === undefined) return <p class="context-strip">{bar}{text}</p>;
  return (
    <button type="button" class="context-strip" title={texts.contextStrip.open} onClick={onOpen}>
      {bar}
      {text}
    </button>
  );
}

/** Returns how full the context is after the last reply, by the server's count if it sent one. */
function findContextUse(
  messages: readonly Message[],
): { used: number; size: number; isAssumed: boolean } | undefined {
  const last = messages.findLast(({ role, status }) => role === "assistant" && status !== "streaming");
  if (last?.context_use === undefined) return undefined;
  const { size, tokens, assumed = false } = last.context_use;
  const { prompt_tokens: reported = 0, completion_tokens: written = 0 } = last.usage ?? {};
  // Some servers don't count what they had in their cache.
  const prompt = reported >= tokens / 2 ? reported : tokens;
  return { used: prompt + written, size, isAssumed: assumed };
}

/**
 * Returns the title of the chat whose reply the server writes first. Only llama.cpp reports the start of a prompt, so
 * that silence means waiting.
 */
function findReplyAhead(chat: OpenChat, { chats, connections }: Store): string | undefined {
  const running = chats.replies.value;
  const own = running.find(({ conversation_id }) => conversation_id === chat.id);
  const connection = connections.find(own?.connection_id ?? chat.options.value.connection_id ?? undefined);
  if (connection?.dialect?.name !== "llama.cpp") return undefined;
  const others = running.filter((each) => each.conversation_id !== chat.id && each.connection_id === connection.id);
  const slots = connection.contracts?.[0]?.findings.find(({ item }) => item === "slots")?.found;
  // With a free slot, the server writes several replies at once.
  if (typeof slots === "number" && others.length < slots) return undefined;
  const [other] = others;
  return other && (chats.items.value.find((each) => each.id === other.conversation_id)?.title || texts.chat.untitled);
}
