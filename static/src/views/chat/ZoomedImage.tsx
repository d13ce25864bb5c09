/** A picture of a message as large as the page allows, with its neighbours. */
import { useState } from "preact/hooks";
import { IconButton } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import { Modal } from "../../components/Modal.tsx";
import { texts } from "../../texts/texts.ts";

/** Escape and a click beside it close it; the arrow keys go to the others. */
export function ZoomedImage({ urls, first, onClose }: { urls: readonly string[]; first: number; onClose: () => void }) {
  const t = texts.images;
  const [at, setAt] = useState(first);
  const [isFull, setFull] = useState(false);
  const url = urls[at]!;
  const go = (step: number) => {
    setAt((at + step + urls.length) % urls.length);
    setFull(false);
  };
  return (
    <Modal class="zoom" label={texts.chat.image(at + 1)} onClose={onClose}>
      <div
        class="zoom-content"
        onKeyDown={(event) => {
          if (urls.length > 1 && event.key === "ArrowLeft") go(-1);
          else if (urls.length > 1 && event.key === "ArrowRight") go(1);
        }}
      >
        <div class="zoom-bar">
          {urls.length > 1 && (
            <>
              <IconButton icon="left" label={t.previous} onClick={() => go(-1)} />
              <span aria-live="polite">{t.place(at + 1, urls.length)}</span>
              <IconButton icon="right" label={t.next} onClick={() => go(1)} />
            </>
          )}
          <a class="icon-button quiet" href={url} download aria-label={t.download} title={t.download}>
            <Icon name="down" />
          </a>
          <IconButton icon="close" label={texts.close} onClick={onClose} />
        </div>
        <button
          type="button"
          class={isFull ? "zoom-image is-full" : "zoom-image"}
          aria-pressed={isFull}
          aria-label={t.fullSize}
          onClick={() => setFull(!isFull)}
        >
          <img src={url} alt={texts.chat.image(at + 1)} />
        </button>
      </div>
    </Modal>
  );
}
