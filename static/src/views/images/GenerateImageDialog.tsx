/** Generates an image, for the chat or like another one: its editable prompt, and the progress. */
import { useEffect, useState } from "preact/hooks";
import type { GalleryImage } from "../../api/types.ts";
import { imageApi } from "../../api/images.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, LinkButton } from "../../components/Button.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { Progress } from "../../components/Progress.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Sheet } from "../../components/overlays/Dialog.tsx";
import { ImageGeneration } from "../../state/chat/image_generation.ts";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatNumber, formatPercent } from "../../texts/format.ts";

/** If closed early, the image is still attached to the message that was last. */
export function GenerateImageDialog(
  { chat, prompt = "", onClose }: { chat: OpenChat; prompt?: string; onClose: () => void },
) {
  const store = useStore();
  const [messageId] = useState(() => chat.lastMessage.peek()?.id);
  const isAsked = store.connections.active.value?.kind !== "demo";
  return (
    <GenerationSheet
      title={texts.images.draw}
      promptHint={texts.images.promptHint}
      closeHint={texts.images.closeHint}
      draftKey={chat.isTemporary ? undefined : `image:${chat.id}`}
      onOpen={(drawing, hasDraft) => drawing.open(chat.pages.items.peek(), isAsked && !hasDraft, prompt)}
      onDerive={(drawing) => void drawing.derive(chat.pages.items.peek(), isAsked)}
      target={messageId === undefined ? undefined : { conversationId: chat.id, messageId }}
      onClose={onClose}
    />
  );
}

/** Generates an image with the settings of another one, for the same message. */
export function GenerateAgainDialog({ image, onClose }: { image: GalleryImage; onClose: () => void }) {
  const { conversation_id: conversationId, message_id: messageId, settings: { seed } } = image;
  const t = texts.gallery;
  return (
    <GenerationSheet
      title={t.again}
      promptHint={t.againHint}
      closeHint={conversationId === undefined ? t.closeHint : t.closeHintChat}
      seedHint={t.seedHint(String(seed ?? ""))}
      draftKey={`image again:${image.id}`}
      onOpen={(drawing) => drawing.openAgain(image)}
      target={{ conversationId, messageId }}
      onClose={onClose}
    />
  );
}

interface SheetProps {
  title: string;
  promptHint: string;
  closeHint: string;
  /** With it, the seed can be set. */
  seedHint?: string;
  /** Names the draft, if there is one. */
  draftKey: string | undefined;
  /** @param hasDraft The prompt was typed before: it isn't described again. */
  onOpen: (drawing: ImageGeneration, hasDraft: boolean) => Promise<void>;
  onDerive?: (drawing: ImageGeneration) => void;
  target: { conversationId?: string; messageId?: string } | undefined;
  onClose: () => void;
}

function GenerationSheet(
  { title, draftKey, promptHint, closeHint, seedHint, onOpen, onDerive, target, onClose }: SheetProps,
) {
  const store = useStore();
  const t = texts.images;
  const [drawing] = useState(() => new ImageGeneration(imageApi(store.api.client)));
  const draft = useFormDraft(draftKey, { isAnyBase: true });
  useEffect(() => {
    void draft.loaded.then(() => onOpen(drawing, draft.find("image-prompt") !== undefined));
    return () => drawing.leave();
  }, []);
  const state = drawing.state.value;
  useEffect(() => {
    if (state !== "done") return;
    draft.clear();
    for (const warning of drawing.result.peek()?.warnings ?? []) store.toasts.show(warning);
    onClose();
  }, [state]);
  const isSeedBad = !/^\d{0,15}$/.test(drawing.seed.value.trim());
  const draw = () => target !== undefined && void drawing.draw(target);
  const cancel = () => drawing.cancel((id) => store.activity.cancel(id)).catch((thrown) => store.report(thrown));
  const error = drawing.error.value;
  if (state === "unset") {
    return (
      <Sheet title={title} onClose={onClose}>
        {error
          ? <ErrorNote title={t.loadFailed} error={error} />
          : (
            <EmptyState level={3} title={t.none} text={t.noneText}>
              <LinkButton href="/settings/images" kind="primary">{t.discover}</LinkButton>
            </EmptyState>
          )}
      </Sheet>
    );
  }
  const isDrawing = state === "drawing";
  return (
    <Sheet
      title={title}
      onClose={onClose}
      actions={
        <>
          {isDrawing
            ? <Button icon="stop" onClick={() => void cancel()}>{t.cancelDrawing}</Button>
            : onDerive && (
              <Button
                kind="quiet"
                icon="redo"
                isDisabled={state !== "ready"}
                onClick={() => onDerive(drawing)}
              >
                {t.deriveAgain}
              </Button>
            )}
          <Button
            kind="primary"
            isBusy={isDrawing}
            isDisabled={state !== "ready" || drawing.prompt.value.trim() === "" || isSeedBad}
            onClick={draw}
          >
            {t.drawNow}
          </Button>
        </>
      }
    >
      <div class="form">
        {state === "deriving" && (
          <div class="image-prompt-progress" role="status">
            <span class="pulse" aria-hidden="true" />
            <span>{t.deriving}</span>
            <Button kind="quiet" onClick={() => drawing.stopDeriving()}>{t.byHand}</Button>
          </div>
        )}
        <Drafted draft={state === "reading" ? undefined : draft}>
          <TextField
            id="image-prompt"
            rows={5}
            label={t.prompt}
            hint={promptHint}
            maxLength={20_000}
            isDisabled={state === "deriving" || state === "reading"}
            value={drawing.prompt.value}
            onInput={(text) => drawing.prompt.value = text}
          />
          <TextField
            label={t.negative}
            maxLength={20_000}
            value={drawing.negative.value}
            onInput={(text) => drawing.negative.value = text}
          />
          {seedHint !== undefined && (
            <TextField
              inputMode="numeric"
              label={texts.gallery.seed}
              hint={seedHint}
              error={isSeedBad ? texts.gallery.seedBad : undefined}
              value={drawing.seed.value}
              onInput={(text) => drawing.seed.value = text}
            />
          )}
        </Drafted>
        {isDrawing && <Course drawing={drawing} closeHint={closeHint} />}
        {error && <ErrorNote title={t.drawFailed} error={error} />}
      </div>
    </Sheet>
  );
}

/** The progress, with the current preview. */
function Course({ drawing, closeHint }: { drawing: ImageGeneration; closeHint: string }) {
  const t = texts.images;
  const now = drawing.progress.value;
  const steps = now?.step !== undefined && now.steps !== undefined
    ? t.stepOf(formatNumber(now.step), formatNumber(now.steps))
    : undefined;
  return (
    <div class="image-progress">
      {now?.preview && <img src={now.preview} alt={t.preview} />}
      <Progress
        label={t.drawing}
        value={now?.progress ?? null}
        text={now === undefined ? t.waiting : steps ?? formatPercent(now.progress)}
      />
      <p class="muted">{closeHint}</p>
    </div>
  );
}
