/** Two versions of a message next to each other, on phones one below the other, with their differences marked. */
import type { Message, MessageVariant } from "../../../api/types.ts";
import { type Change, diffWordsWithSpace } from "diff";
import { useMemo, useState } from "preact/hooks";
import { listVariants } from "../../../api/versions.ts";
import { Button } from "../../../components/Button.tsx";
import { Select } from "../../../components/forms/inputs.tsx";
import { ErrorNote } from "../../../components/Notice.tsx";
import { Dialog } from "../../../components/overlays/Dialog.tsx";
import { getContentText, splitReasoning } from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { formatTime } from "../../../texts/format.ts";
import { texts } from "../../../texts/texts.ts";
import { useResource } from "../../hooks.tsx";

/** Limits, in changed words and in milliseconds, above which the texts are shown without marks. */
const LIMITS = { maxEditLength: 2000, timeout: 100 };

/** The dialog. It starts with the version in the chat and the one before it. */
export function CompareDialog(
  { chat, message, onClose }: { chat: OpenChat; message: Message; onClose: () => void },
) {
  const { api: { client } } = useStore();
  const { value: variants, error, again } = useResource(() => listVariants(client, chat.id, message.id));
  const active = message.active_variant ?? 0;
  const [shown, setShown] = useState([active === 0 ? 0 : active - 1, active === 0 ? 1 : active]);
  const t = texts.compare;
  const [left, right] = shown.map((n) => variants?.find((variant) => variant.n === n));
  const isReply = message.role === "assistant";
  const [before, after] = [left, right].map((variant) => variant ? getVariantText(variant, isReply) : "");
  const changes = useMemo(() => diffWordsWithSpace(before!, after!, LIMITS), [before, after]);
  const show = async (n: number) => {
    onClose();
    await chat.actions.switchVariant(message.id, n - active);
  };
  return (
    <Dialog title={t.title} onClose={onClose}>
      {error && <ErrorNote title={t.failed} error={error} onRetry={again} />}
      {!variants && !error && <p class="muted" role="status">{texts.loading}</p>}
      {variants && (
        <>
          <p class="muted" role="status">
            {!changes ? t.tooDifferent : changes.length < 2 && before === after ? t.same : t.hint}
          </p>
          <div class="compare">
            {[left, right].map((variant, side) => (
              <section key={side} aria-label={side === 0 ? t.first : t.second}>
                <Select
                  label={side === 0 ? t.first : t.second}
                  value={String(shown[side])}
                  options={variants.map(({ n, model, created_at }) => ({
                    value: String(n),
                    name: [texts.chat.variant(n + 1, variants.length), model, formatTime(created_at, new Date())]
                      .filter(Boolean).join(" · "),
                  }))}
                  onChange={(n) => setShown(shown.map((old, at) => at === side ? Number(n) : old))}
                />
                <p class="compare-text" dir="auto">
                  {changes ? <MarkedText changes={changes} side={side} /> : [before, after][side]}
                </p>
                {variant && (
                  <Button isDisabled={variant.n === active} onClick={() => void show(variant.n)}>
                    {variant.n === active ? t.isShown : t.show}
                  </Button>
                )}
              </section>
            ))}
          </div>
        </>
      )}
    </Dialog>
  );
}

/** One of the two texts. Differences are underlined. */
function MarkedText({ changes, side }: { changes: readonly Change[]; side: number }) {
  return (
    <>
      {changes.map(({ value, added, removed }, index) => {
        if (side === 0 ? added : removed) return null;
        if (!added && !removed) return <span key={index}>{value}</span>;
        return side === 0 ? <del key={index}>{value}</del> : <ins key={index}>{value}</ins>;
      })}
    </>
  );
}

function getVariantText({ content }: MessageVariant, isReply: boolean): string {
  const text = getContentText(content as Message["content"]);
  return isReply ? splitReasoning(text).text : text;
}
