/** Tool calls: the rounds of a reply, and a single call. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../../api/client.ts";
import { type CallAddress, type ToolCall, type ToolDecision, toolsApi } from "../../../api/tools.ts";
import { Drafted, useFormDraft } from "../../../components/forms/Drafted.tsx";
import { useFileUrl } from "../../../components/ApiFile.tsx";
import { Button } from "../../../components/Button.tsx";
import { TextField } from "../../../components/forms/Field.tsx";
import { Icon } from "../../../components/Icon.tsx";
import { ErrorNote } from "../../../components/Notice.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { readRounds, type ShownCall, splitAtCalls } from "../../../state/chat/tool_messages.ts";
import { useStore } from "../../../state/store.ts";
import { formatNumber } from "../../../texts/format.ts";
import { texts } from "../../../texts/texts.ts";
import type { Message } from "../../../api/types.ts";
import { Markdown } from "../../../components/content/Markdown.tsx";
import { FieldPreview, VisibleLines, VisibleText } from "../../../components/content/VisibleText.tsx";
import { escapeHiddenInJson, toVisibleText } from "../../../texts/visible_text.ts";
import { splitReasoning } from "../../../state/chat/message_text.ts";
import type { ReplyStream } from "../../../state/chat/reply_stream.ts";
import { MessageImage } from "./MessageImage.tsx";
import { Reasoning } from "./Reasoning.tsx";

/** The card of a call. */
export function ToolCallCard(
  { chat, replyId, call, isLive }: {
    chat: OpenChat;
    replyId: string;
    call: ShownCall;
    /** The reply is being written, so a waiting call can be decided. */
    isLive: boolean;
  },
) {
  const t = texts.toolCalls;
  const { state, result, duration_ms: durationMs, server_name: server } = call;
  const tool = call.tool_name ?? call.name;
  const name = tool || t.unnamed;
  const status = [
    state && (state === "pending" && !isLive ? t.undecided : t.states[state]),
    durationMs !== undefined && t.seconds(formatNumber(Math.max(0.1, Math.round(durationMs / 100) / 10))),
  ].filter(Boolean).join(" · ");
  const isPending = state === "pending" && isLive;
  const at = { conversationId: chat.id, replyId, callId: call.id };
  return (
    <div
      class="tool-call"
      data-state={state}
      role="group"
      aria-label={t.label(toVisibleText(name, { isStrict: true }), status)}
    >
      <header>
        <Icon name={ICONS[state ?? "done"]} />
        <span class="tool-name">
          <strong>
            <VisibleText text={name} isStrict />
          </strong>
          {server && <span class="muted">{t.of(toVisibleText(server, { isStrict: true }))}</span>}
        </span>
        <span class="tool-state">{status}</span>
      </header>
      {state === "unknown" && <p class="tool-note">{t.unknownNote}</p>}
      {isPending ? <Approval chat={chat} at={at} call={call} name={name} /> : call.arguments !== "" && (
        <details>
          <summary>{call.proposed_arguments === undefined ? t.arguments : t.changedArguments}</summary>
          <Code label={t.arguments} text={formatArguments(call.arguments)} />
          {call.proposed_arguments !== undefined && (
            <>
              <p class="tool-note">{t.proposed}</p>
              <Code label={t.proposed} text={formatArguments(call.proposed_arguments)} />
            </>
          )}
        </details>
      )}
      {result !== undefined && <Result at={at} call={call} />}
      <Images urls={call.images ?? []} />
    </div>
  );
}

const ICONS = {
  pending: "bell",
  running: "activity",
  done: "check",
  failed: "warning",
  denied: "close",
  unknown: "warning",
} as const;

/** The arguments and the possible decisions. The focus doesn't move. */
function Approval(
  { chat, at, call, name }: { chat: OpenChat; at: CallAddress; call: ToolCall; name: string },
) {
  const store = useStore();
  const t = texts.toolCalls;
  const shown = formatArguments(call.arguments);
  const editable = escapeHiddenInJson(shown);
  const [edited, setEdited] = useState<string>();
  const [busy, setBusy] = useState<string>();
  const [error, setError] = useState<ApiError>();
  const box = useRef<HTMLDivElement>(null);
  const draft = useFormDraft(chat.isTemporary ? undefined : `approval:${chat.id}:${call.id}`);
  useEffect(() => void draft.loaded.then(() => draft.isEmpty || setEdited(editable)), [draft]);
  const isInvalid = edited !== undefined && !isObject(edited);
  const decide = async (key: string, decision: ToolDecision) => {
    setBusy(key);
    setError(undefined);
    // The buttons disappear, so the focus moves to the card.
    const card = box.current?.closest<HTMLElement>(".tool-call");
    if (card && box.current?.contains(document.activeElement)) {
      card.tabIndex = -1;
      card.focus({ preventScroll: true });
    }
    const changed = decision.decision === "allow" && edited !== undefined && edited !== editable;
    try {
      const decided = await toolsApi(store.api.client).decide(at, {
        ...decision,
        ...(changed && { arguments: edited }),
      });
      draft.clear();
      chat.replies.run.peek()?.showCall(decided);
    } catch (thrown) {
      // One that waits is shown below the messages. Until it's sent, another one replaces it.
      if (!asApiError(thrown).isQueued) setError(asApiError(thrown));
      setBusy(undefined);
    }
  };
  const button = (key: string, label: string, decision: ToolDecision, kind: "primary" | "plain" = "plain") => (
    <Button
      kind={kind}
      isBusy={busy === key}
      isDisabled={busy !== undefined || (isInvalid && decision.decision === "allow")}
      label={t.action(label, toVisibleText(name, { isStrict: true }))}
      onClick={() => void decide(key, decision)}
    >
      {label}
    </Button>
  );
  const { readOnly, destructive } = call.hints ?? {};
  // Parlor knows this for its built-in tools.
  const hint = call.server_id === "web" ? undefined : destructive ? t.destructive : readOnly ? t.readOnly : undefined;
  return (
    <div class="tool-approval" ref={box}>
      {edited === undefined ? <Code label={t.arguments} text={shown} /> : (
        <Drafted draft={draft}>
          <TextField
            label={t.arguments}
            rows={Math.min(14, edited.split("\n").length + 1)}
            isMono
            value={edited}
            error={isInvalid ? t.invalid : undefined}
            onInput={setEdited}
          />
          <FieldPreview text={isInvalid ? edited : formatArguments(edited)} isStrict />
        </Drafted>
      )}
      {hint && <p class="tool-note">{hint}</p>}
      {error && <ErrorNote title={t.decisionFailed} error={error} />}
      <div class="actions-row">
        {button("once", t.once, { decision: "allow" }, "primary")}
        {button("deny", t.deny, { decision: "deny" })}
        {button("chat", t.inChat, { decision: "allow", remember: "chat" })}
        {button("always", t.always, { decision: "allow", remember: "always" })}
        <Button
          kind="quiet"
          icon={edited === undefined ? "pencil" : "restore"}
          label={t.action(edited === undefined ? t.edit : t.reset, toVisibleText(name, { isStrict: true }))}
          isDisabled={busy !== undefined}
          onClick={() => {
            if (edited !== undefined) draft.clear();
            setEdited(edited === undefined ? editable : undefined);
          }}
        >
          {edited === undefined ? t.edit : t.reset}
        </Button>
      </div>
    </div>
  );
}

