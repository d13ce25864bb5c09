/** The form of one persona. */
import { useEffect, useRef, useState } from "preact/hooks";
import { personaPath } from "../../api/characters.ts";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { DocumentUse, Persona } from "../../api/types.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, LinkButton } from "../../components/Button.tsx";
import { EmptyState, ErrorNote, Notice } from "../../components/Notice.tsx";
import { Portrait } from "../../components/Portrait.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { NumberInput, Select } from "../../components/forms/inputs.tsx";
import { newId } from "../../state/app/ids.ts";
import { ACCEPTED_IMAGES, convertImage } from "../../state/chat/attachments.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { CharacterPicker } from "../CharacterPicker.tsx";
import { countTokens } from "../character_editor/fields.tsx";
import { toPersonaPortraitProps } from "../characters/Avatars.tsx";
import { AlwaysAttached } from "../documents/AlwaysAttached.tsx";
import { HistoryDialog } from "../documents/HistoryDialog.tsx";

const NO_DOCUMENTS: readonly DocumentUse[] = [];

type Read = { persona: Persona; version: string };

/** The form, once its persona is loaded; without an id it creates one. */
export function PersonaFormPage({ id }: { id: string | undefined }) {
  const { api } = useStore();
  const [read, setRead] = useState<Read>();
  const [error, setError] = useState<ApiError>();
  const load = () => {
    setError(undefined);
    if (id !== undefined) api.getPersona(id).then(setRead, (thrown) => setError(asApiError(thrown)));
  };
  useEffect(load, [id]);
  const t = texts.personas;
  if (error?.status === 404) {
    return (
      <EmptyState title={t.missing}>
        <LinkButton href="/settings/personas">{t.title}</LinkButton>
      </EmptyState>
    );
  }
  if (error) return <ErrorNote title={t.loadFailed} error={error} onRetry={load} />;
  if (id !== undefined && !read) return <p class="muted" role="status">{texts.loading}</p>;
  return (
    <section>
      <h2>{read ? t.editTitle : t.addTitle}</h2>
      <PersonaForm key={read?.version} read={read} onRestored={load} />
    </section>
  );
}

function PersonaForm({ read, onRestored }: { read: Read | undefined; onRestored: () => void }) {
  const store = useStore();
  const [id] = useState(() => read?.persona.id ?? newId());
  const [name, setName] = useState(read?.persona.name ?? "");
  const [description, setDescription] = useState(read?.persona.description ?? "");
  const [placement, setPlacement] = useState(read?.persona.placement ?? null);
  const [characterIds, setCharacterIds] = useState(read?.persona.character_ids ?? []);
  const stored = read?.persona.documents ?? NO_DOCUMENTS;
  const [documents, setDocuments] = useState(stored);
  const [version, setVersion] = useState(read?.version);
  const [image, setImage] = useState<File>();
  const [serverVersion, setServerVersion] = useState<Persona>();
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const [isHistoryOpen, setHistoryOpen] = useState(false);
  const t = texts.personas;
  const draft = useFormDraft(`persona:${read?.persona.id ?? "new"}`);
  const save = async (event: Event) => {
    event.preventDefault();
    if (name.trim() === "") return;
    setBusy(true);
    setError(undefined);
    try {
      const saved = await store.api.savePersona(id, {
        name: name.trim(),
        description,
        placement,
        character_ids: characterIds,
        ...(documents !== stored && { documents }),
      }, version);
      setVersion(saved.version);
      draft.clear();
      if (image) await store.api.setPersonaAvatar(id, await convertImage(image));
      await store.people.refreshPersonas();
      store.toasts.show(t.saved(name.trim()));
      store.router.go("/settings/personas");
    } catch (thrown) {
      await explain(asApiError(thrown));
      setBusy(false);
    }
  };
  // Someone else saved: their text is shown, and only saving again overwrites it.
  const explain = async (refused: ApiError) => {
    if (refused.status !== 412) return setError(refused);
    try {
      const now = await store.api.getPersona(id);
      setServerVersion(now.persona);
      setVersion(now.version);
    } catch (thrown) {
      setError(asApiError(thrown));
    }
  };
  return (
    <form class="form" onSubmit={save}>
      <Drafted draft={draft}>
        <ImageField persona={read?.persona} name={name} image={image} onImage={setImage} />
        <TextField label={t.name} value={name} maxLength={200} isRequired onInput={setName} />
        <TextField
          label={t.description}
          hint={[t.descriptionHint, countTokens(description)].filter(Boolean).join(" ")}
          rows={8}
          value={description}
          onInput={setDescription}
        />
        <PlacementFields placement={placement} onChange={setPlacement} />
        <CharacterPicker legend={t.charactersOf} ids={characterIds} onChange={setCharacterIds} />
      </Drafted>
      <div role="group" aria-label={texts.documents.alwaysAttached}>
        <p class="label">{texts.documents.alwaysAttached}</p>
        <AlwaysAttached uses={documents} hint={texts.documents.attachedToPersona} onChange={setDocuments} />
      </div>
      {serverVersion && (
        <Notice tone="warning" title={t.clash}>
          {t.clashText(serverVersion.name, serverVersion.description)}
        </Notice>
      )}
      {error && <ErrorNote title={t.saveFailed} error={error} />}
      <div class="actions-row">
        <Button type="submit" kind="primary" isBusy={isBusy}>{texts.save}</Button>
        <LinkButton href="/settings/personas" kind="quiet" onClick={() => draft.clear()}>{texts.cancel}</LinkButton>
        {read && <Button kind="quiet" icon="history" onClick={() => setHistoryOpen(true)}>{texts.history.open}</Button>}
      </div>
      {read && isHistoryOpen && (
        <HistoryDialog
          path={personaPath(id)}
          name={read.persona.name}
          current={{ name: read.persona.name, description: read.persona.description }}
          names={{ name: t.name, description: t.description }}
          onRestored={() => {
            void store.people.refreshPersonas();
            onRestored();
          }}
          onClose={() => setHistoryOpen(false)}
        />
      )}
    </form>
  );
}

