/** The image behind the messages, and the field that chooses it. */
import { ApiImage, useFileUrl } from "../../components/ApiFile.tsx";
import { useRef, useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import { ACCEPTED_IMAGES, isImageFile, storeImage } from "../../state/chat/attachments.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** @param props.url URL path of an attachment. */
export function ChatBackground({ url }: { url: string }) {
  const file = useFileUrl(url);
  if (file === undefined) return null;
  return <div class="chat-background" aria-hidden="true" style={{ backgroundImage: `url("${file}")` }} />;
}

/**
 * The choice of the image behind chats: a select for a chat, and buttons for the image.
 *
 * Props: `value` (URL path of an attachment, `none`, or nothing), `onChange(value)` (`null` clears); `hasDefault?` (a
 * chat that can follow the settings), `id?`.
 */
export function BackgroundField(
  { id, value, hasDefault = false, onChange }: {
    id?: string;
    value: string | null | undefined;
    hasDefault?: boolean;
    onChange: (value: string | null) => Promise<void>;
  },
) {
  const store = useStore();
  const t = texts.background;
  const chooser = useRef<HTMLInputElement>(null);
  const [isBusy, setBusy] = useState(false);
  const image = value && value !== "none" ? value : undefined;
  const change = (chosen: string | null) => onChange(chosen).catch((thrown) => store.report(thrown));
  const upload = async (file: File | undefined) => {
    if (file === undefined) return;
    if (!isImageFile(file)) return store.toasts.show(t.noImage, { isError: true });
    setBusy(true);
    try {
      await onChange(await storeImage((name, image) => store.api.putAttachment(name, image), file));
    } catch (thrown) {
      store.report(thrown);
    }
    setBusy(false);
  };
  return (
    <div class="form" id={id}>
      {hasDefault && (
        <Select
          label={t.label}
          value={image === undefined ? value ?? "default" : "image"}
          options={[
            { value: "default", name: t.options.default },
            { value: "none", name: t.options.none },
            { value: "image", name: t.options.image },
          ]}
          onChange={(chosen) =>
            chosen === "image" ? chooser.current?.click() : void change(chosen === "none" ? "none" : null)}
        />
      )}
      {image && <ApiImage class="background-sample" src={image} alt={t.sample} loading="lazy" />}
      <div class="actions-row">
        <Button icon="image" isBusy={isBusy} onClick={() => chooser.current?.click()}>
          {image ? t.change : t.choose}
        </Button>
        {image && !hasDefault && <Button kind="quiet" onClick={() => void change(null)}>{t.remove}</Button>}
        <input
          ref={chooser}
          type="file"
          hidden
          accept={ACCEPTED_IMAGES}
          onChange={(event) => {
            void upload(event.currentTarget.files?.[0]);
            event.currentTarget.value = "";
          }}
        />
      </div>
    </div>
  );
}
