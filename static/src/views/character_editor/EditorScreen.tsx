/** The card editor: its sections as tabs, the save status, and conflicts. */
import { useMemo, useState } from "preact/hooks";
import { characterPath, type VersionedCharacter } from "../../api/characters.ts";
import { Drafted } from "../../components/forms/Drafted.tsx";
import { Button, IconButton, LinkButton } from "../../components/Button.tsx";
import { EmptyState, ErrorNote, Notice } from "../../components/Notice.tsx";
import { Tabs } from "../../components/Tabs.tsx";
import { useMedia, useTitle } from "../../components/hooks.ts";
import { PHONE_QUERY } from "../../components/overlays/Menu.tsx";
import type { FormDraft } from "../../state/app/form_draft.ts";
import { type CharacterGeneration, findEditor, findGeneration } from "../../state/characters/character_generation.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import {
  AdvancedSection,
  DocumentsSection,
  IdentitySection,
  LorebookSection,
  ScenarioSection,
  VoiceSection,
} from "./EditorSections.tsx";
import { ConflictNotice, listDifferingFields, SaveStatus, useEditor } from "../documents/EditorFrame.tsx";
import { HistoryDialog, type VersionFields } from "../documents/HistoryDialog.tsx";
import { PageHeader } from "../shell/PageHeader.tsx";
import type { CardData, Character, DocumentUse } from "../../api/types.ts";
import type { Api } from "../../api/api.ts";
import { type StoredVersion, VersionedEditor } from "../../state/documents/versioned_editor.ts";

const PARTS = {
  identity: IdentitySection,
  voice: VoiceSection,
  scene: ScenarioSection,
  lorebook: LorebookSection,
  documents: DocumentsSection,
  advanced: AdvancedSection,
};
type Section = keyof typeof PARTS;

/** The screen. */
export function EditorScreen({ id }: { id: string }) {
  const store = useStore();
  const editor = useMemo(() => findEditor(store, id, () => new CardEditor(store.api, id)), [id]);
  const creation = findGeneration(store, id);
  const draft = useEditor(editor);
  const t = texts.editor;
  const load = editor.load.value;
  const name = editor.data.value?.name ?? "";
  const back = `/characters/${encodeURIComponent(id)}`;
  // Next to the buttons there is no space for more than the name.
  const isPhone = useMedia(PHONE_QUERY);
  useTitle(`${t.title(name)} · ${texts.product}`);
  return (
    <main id="main" class="page characters-page" tabIndex={-1}>
      <PageHeader title={isPhone ? name : t.title(name)}>
        {load.kind === "ready" && <SaveStatus editor={editor} />}
        {load.kind === "ready" && !editor.document.value?.external && <CardHistory editor={editor} />}
        <a class="back-link" href={back}>{t.done}</a>
      </PageHeader>
      {load.kind === "loading" && <p class="chat-loading" role="status">{texts.loading}</p>}
      {load.kind === "missing" && (
        <EmptyState title={texts.characters.missingTitle} text={texts.characters.missingText}>
          <LinkButton href="/characters" kind="primary">{texts.characters.title}</LinkButton>
        </EmptyState>
      )}
      {load.kind === "failed" && (
        <div class="column padded">
          <ErrorNote title={texts.characters.oneFailed} error={load.error} onRetry={() => void editor.open()} />
        </div>
      )}
      {load.kind === "ready" && <Editor editor={editor} creation={creation} draft={draft} />}
    </main>
  );
}

/** What was typed is saved first, so that it becomes a version, too. */
function CardHistory({ editor }: { editor: CardEditor }) {
  const [isOpen, setOpen] = useState(false);
  const data = editor.data.value!;
  return (
    <>
      <IconButton
        icon="history"
        label={texts.history.open}
        onClick={() => void editor.save().then(() => setOpen(true))}
      />
      {isOpen && (
        <HistoryDialog
          path={characterPath(editor.id)}
          name={data.name}
          current={data}
          fieldsOf={({ card }) => (card as { data: VersionFields }).data}
          names={texts.editor.fields}
          onRestored={() => void editor.open()}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}

function Editor(
  { editor, creation, draft }: { editor: CardEditor; creation: CharacterGeneration | undefined; draft: FormDraft },
) {
  const { router } = useStore();
  // The fragment `#lorebook` opens that section.
  const linkedPart = (Object.keys(PARTS) as Section[]).find((id) => id === router.hash.peek());
  const [part, setPart] = useState<Section>(linkedPart ?? "identity");
  const t = texts.editor;
  if (editor.document.value?.external) {
    return (
      <div class="column padded">
        <Notice tone="info">{texts.characters.readOnly}</Notice>
      </div>
    );
  }
  const Shown = PARTS[part];
  const error = editor.error.value;
  const tabs = (Object.keys(PARTS) as Section[]).map((id) => ({ id, title: t.parts[id] }));
  return (
    <div class="editor">
      <div class="column">
        {creation && <GenerationNotice creation={creation} />}
        <ConflictNotice
          editor={editor}
          title={t.clash}
          differences={(mine, theirs) => listDifferingFields(mine, theirs, t.fields)}
        />
        {error && <ErrorNote title={t.saveFailed} error={error} onRetry={() => void editor.save()} />}
        <Tabs label={t.label} tabs={tabs} current={part} onSelect={setPart}>
          <div class="form editor-part">
            <Drafted draft={draft}>
              <Shown key={part} editor={editor} />
            </Drafted>
          </div>
        </Tabs>
      </div>
    </div>
  );
}

/** Nothing after success. */
function GenerationNotice({ creation }: { creation: CharacterGeneration }) {
  const t = texts.creator;
  const { fields } = texts.editor;
  const current = creation.current.value ?? "";
  if (creation.isRunning) {
    const field = Object.hasOwn(fields, current) ? fields[current as keyof typeof fields] : "";
    return (
      <div class="generation-progress">
        <p role="status">
          <span class="pulse" aria-hidden="true" /> {field === "" ? t.writing : t.writingField(field)}
        </p>
        <Button icon="stop" onClick={() => creation.stop()}>{t.stop}</Button>
      </div>
    );
  }
  const error = creation.error.value;
  if (error) return <ErrorNote title={t.cutOff} error={error} />;
  if (creation.isCut.value) return <Notice tone="warning" title={t.tooLong}>{t.tooLongText}</Notice>;
  return null;
}

/** One card in the editor. It is not saved without a name. */
export class CardEditor extends VersionedEditor<Character, CardData> {
  readonly #api: Api;

  constructor(api: Api, id: string) {
    super({
      id,
      kind: "character",
      read: async () => toStoredVersion(await api.getCharacter(id)),
      write: async (data, version, { card }) =>
        toStoredVersion(await api.saveCharacter(id, { ...card, data }, version)),
      isComplete: ({ name }) => name.trim() !== "",
    });
    this.#api = api;
  }

  /** Changes the documents of the character; unsaved changes of its card are saved first. @throws {ApiError} */
  async changeDocuments(change: (uses: readonly DocumentUse[]) => DocumentUse[]): Promise<void> {
    await this.save();
    const { character, version } = await this.#api.getCharacter(this.id);
    await this.#api.saveCharacterDocuments(this.id, character.card, change(character.documents ?? []), version);
    await this.open();
  }
}

function toStoredVersion({ character, version }: VersionedCharacter): StoredVersion<Character, CardData> {
  return { document: character, data: character.card.data, version };
}
