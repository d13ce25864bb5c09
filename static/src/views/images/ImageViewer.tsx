/** The images of a chat: one at full size with its neighbors, or all as a grid. */
import { useEffect, useState } from "preact/hooks";
import { imageApi } from "../../api/images.ts";
import type { GalleryImage, Message } from "../../api/types.ts";
import { ApiImage, useFileUrl } from "../../components/ApiFile.tsx";
import { Button, IconButton } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import { Modal } from "../../components/overlays/Dialog.tsx";
import { isLocalImage, listImageUrls } from "../../state/chat/message_text.ts";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { type Store, useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { GenerateAgainDialog } from "./GenerateImageDialog.tsx";

/** Escape closes it; the arrow keys show the neighbors. */
export function ImageViewer(
  { chat, messageId, url, onClose }: { chat: OpenChat; messageId: string; url: string; onClose: () => void },
) {
  const store = useStore();
  const t = texts.images;
  const images = listChatImages(chat.pages.items.value);
  const [shown, setShown] = useState<Pick<ChatImage, "messageId" | "url">>({ messageId, url });
  const [isOverview, setOverview] = useState(false);
  const index = images.findIndex((each) => each.url === shown.url && each.messageId === shown.messageId);
  // A deleted image is replaced by the one at its index.
  const [lastPlace, setLastPlace] = useState(0);
  const at = index >= 0 ? index : Math.min(lastPlace, images.length - 1);
  const image = images[at];
  useEffect(() => {
    if (image === undefined) onClose();
    else if (index < 0) setShown(image);
    else setLastPlace(index);
  }, [image?.url, image?.messageId]);
  // An image that was generated can be generated again.
  const [origin, setOrigin] = useState<GalleryImage>();
  const [again, setAgain] = useState<GalleryImage>();
  useEffect(() => {
    let isHere = true;
    setOrigin(undefined);
    if (image?.attached === undefined) return;
    imageApi(store.api.client).listImages({ attachment: image.attached }).then(
      ({ items }) => isHere && setOrigin(items.find((item) => item.message_id === image.messageId) ?? items[0]),
      () => {}, // Only the button is missing.
    );
    return () => isHere = false;
  }, [image?.url, image?.messageId]);
  if (image === undefined) return null;
  const go = (step: number) => setShown(images[(at + step + images.length) % images.length]!);
  const detach = () =>
    detachImage(store, chat, image, { done: t.detached, undo: texts.undo }).catch((thrown) => store.report(thrown));
  return (
    <Modal class="zoom" label={isOverview ? t.all : texts.chat.image(at + 1)} onClose={onClose}>
      <div
        class="zoom-content"
        onKeyDown={(event) => {
          if (isOverview || images.length < 2) return;
          if (event.key === "ArrowLeft") go(-1);
          else if (event.key === "ArrowRight") go(1);
        }}
      >
        <div class="zoom-bar">
          {!isOverview && images.length > 1 && (
            <>
              <IconButton icon="left" label={t.previous} onClick={() => go(-1)} />
              <span aria-live="polite">{t.place(at + 1, images.length)}</span>
              <IconButton icon="right" label={t.next} onClick={() => go(1)} />
            </>
          )}
          <span class="zoom-space" />
          <IconButton icon="image" label={t.all} isPressed={isOverview} onClick={() => setOverview(!isOverview)} />
          {!isOverview && (
            <>
              {origin && <IconButton icon="redo" label={texts.gallery.again} onClick={() => setAgain(origin)} />}
              <DownloadImage url={image.url} />
              {image.attached !== undefined && (
                <IconButton
                  icon="trash"
                  label={t.detach}
                  onClick={() => void detach()}
                />
              )}
            </>
          )}
          <IconButton icon="close" label={texts.close} onClick={onClose} />
        </div>
        {isOverview
          ? (
            <Overview
              chat={chat}
              images={images}
              onChoose={(chosen) => {
                setShown(chosen);
                setOverview(false);
              }}
            />
          )
          : <LargeImage key={`${image.messageId} ${image.url}`} url={image.url} alt={texts.chat.image(at + 1)} />}
      </div>
      {again && <GenerateAgainDialog image={again} onClose={() => setAgain(undefined)} />}
    </Modal>
  );
}

/** Saves an image. */
export function DownloadImage({ url }: { url: string }) {
  const label = texts.images.download;
  return (
    <a class="icon-button quiet" href={useFileUrl(url)} download aria-label={label} title={label}>
      <Icon name="export" />
    </a>
  );
}

/** Fitted to the page; a click shows the original size. */
export function LargeImage({ url, alt }: { url: string; alt: string }) {
  const [isFull, setFull] = useState(false);
  return (
    <button
      type="button"
      class={isFull ? "zoom-image is-full" : "zoom-image"}
      aria-pressed={isFull}
      aria-label={texts.images.fullSize}
      onClick={() => setFull(!isFull)}
    >
      <ApiImage src={url} alt={alt} />
    </button>
  );
}

/** All of them, and a button for older messages. */
function Overview(
  { chat, images, onChoose }: {
    chat: OpenChat;
    images: readonly ChatImage[];
    onChoose: (image: ChatImage) => void;
  },
) {
  const store = useStore();
  return (
    <div class="zoom-overview">
      {chat.pages.hasOlder.value && (
        <Button
          isBusy={chat.pages.isLoading.value}
          onClick={() => void chat.pages.loadOlder().catch((thrown) => store.report(thrown))}
        >
          {texts.images.older}
        </Button>
      )}
      <ul class="zoom-grid">
        {images.map((image, index) => (
          <li key={`${image.messageId} ${image.url}`}>
            <button type="button" aria-label={texts.chat.enlarge(index + 1)} onClick={() => onChoose(image)}>
              <ApiImage src={image.url} alt="" loading="lazy" decoding="async" />
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** One image and its message. */
interface ChatImage {
  messageId: string;
  url: string;
  /** Its name among the attachments; undefined for one inside the content. */
  attached?: string;
}

/** Lists the images of messages, in order. */
function listChatImages(messages: readonly Message[]): ChatImage[] {
  return messages.flatMap((message) =>
    listImageUrls(message).filter(isLocalImage).map((url) => {
      const name = decodeURIComponent(url.slice(url.lastIndexOf("/") + 1));
      return { messageId: message.id, url, attached: message.attachments?.find((each) => each === name) };
    })
  );
}

/** Removes an image from its message and offers Undo. @throws {ApiError} */
async function detachImage(
  store: Store,
  chat: OpenChat,
  { messageId, attached }: ChatImage,
  texts: { done: string; undo: string },
): Promise<void> {
  const before = chat.pages.find(messageId)?.attachments ?? [];
  const put = async (names: readonly (string | undefined)[]) => {
    // An empty list clears the field.
    const attachments = names.length === 0 ? null : names;
    await store.api.changeMessage(chat.id, messageId, { attachments } as Partial<Message>);
    chat.pages.edit(messageId, { attachments: names as string[] });
  };
  await put(before.filter((name) => name !== attached));
  const undo = () => void put(before).catch((thrown) => store.report(thrown));
  store.toasts.offerUndo(texts.done, texts.undo, undo, () => {});
}