/** Collapsed: the result that the model saw, and the full result if that was cut. */
function Result({ at, call }: { at: CallAddress; call: ToolCall }) {
  const store = useStore();
  const t = texts.toolCalls;
  const [isOpen, setOpen] = useState(false);
  const [full, setFull] = useState<string>();
  const [error, setError] = useState<ApiError>();
  const canLoad = call.server_id !== undefined && call.result!.length >= FULL_FROM;
  const load = () => {
    setError(undefined);
    toolsApi(store.api.client).getCall(at).then(
      ({ result_full, result }) => setFull(result_full ?? result ?? ""),
      (thrown) => setError(asApiError(thrown)),
    );
  };
  useEffect(() => setFull(undefined), [call.id]);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t.result(call.result!.length)}</summary>
      {isOpen && (
        <>
          <p class="tool-note">{full === undefined ? t.seen : t.whole}</p>
          {call.result === ""
            ? <p class="tool-note">{t.empty}</p>
            : <Code label={t.seen} text={full ?? call.result!} />}
          {error && <ErrorNote title={t.loadFailed} error={error} onRetry={load} />}
          {canLoad && full === undefined && <Button kind="quiet" onClick={load}>{t.showWhole}</Button>}
        </>
      )}
    </details>
  );
}

/** Results up to this length, in characters, are never cut. The model sees at most 64 KiB. */
const FULL_FROM = 20_000;

/** Text in a scroll container. */
function Code({ label, text }: { label: string; text: string }) {
  return (
    <pre class="tool-code" tabIndex={0} role="group" aria-label={label}>
      <VisibleLines text={text} isStrict />
    </pre>
  );
}

function Images({ urls }: { urls: readonly string[] }) {
  if (urls.length === 0) return null;
  return (
    <span class="message-images">
      {urls.map((url, n) => <LinkedImage key={url} url={url} n={n + 1} />)}
    </span>
  );
}

function LinkedImage({ url, n }: { url: string; n: number }) {
  const fileUrl = useFileUrl(url);
  return (
    <a href={fileUrl} target="_blank" rel="noopener">
      <MessageImage url={url} alt={texts.chat.image(n)} />
    </a>
  );
}

/** Indents arguments. Text that isn't JSON is unchanged. */
function formatArguments(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/**
 * What a reply did before its last text: texts of earlier rounds, and the calls of tools behind each. The rounds of a
 * running reply, or those of stored messages.
 */
export function ToolRounds(
  { chat, message, run, rounds: stored = [] }: {
    chat: OpenChat;
    /** The reply. */
    message: Message;
    run?: ReplyStream;
    rounds?: readonly Message[];
  },
) {
  const calls = run?.calls.value;
  // The text before a call doesn't change, so its growth behind the last one renders nothing here.
  const rounds = useMemo(
    () => run && calls ? splitAtCalls(calls, run.text.peek(), run.reasoning.peek()) : readRounds(stored),
    [run, calls, ...run ? [] : stored],
  );
  return (
    <>
      {rounds.map(({ text, reasoning, calls }, n) => {
        const { reasoning: inText, text: shownText } = splitReasoning(text);
        const allReasoning = [reasoning, inText].filter((part) => part !== "").join("\n\n");
        return (
          <div key={n} class="tool-round">
            {allReasoning !== "" && (
              <Reasoning text={allReasoning} isThinking={false} durationMs={undefined} tokens={undefined} />
            )}
            {shownText !== "" && <Markdown text={shownText} isFinal />}
            {calls.map((call) => (
              <ToolCallCard key={call.id} chat={chat} replyId={message.id} call={call} isLive={run !== undefined} />
            ))}
          </div>
        );
      })}
    </>
  );
}