type Placement = NonNullable<Persona["placement"]>;

/** Where prompts have the description. */
function PlacementFields(
  { placement, onChange }: { placement: Placement | null; onChange: (placement: Placement | null) => void },
) {
  const t = texts.personas;
  const { noteDepth, noteRole, roles } = texts.chatOptions.options;
  const { depth = 2, role = "system" } = placement ?? {};
  return (
    <>
      <Select
        id="persona-position"
        label={t.position}
        value={placement?.position ?? "preset"}
        options={(["preset", "note_top", "note_bottom", "at_depth", "none"] as const).map((value) => ({
          value,
          name: t.positions[value],
        }))}
        onChange={(position) => onChange(position === "preset" ? null : { position, depth, role })}
      />
      {placement?.position === "at_depth" && (
        <>
          <NumberInput
            id="persona-depth"
            label={noteDepth}
            value={depth}
            min={0}
            max={9_999}
            isRequired
            onChange={(value) => value !== undefined && onChange({ ...placement, depth: value })}
          />
          <Select
            id="persona-role"
            label={noteRole}
            value={role}
            options={(["system", "user", "assistant"] as const).map((value) => ({ value, name: roles[value] }))}
            onChange={(value) => onChange({ ...placement, role: value })}
          />
        </>
      )}
    </>
  );
}

/** The current or the new image. */
function ImageField(
  { persona, name, image, onImage }: {
    persona: Persona | undefined;
    name: string;
    image: File | undefined;
    onImage: (image: File) => void;
  },
) {
  const chooser = useRef<HTMLInputElement>(null);
  const [shownUrl, setShownUrl] = useState<string>();
  useEffect(() => {
    if (!image) return;
    const url = URL.createObjectURL(image);
    setShownUrl(url);
    return () => URL.revokeObjectURL(url);
  }, [image]);
  const shown = persona ? toPersonaPortraitProps(persona) : { path: undefined };
  return (
    <div class="persona-picture">
      {shownUrl
        ? (
          <span class="portrait persona-large" aria-hidden="true">
            <img src={shownUrl} alt="" />
          </span>
        )
        : <Portrait {...shown} name={name} widthPx={96} class="persona-large" />}
      <input
        ref={chooser}
        type="file"
        hidden
        accept={ACCEPTED_IMAGES}
        onChange={(event) => {
          const [file] = event.currentTarget.files ?? [];
          if (file) onImage(file);
        }}
      />
      <Button icon="image" onClick={() => chooser.current?.click()}>{texts.personas.picture}</Button>
    </div>
  );
}
