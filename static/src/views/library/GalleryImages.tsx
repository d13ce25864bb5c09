/** All generated images with their prompts, chats and times, newest first. */
import { useEffect, useState } from "preact/hooks";
import { type ImageApi, imageApi } from "../../api/images.ts";
import type { ChangeEvent, GalleryImage } from "../../api/types.ts";
import { ApiImage } from "../../components/ApiFile.tsx";
import { Button, IconButton, LinkButton } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { Modal } from "../../components/overlays/Dialog.tsx";
import { LatestRead } from "../../state/app/latest_read.ts";
import { useStore } from "../../state/store.ts";
import { formatTime } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { useResource } from "../hooks.tsx";
import { GenerateAgainDialog } from "../images/GenerateImageDialog.tsx";
import { DownloadImage, LargeImage } from "../images/ImageViewer.tsx";
import { ChatSelect } from "../documents/DocumentsPage.tsx";
import { ChatLink } from "./ChatLink.tsx";
import { batch, computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";

/** Pause in typing before the search, in milliseconds. */
const SEARCH_AFTER_MS = 200;

/** The grid. An image opens large, with what it was generated with. */
export function GalleryImages() {
  const store = useStore();
  const t = texts.gallery;
  const [gallery] = useState(() => new ImageGallery(imageApi(store.api.client)));
  const [openId, setOpenId] = useState<string>();
  const [words, setWords] = useState("");
  const [chat, setChat] = useState("");
  const isFiltered = words.trim() !== "" || chat !== "";
  useEffect(() => {
    const timer = setTimeout(() => gallery.narrow({ words: words.trim(), chat }), SEARCH_AFTER_MS);
    return () => clearTimeout(timer);
  }, [words, chat]);
  useEffect(() => {
    void gallery.refresh();
    return store.listen((event) => gallery.onChange(event));
  }, []);
  const { items, error, hasMore, isLoading } = gallery;
  const open = items.value?.find(({ id }) => id === openId);
  const remove = (image: GalleryImage) => {
    setOpenId(undefined);
    gallery.hide(image.id);
    // Its message would be changed, so it is deleted only when the offer to undo ends.
    store.toasts.offerUndo(
      t.removed,
      texts.undo,
      () => gallery.show(image.id),
      () => void gallery.remove(image.id).catch((thrown) => store.report(thrown)),
    );
  };
  return (
    <section aria-label={texts.library.images}>
      {(isFiltered || items.value?.length !== 0) && (
        <div class="library-filter">
          <TextField label={texts.library.searchImages} type="search" value={words} onInput={setWords} />
          <ChatSelect label={texts.library.chat} none={texts.library.anyChat} value={chat} onChange={setChat} />
        </div>
      )}
      {error.value && <ErrorNote title={t.failed} error={error.value} onRetry={() => void gallery.refresh()} />}
      {items.value === undefined && !error.value && <p class="muted" role="status">{texts.loading}</p>}
      {items.value?.length === 0 && !hasMore.value &&
        (isFiltered ? <p role="status">{texts.library.noMatch}</p> : <Nothing />)}
      <ul class="zoom-grid gallery-grid">
        {items.value?.map((image) => (
          <li key={image.id}>
            <button
              type="button"
              aria-label={image.error ? t.details : t.image(image.prompt)}
              onClick={() => setOpenId(image.id)}
            >
              <ApiImage src={`/api/image/gallery/${image.id}/thumbnail`} alt="" loading="lazy" decoding="async" />
            </button>
            <p class="gallery-prompt" title={image.prompt}>{image.prompt}</p>
            <p class="muted">{formatTime(image.created_at, new Date())}</p>
            {image.conversation_id !== undefined && (
              <ChatLink
                id={image.conversation_id}
                messageId={image.message_id}
              />
            )}
          </li>
        ))}
      </ul>
      {hasMore.value && <Button isBusy={isLoading.value} onClick={() => void gallery.loadMore()}>{t.more}</Button>}
      {open && <OpenImage image={open} onRemove={() => remove(open)} onClose={() => setOpenId(undefined)} />}
    </section>
  );
}

/** The next step: an image server, or a chat to generate the first image in. */
function Nothing() {
  const store = useStore();
  const t = texts.gallery;
  const { value: backends, error } = useResource(() => imageApi(store.api.client).listBackends(), "image_connection");
  const hasBackend = backends !== undefined && backends.length > 0;
  return (
    <EmptyState title={t.none} text={t.noneText}>
      {(backends || error) && (
        <LinkButton href={hasBackend ? "/new" : "/settings/images"} kind="primary">
          {hasBackend ? t.newChat : t.start}
        </LinkButton>
      )}
    </EmptyState>
  );
}

function OpenImage(
  { image, onRemove, onClose }: { image: GalleryImage; onRemove: () => void; onClose: () => void },
) {
  const t = texts.gallery;
  const [isAgain, setAgain] = useState(false);
  const { conversation_id: chat, message_id: message } = image;
  return (
    <Modal class="zoom" label={t.details} onClose={onClose}>
      <div class="zoom-content">
        <div class="zoom-bar">
          {!image.error && <Button icon="redo" onClick={() => setAgain(true)}>{t.again}</Button>}
          <span class="zoom-space" />
          <DownloadImage url={image.url} />
          <IconButton icon="trash" label={t.remove} onClick={onRemove} />
          <IconButton icon="close" label={texts.close} onClick={onClose} />
        </div>
        <div class="gallery-open">
          <LargeImage url={image.url} alt={image.prompt} />
          <section class="gallery-facts">
            {image.error && <p>{t.unreadable}</p>}
            {chat !== undefined && (
              <LinkButton href={`/c/${encodeURIComponent(chat)}${message ? `#${encodeURIComponent(message)}` : ""}`}>
                {t.chat}
              </LinkButton>
            )}
            <dl>
              {listSettings(image).map(([name, value]) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{value}</dd>
                </div>
              ))}
            </dl>
          </section>
        </div>
      </div>
      {isAgain && <GenerateAgainDialog image={image} onClose={() => setAgain(false)} />}
    </Modal>
  );
}

/** The settings of the image, without unknown and empty ones. */
function listSettings({ prompt, model, settings, checkpoint, workflow_id, created_at, width, height }: GalleryImage) {
  const t = texts.images;
  const all: [string, string | number | null | undefined][] = [
    [texts.gallery.prompt, prompt],
    [texts.gallery.model, model],
    [t.negative, settings.negative_prompt],
    [texts.gallery.size, `${width} × ${height}`],
    [texts.gallery.seed, settings.seed],
    [t.steps, settings.steps],
    [t.cfgScale, settings.cfg_scale],
    [t.sampler, settings.sampler],
    [t.scheduler, settings.scheduler],
    [t.checkpoint, checkpoint],
    [t.workflow, workflow_id],
    [texts.gallery.created, formatTime(created_at, new Date())],
  ];
  return all.filter(([, value]) => value !== undefined && value !== null && value !== "");
}

/** What the images are narrowed to; `""` for all. */
interface ImageFilter {
  words: string;
  /** Id of a chat. */
  chat: string;
}

/** The state of the page. */
class ImageGallery {
  readonly error = signal<ApiError | undefined>(undefined);
  readonly isLoading = signal(false);
  readonly #loaded = signal<GalleryImage[] | undefined>(undefined);
  readonly #hidden = signal<ReadonlySet<string>>(new Set());
  readonly #cursor = signal<string | null>(null);
  readonly #api: ImageApi;
  readonly #refreshes = new LatestRead();
  #filter: ImageFilter = { words: "", chat: "" };
  /** The filter of what is shown. */
  #shownFilter = this.#filter;
  /** Newest first; undefined until the first page is there. */
  readonly items = computed(() => this.#loaded.value?.filter(({ id }) => !this.#hidden.value.has(id)));
  readonly hasMore = computed(() => this.#cursor.value !== null);

  constructor(api: ImageApi) {
    this.#api = api;
  }

  /** Shows only the images that match. The others stay until these are there. */
  narrow(filter: ImageFilter): void {
    if (filter.words === this.#filter.words && filter.chat === this.#filter.chat) return;
    this.#filter = filter;
    void this.refresh();
  }

  /** Loads the first page; later ones that are shown stay. */
  async refresh(): Promise<void> {
    await this.#load(undefined);
  }

  /** Loads the next page. */
  async loadMore(): Promise<void> {
    const cursor = this.#cursor.peek();
    if (cursor !== null && !this.isLoading.peek()) await this.#load(cursor);
  }

  /** Handles an event of the server; `undefined` if events may have been missed. */
  onChange(event: ChangeEvent | undefined): void {
    if (event === undefined || event.kind === "generated_image") void this.refresh();
  }

  /** Hides an image until it is removed or shown again. */
  hide(id: string): void {
    this.#hidden.value = new Set([...this.#hidden.peek(), id]);
  }

  /** Shows a hidden image again. */
  show(id: string): void {
    this.#hidden.value = new Set([...this.#hidden.peek()].filter((other) => other !== id));
  }

  /** Deletes an image, also from its message. @throws {ApiError} */
  async remove(id: string): Promise<void> {
    try {
      await this.#api.deleteImage(id);
      this.#loaded.value = this.#loaded.peek()?.filter((image) => image.id !== id);
    } catch (thrown) {
      this.show(id);
      throw thrown;
    }
  }

  async #load(cursor: string | undefined): Promise<void> {
    this.isLoading.value = true;
    const reads = cursor === undefined ? this.#refreshes : new LatestRead();
    const filter = this.#filter;
    const read = () =>
      this.#api.listImages({
        ...(cursor !== undefined && { cursor }),
        ...(filter.words !== "" && { q: filter.words }),
        ...(filter.chat !== "" && { conversation_id: filter.chat }),
      });
    try {
      await reads.run(read, ({ items, next_cursor }) =>
        batch(() => {
          if (filter !== this.#filter) return;
          const loaded = filter === this.#shownFilter ? this.#loaded.peek() ?? [] : [];
          this.#shownFilter = filter;
          const isFirst = loaded.length === 0;
          // Ids increase with time: what is older than the page was loaded before and stays.
          const older = next_cursor === null ? [] : loaded.filter(({ id }) => id < next_cursor);
          const newer = cursor === undefined ? [] : loaded.filter(({ id }) => id >= cursor);
          this.#loaded.value = [...newer, ...items, ...older];
          if (cursor !== undefined || isFirst || older.length === 0) this.#cursor.value = next_cursor;
          this.error.value = undefined;
        }));
    } catch (thrown) {
      this.error.value = asApiError(thrown);
    } finally {
      this.isLoading.value = false;
    }
  }
}
