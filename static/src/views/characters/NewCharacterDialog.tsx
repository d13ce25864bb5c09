/** Creates a character: with a name to continue in the editor, or from an idea that a model writes out. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { CancelButton, Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, IconButton } from "../../components/Button.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Tabs } from "../../components/Tabs.tsx";
import { createEmptyCard } from "../../state/characters/card_fields.ts";
import { newId } from "../../state/app/ids.ts";
import { useStore } from "../../state/store.ts";
import { language, LANGUAGES, texts } from "../../texts/texts.ts";
import { generationApi } from "../../api/character_generation.ts";
import { Switch } from "../../components/forms/inputs.tsx";
import { useNow } from "../../components/hooks.ts";
import {
  CharacterGeneration,
  notifyWhenGenerated,
  storeGeneration,
} from "../../state/characters/character_generation.ts";
import { ACCEPTED_IMAGES, ImageAttachments } from "../../state/chat/attachments.ts";
import { formatClock } from "../../texts/format.ts";

type Way = "name" | "idea";

/** Opens the editor when the character exists. */
export function NewCharacterDialog({ onClose }: { onClose: () => void }) {
  const [way, setWay] = useState<Way>("name");
  const t = texts.creator;
  const tabs = (["name", "idea"] as const).map((id) => ({ id, title: t.ways[id] }));
  return (
    <Dialog title={texts.characters.create} onClose={onClose}>
      <Tabs label={t.way} tabs={tabs} current={way} onSelect={setWay}>
        {way === "name" ? <NameForm onClose={onClose} /> : <GenerateForm onClose={onClose} />}
      </Tabs>
    </Dialog>
  );
}

function NameForm({ onClose }: { onClose: () => void }) {
  const store = useStore();
  const [name, setName] = useState("");
  const draft = useFormDraft("character:new");
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const t = texts.characters;
  const send = async (event: Event) => {
    event.preventDefault();
    if (name.trim() === "") return;
    setBusy(true);
    setError(undefined);
    try {
      const id = newId();
      await store.api.saveCharacter(id, createEmptyCard(name.trim()));
      draft.clear();
      onClose();
      store.router.go(`/characters/${id}/edit`);
    } catch (thrown) {
      setError(asApiError(thrown));
      setBusy(false);
    }
  };
  return (
    <form class="form" onSubmit={send}>
      <Drafted draft={draft}>
        <TextField label={t.name} value={name} onInput={setName} hasFocus isRequired maxLength={200} />
      </Drafted>
      {error && <ErrorNote title={t.createFailed} error={error} />}
      <div class="actions-row generation-actions">
        <CancelButton draft={draft} onCancel={onClose} />
        <Button kind="primary" type="submit" isBusy={isBusy}>{t.createDo}</Button>
      </div>
    </form>
  );
}

const MAX_IDEA = 20_000;

/**
 * Generates a character from an idea, an image, or both: in the editor or in the background. Closing it while waiting
 * for the model stops the model.
 */
