/** Exactly what the model would be sent now, with its size and what does not fit. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, asApiError } from "../../api/client.ts";
import { Button } from "../../components/Button.tsx";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import type { ChatPreview } from "../../api/types.ts";
import { imagesOf, textOf } from "../../state/message_text.ts";
import type { OpenChat } from "../../state/open_chat.ts";
import { figure } from "../../texts/times.ts";
import { texts } from "../../texts/texts.ts";

/** Made again whenever the chat has changed, and on demand for what stands in the composer. */
export function PreviewPanel({ chat }: { chat: OpenChat }) {
  const [found, setFound] = useState<ChatPreview | ApiError>();
  const [round, setRound] = useState(0);
  const revision = chat.head.value?.revision;
  useEffect(() => {
    const abort = new AbortController();
    chat.preview(abort.signal).then(setFound, (thrown) => {
      if (!abort.signal.aborted) setFound(asApiError(thrown));
    });
    return () => abort.abort();
  }, [revision, round]);
  const again = () => setRound(round + 1);
  const t = texts.chat.preview;
  if (found === undefined) return <p role="status">{texts.loading}</p>;
  if (found instanceof ApiError) return <ErrorNote title={t.failed} error={found} onRetry={again} />;
  return (
    <div class="preview-panel">
      <Sums preview={found} />
      <Button icon="redo" onClick={again}>{t.refresh}</Button>
      <ol class="preview-list">
        {found.messages.map((message, index) => {
          const part = found.parts[index];
          return (
            <li key={index}>
              <details open={index >= found.messages.length - 2}>
                <summary>
                  <span>{nameOf(part?.part ?? "", message.role)}</span>
                  <span class="muted">{texts.chat.tokens(part?.tokens ?? 0)}</span>
                </summary>
                <div class="preview-text" tabIndex={0}>{wordsOf(message.content)}</div>
              </details>
            </li>
          );
        })}
      </ol>
    </div>
  );
}

function Sums({ preview }: { preview: ChatPreview }) {
  const t = texts.chat.preview;
  return (
    <div class="preview-sums">
      <p>
        <strong>{t.tokens(figure(preview.tokens), figure(preview.context_size))}</strong>
      </p>
      <meter value={preview.tokens} max={preview.context_size} aria-label={t.title} />
      <p class="hint">
        {[
          t.answer(figure(preview.answer_tokens)),
          preview.context_size_assumed ? t.assumed : "",
          preview.counted_by === "estimate" ? t.estimated : "",
        ].filter(Boolean).join(" ")}
      </p>
      {preview.dropped.count > 0 && <p>{t.dropped(preview.dropped.count)}</p>}
      {!preview.fits && <p class="field-error">{t.tooLong}</p>}
      <p class="hint">{preview.connection.name} · {preview.model}</p>
    </div>
  );
}

function nameOf(part: string, role: string): string {
  const { parts, roles } = texts.chat.preview;
  if (part === "system_prompt" || part === "note") return parts[part];
  return role === "system" || role === "user" || role === "assistant" || role === "tool" ? roles[role] : role;
}

function wordsOf(content: ChatPreview["messages"][number]["content"]): string {
  const images = imagesOf(content).length;
  return [textOf(content), images > 0 ? `[${texts.chat.preview.images(images)}]` : ""].filter(Boolean).join("\n");
}
