/** Ways to shorten a prompt that is longer than the model's context. */
import { useEffect, useRef, useState } from "preact/hooks";
import { asApiError } from "../../../api/client.ts";
import { Button } from "../../../components/Button.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { limitContext, summarizeLeftOut } from "../../../state/chat/overflow_cures.ts";
import { useStore } from "../../../state/store.ts";
import { formatNumber } from "../../../texts/format.ts";
import { texts } from "../../../texts/texts.ts";

/** Replies shorter than this are not worth a prompt, in tokens. */
const SHORTEST_REPLY = 128;

/** Each way ends with another try. */
export function OverflowCure(
  { chat, messageId, onRetry }: { chat: OpenChat; messageId: string; onRetry: () => void },
) {
  const store = useStore();
  const [busy, setBusy] = useState<"summary" | "drop">();
  const [problem, setProblem] = useState<string>();
  const abort = useRef<AbortController>(undefined);
  useEffect(() => () => abort.current?.abort(), []);
  const t = texts.cures;
  const before = chat.options.value.params ?? null;

  const shorten = async (kind: "summary" | "drop") => {
    const { signal } = abort.current = new AbortController();
    setBusy(kind);
    setProblem(undefined);
    const undo = () => chat.change({ params: before }).catch((thrown) => store.report(thrown));
    try {
      const result = await limitContext(store.api, chat, messageId, signal);
      if (!result) setProblem(t.nothingToDrop);
      else if (kind === "summary" && !await summarizeLeftOut(store.api, chat, result, signal)) {
        await undo();
        setProblem(t.noSummary);
      } else {
        store.toasts.show(t.dropped(formatNumber(result.limit)), {
          action: { label: texts.undo, run: () => void undo() },
        });
        onRetry();
      }
    } catch (thrown) {
      await undo();
      if (!signal.aborted) setProblem(asApiError(thrown).message);
    }
    setBusy(undefined);
  };
  const limit = before?.max_tokens;
  const shorter = typeof limit === "number" ? Math.floor(limit / 2) : 0;
  const limitReplies = () => {
    chat.changeParam("max_tokens", shorter).then(onRetry, (thrown) => store.report(thrown));
  };
  return (
    <div class="cure">
      {busy === "summary" && <p role="status">{t.summarizing}</p>}
      {problem && <p class="field-error" role="alert">{problem}</p>}
      <div class="actions-row">
        <Button
          kind="primary"
          isBusy={busy === "summary"}
          isDisabled={busy === "drop"}
          onClick={() => shorten("summary")}
        >
          {t.summary}
        </Button>
        {busy === "summary"
          ? <Button kind="quiet" onClick={() => abort.current?.abort()}>{texts.cancel}</Button>
          : <Button isBusy={busy === "drop"} onClick={() => shorten("drop")}>{t.dropOldest}</Button>}
        {shorter >= SHORTEST_REPLY && busy === undefined && (
          <Button onClick={limitReplies}>{t.shorter(formatNumber(shorter))}</Button>
        )}
      </div>
    </div>
  );
}
