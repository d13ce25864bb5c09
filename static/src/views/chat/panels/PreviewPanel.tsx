/** The exact prompt, its size and what does not fit. */
import type { ChatPreview, DroppedEntry, PromptPiece, UnexpandedField } from "../../../api/types.ts";
import { useEffect, useState } from "preact/hooks";
import { ApiError, asApiError } from "../../../api/client.ts";
import { Button } from "../../../components/Button.tsx";
import { ErrorNote } from "../../../components/Notice.tsx";
import { findImageUrls, textOf } from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { formatNumber } from "../../../texts/format.ts";
import { texts } from "../../../texts/texts.ts";
import { useStore } from "../../../state/store.ts";
import { getSpeakerName } from "../composer/NextSpeakerBar.tsx";

/** Reloaded when the chat changes, and on demand for the composer's text. */
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
  const t = texts.chatOptions.preview;
  if (found === undefined) return <p role="status">{texts.loading}</p>;
  if (found instanceof ApiError) return <ErrorNote title={t.failed} error={found} onRetry={again} />;
  return (
    <div class="preview-panel">
      <Sums preview={found} />
      <Button icon="redo" onClick={again}>{t.refresh}</Button>
      <UnexpandedFields fields={found.not_expanded ?? []} />
      <ol class="preview-list">
        {found.messages.map((message, index) => {
          const part = found.parts[index];
          return (
            <li key={index}>
              <details open={index >= found.messages.length - 2}>
                <summary>
                  <span>{getPartName(part?.part ?? "", message.role)}</span>
                  <span class="muted">{texts.chat.tokens(part?.tokens ?? 0)}</span>
                </summary>
                <PromptText words={getShownText(message.content)} pieces={part?.pieces ?? []} />
              </details>
            </li>
          );
        })}
      </ol>
      <LeftOut dropped={found.dropped} />
    </div>
  );
}

/** The content of a message, in the pieces it was assembled from. */
function PromptText({ words, pieces }: { words: string; pieces: PromptPiece[] }) {
  // If it can't be assembled from pieces, the text alone is exact.
  const isWhole = pieces.map(({ text }) => text).join("\n\n") === words;
  return (
    <div class="preview-text" tabIndex={0}>
      {!isWhole && words}
      {pieces.map((piece, index) => (
        <div key={index} class="preview-piece">
          <PieceName piece={piece} />
          {isWhole && piece.text}
        </div>
      ))}
    </div>
  );
}

function PieceName({ piece: { part, title, tokens, entry } }: { piece: PromptPiece }) {
  const t = texts.chatOptions;
  const name = entry ? t.fired(entry.lorebook_name, entry.entry_name) : title ?? getPieceName(part);
  return (
    <p class="preview-piece-name">
      <span>{entry ? `${name} (${formatReason(entry.reason)})` : name}</span>
      <span>{texts.chat.tokens(tokens)}</span>
    </p>
  );
}

/** Before the messages: there may be hundreds of them, and problems should be seen first. */
function UnexpandedFields({ fields }: { fields: UnexpandedField[] }) {
  if (fields.length === 0) return null;
  const t = texts.chatOptions.notExpanded;
  return (
    <section class="preview-left-out" aria-labelledby="preview-not-expanded">
      <h3 id="preview-not-expanded">{t.title}</h3>
      <p class="hint">{t.hint}</p>
      <ul>
        {fields.map(({ field, source, reason }, index) => (
          <li key={index}>{getFieldName(field, source)} ({t.reasons[reason]})</li>
        ))}
      </ul>
    </section>
  );
}

function getFieldName(field: string, source: string | undefined): string {
  const { history, sources } = texts.chatOptions.notExpanded;
  if (field === "history") return history;
  if (source === undefined) return getPieceName(field);
  const which = source === "card" || source === "chat" ? sources[source] : source;
  return `${getPieceName(field)}: ${which}`;
}

function LeftOut({ dropped: { pieces = [], lorebook_entries = [] } }: Pick<ChatPreview, "dropped">) {
  if (pieces.length + lorebook_entries.length === 0) return null;
  const t = texts.chatOptions;
  return (
    <section class="preview-left-out" aria-labelledby="preview-left-out">
      <h3 id="preview-left-out">{t.leftOut}</h3>
      <ul>
        {pieces.map((piece, index) => (
          <li key={index}>
            <PieceName piece={piece} />
          </li>
        ))}
        {lorebook_entries.map((entry, index) => (
          <li key={`entry ${index}`}>{t.fired(entry.lorebook_name, entry.entry_name)} ({formatDropReason(entry)})</li>
        ))}
      </ul>
    </section>
  );
}

function formatReason({ kind, key = "" }: { kind: string; key?: string }): string {
  const { reasons } = texts.chatOptions;
  if (kind === "key" || kind === "recursion") return reasons[kind](key);
  return kind === "constant" || kind === "sticky" || kind === "decorator" ? reasons[kind] : kind;
}

function formatDropReason({ reason, key }: DroppedEntry): string {
  const { missed, other, reasons } = texts.chatOptions;
  const why = Object.hasOwn(missed, reason) ? missed[reason as keyof typeof missed] : other;
  return key === undefined ? why : `${reasons.key(key)}; ${why}`;
}

function getPieceName(part: string): string {
  const { pieces } = texts.chatOptions;
  return Object.hasOwn(pieces, part) ? pieces[part as keyof typeof pieces] : part;
}

function Sums({ preview }: { preview: ChatPreview }) {
  const store = useStore();
  const speakers = preview.speakers ?? [];
  const t = texts.chatOptions.preview;
  return (
    <div class="preview-sums">
      <p>
        <strong>{t.tokens(formatNumber(preview.tokens), formatNumber(preview.context_size))}</strong>
      </p>
      <meter value={preview.tokens} max={preview.context_size} aria-label={texts.chat.preview.title} />
      <p class="hint">
        {[
          t.answer(formatNumber(preview.answer_tokens)),
          preview.context_size_assumed ? t.assumed : "",
          preview.counted_by === "estimate" ? t.estimated : "",
        ].filter(Boolean).join(" ")}
      </p>
      {preview.dropped.count > 0 && <p>{t.dropped(preview.dropped.count)}</p>}
      {!preview.fits && <p class="field-error">{t.tooLong}</p>}
      <p class="hint">{preview.connection.name} · {preview.model}</p>
      {preview.preset && <p class="hint">{texts.chatOptions.presetUsed(preview.preset.name)}</p>}
      {speakers.length > 0 && (
        <p class="hint">{texts.chatOptions.speaker(speakers.map((id) => getSpeakerName(store, id)).join(", "))}</p>
      )}
    </div>
  );
}

function getPartName(part: string, role: string): string {
  const { parts, roles } = texts.chatOptions.preview;
  if (part === "system_prompt" || part === "note") return parts[part];
  if (part !== "history" && Object.hasOwn(texts.chatOptions.pieces, part)) return getPieceName(part);
  return role === "system" || role === "user" || role === "assistant" || role === "tool" ? roles[role] : role;
}

function getShownText(content: ChatPreview["messages"][number]["content"]): string {
  const images = findImageUrls(content).length;
  return [textOf(content), images > 0 ? `[${texts.chatOptions.preview.images(images)}]` : ""].filter(Boolean).join(
    "\n",
  );
}
