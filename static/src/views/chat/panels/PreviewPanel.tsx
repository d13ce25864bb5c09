/** The exact prompt, its size and what does not fit. */
import type { ChatPreview, PromptPiece, UnexpandedField } from "../../../api/types.ts";
import { useEffect, useState } from "preact/hooks";
import { ApiError, asApiError } from "../../../api/client.ts";
import { memoryApi } from "../../../api/memories.ts";
import { Button } from "../../../components/Button.tsx";
import { ErrorNote } from "../../../components/Notice.tsx";
import { findImageUrls, getContentText } from "../../../state/chat/message_text.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { formatNumber } from "../../../texts/format.ts";
import { texts } from "../../../texts/texts.ts";
import { useStore } from "../../../state/store.ts";
import { useResource } from "../../hooks.tsx";
import { ContextSizeDialog } from "../../connections/ContextSizeDialog.tsx";
import { getSpeakerName } from "../composer/NextSpeakerBar.tsx";
import { PartCosts } from "./PartCosts.tsx";
import { formatDropReason, getPieceName } from "./piece_names.ts";

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
      <Sums preview={found} onChanged={again} />
      <PartCosts chat={chat} preview={found} onChanged={again} />
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
                <PromptText text={getShownText(message.content)} pieces={part?.pieces ?? []} />
              </details>
            </li>
          );
        })}
      </ol>
      <OfferedTools tools={found.tools ?? []} />
      <OmittedParts preview={found} />
    </div>
  );
}

/** The content of a message, in the pieces it was assembled from. */
function PromptText({ text, pieces }: { text: string; pieces: PromptPiece[] }) {
  // If it can't be assembled from pieces, the text alone is exact.
  const isWhole = pieces.map((piece) => piece.text).join("\n\n") === text;
  return (
    <div class="preview-text" tabIndex={0}>
      {!isWhole && text}
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
        {fields.map(({ field, source, reason, macro }, index) => (
          <li key={index}>
            {getFieldName(field, source)} ({macro === undefined ? "" : `{{${macro}}}: `}
            {t.reasons[reason]})
          </li>
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

/** Tools by the names that the model sees. Their definitions are sent with the prompt. */
function OfferedTools({ tools }: Pick<ChatPreview, "tools">) {
  if (tools.length === 0) return null;
  return (
    <section class="preview-left-out" aria-labelledby="preview-tools">
      <h3 id="preview-tools">{texts.chatOptions.preview.tools}</h3>
      <ul>
        {tools.map(({ name, server_name }) => (
          <li key={name}>
            <code>{name}</code> · {server_name}
          </li>
        ))}
      </ul>
    </section>
  );
}

function OmittedParts({ preview }: { preview: ChatPreview }) {
  const { dropped: { pieces = [], lorebook_entries = [] }, memories_left_out: notes = [], tools_left_out: tools = [] } =
    preview;
  if (pieces.length + lorebook_entries.length + notes.length + tools.length === 0) return null;
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
        {notes.length > 0 && <LeftOutNotes key={notes.join(" ")} ids={notes} />}
        {tools.map(({ name, reason }, index) => <li key={`tool ${index}`}>{name} ({reason})</li>)}
      </ul>
    </section>
  );
}

/** The preview names notes by their ids only. */
function LeftOutNotes({ ids }: { ids: readonly string[] }) {
  const { client } = useStore().api;
  const { value, error, again } = useResource(() => memoryApi(client).list(), "memory");
  const { missed, pieces } = texts.chatOptions;
  if (error) {
    return (
      <li>
        <ErrorNote title={texts.memory.failed} error={error} onRetry={again} />
      </li>
    );
  }
  return (
    <>
      {ids.map((id) => (
        <li key={id}>
          {pieces.memory}: {value?.find((note) => note.id === id)?.text ?? "…"} ({missed.budget})
        </li>
      ))}
    </>
  );
}

function formatReason({ kind, key = "" }: { kind: string; key?: string }): string {
  const { reasons } = texts.chatOptions;
  if (kind === "key" || kind === "recursion") return reasons[kind](key);
  return kind === "constant" || kind === "sticky" || kind === "decorator" ? reasons[kind] : kind;
}

function Sums({ preview, onChanged }: { preview: ChatPreview; onChanged: () => void }) {
  const store = useStore();
  const [isSizing, setSizing] = useState(false);
  const { connection, model } = preview;
  const isOwn = store.connections.items.value.find(({ id }) => id === connection.id)?.context_sizes?.[model];
  const speakers = preview.speakers ?? [];
  const t = texts.chatOptions.preview;
  // An unconfirmed context size can't show that a prompt fits.
  const isAssumed = preview.context_size_assumed;
  return (
    <div class="preview-sums">
      <p>
        <strong>
          {isAssumed
            ? t.tokensAlone(formatNumber(preview.tokens))
            : t.tokens(formatNumber(preview.tokens), formatNumber(preview.context_size))}
        </strong>
      </p>
      {isAssumed
        ? (
          <>
            <p class="assumed">{t.assumed(formatNumber(preview.context_size))}</p>
            <Button onClick={() => setSizing(true)}>{texts.documents.setSize}</Button>
          </>
        )
        : <meter value={preview.tokens} max={preview.context_size} aria-label={texts.chat.preview.title} />}
      <p class="hint">
        {[
          t.answer(formatNumber(preview.answer_tokens)),
          preview.counted_by === "estimate" ? t.estimated : "",
        ].filter(Boolean).join(" ")}
      </p>
      {preview.dropped.count > 0 && <p>{t.dropped(preview.dropped.count)}</p>}
      {!isAssumed && preview.fits === false && <p class="field-error">{t.tooLong}</p>}
      <p class="hint">{connection.name} · {model}</p>
      {isOwn && <Button kind="quiet" onClick={() => setSizing(true)}>{texts.documents.changeSize}</Button>}
      {isSizing && (
        <ContextSizeDialog
          connectionId={connection.id}
          model={model}
          onClose={() => {
            setSizing(false);
            onChanged();
          }}
        />
      )}
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

function getShownText(given: ChatPreview["messages"][number]["content"]): string {
  const content = given ?? "";
  const images = findImageUrls(content).length;
  return [getContentText(content), images > 0 ? `[${texts.chatOptions.preview.images(images)}]` : ""].filter(Boolean)
    .join(
      "\n",
    );
}