function GenerateForm({ onClose }: { onClose: () => void }) {
  const store = useStore();
  const api = useMemo(() => generationApi(store.api.client), []);
  const images = useMemo(() => new ImageAttachments((name, blob) => store.api.putAttachment(name, blob)), []);
  const [idea, setIdea] = useState("");
  const draft = useFormDraft("character:idea");
  const [isPortrait, setPortrait] = useState(true);
  const [error, setError] = useState<ApiError>();
  const [creation, setCreation] = useState<CharacterGeneration>();
  const [isBusy, setBusy] = useState(false);
  const waiting = useRef<CharacterGeneration | undefined>(undefined);
  useEffect(() => () => waiting.current?.stop(), []);
  const t = texts.creator;
  const [image] = images.items.value;
  const isEmpty = idea.trim() === "" && image === undefined;

  const request = () => ({
    idea,
    picture: image?.url === undefined ? undefined : decodeURIComponent(image.url.split("/").at(-1)!),
    // Without an idea there is no language to infer.
    language: idea.trim() === "" ? LANGUAGES[language.peek()] : undefined,
  });
  const attempt = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
    } catch (thrown) {
      setError(asApiError(thrown));
    }
    setBusy(false);
  };

  const write = () =>
    attempt(async () => {
      const begun = waiting.current = new CharacterGeneration();
      setCreation(begun);
      void begun.run(api, request());
      try {
        if (!await begun.begun) {
          setError(begun.error.peek());
          return;
        }
        const id = newId();
        const card = createEmptyCard(t.nameless);
        Object.assign(card.data, begun.fields.peek());
        await store.api.saveCharacter(id, card);
        draft.clear();
        waiting.current = undefined;
        storeGeneration(store, id, begun);
        if (image?.url !== undefined && isPortrait) await setPortraitOf(id, image.url);
        onClose();
        store.router.go(`/characters/${id}/edit`);
      } finally {
        waiting.current?.stop();
        setCreation(undefined);
      }
    });
  const setPortraitOf = async (id: string, url: string) => {
    try {
      await store.api.setCharacterAvatar(id, await store.api.loadImage(url));
    } catch (thrown) {
      store.report(thrown);
    }
  };
  const writeInBackground = () =>
    attempt(async () => {
      const job = await api.start(request(), isPortrait);
      draft.clear();
      notifyWhenGenerated(store, job);
      store.toasts.show(t.started, { action: { label: t.show, run: () => store.router.go("/activity") } });
      onClose();
    });

  if (creation !== undefined) return <WritingProgress onStop={() => creation.stop()} />;
  const isBlocked = isEmpty || images.isBusy.value;
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isBlocked) void write();
      }}
    >
      <Drafted draft={draft}>
        <TextField
          label={t.idea}
          hint={t.ideaHint}
          rows={5}
          value={idea}
          onInput={setIdea}
          hasFocus
          maxLength={MAX_IDEA}
        />
      </Drafted>
      <ImagePicker images={images} onError={(thrown) => setError(asApiError(thrown))} />
      {image && <Switch label={t.portrait} isOn={isPortrait} onChange={setPortrait} />}
      {error && <ErrorNote title={t.failed} error={error} />}
      <div class="actions-row generation-actions">
        <Button isBusy={isBusy} isDisabled={isBlocked} onClick={() => void writeInBackground()}>
          {t.inBackground}
        </Button>
        <Button kind="primary" type="submit" isBusy={isBusy} isDisabled={isBlocked}>{t.write}</Button>
      </div>
    </form>
  );
}

function WritingProgress({ onStop }: { onStop: () => void }) {
  const now = useNow(true);
  const [begunAtMs] = useState(() => Date.now());
  return (
    <div class="form">
      <div class="generation-waiting" role="status">
        <span class="pulse" aria-hidden="true" />
        <span>
          <span class="visually-hidden">{texts.chat.waitingPlain}</span>
          <span aria-hidden="true">{texts.chat.waiting(formatClock(Math.max(0, now - begunAtMs)))}</span>
        </span>
      </div>
      <p class="hint">{texts.creator.waitingHint}</p>
      <div class="actions-row generation-actions">
        <Button icon="stop" onClick={onStop}>{texts.creator.stop}</Button>
      </div>
    </div>
  );
}

/** At most one image; another one replaces it. */
function ImagePicker(
  { images: images, onError }: { images: ImageAttachments; onError: (thrown: unknown) => void },
) {
  const chooser = useRef<HTMLInputElement>(null);
  const [image] = images.items.value;
  const t = texts.creator;
  const add = async (file: File | undefined) => {
    if (!file) return;
    try {
      images.take();
      await images.add(file);
    } catch (thrown) {
      onError(thrown);
    }
  };
  return (
    <div class="generation-image">
      <input
        ref={chooser}
        type="file"
        hidden
        accept={ACCEPTED_IMAGES}
        onChange={(event) => {
          void add(event.currentTarget.files?.[0]);
          event.currentTarget.value = "";
        }}
      />
      {image && <img src={image.shownUrl} alt={image.name} />}
      <div>
        <div class="actions-row">
          <Button icon="image" onClick={() => chooser.current?.click()}>
            {image ? t.otherPicture : t.addPicture}
          </Button>
          {image && <IconButton icon="trash" label={t.removePicture} onClick={() => images.take()} />}
        </div>
        <p class="hint">{images.isBusy.value ? texts.loading : t.pictureHint}</p>
      </div>
    </div>
  );
}
