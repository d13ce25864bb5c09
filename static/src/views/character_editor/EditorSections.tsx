/** The sections of the card editor. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { CardBook, CardData, DocumentUse, LorebookEntry } from "../../api/types.ts";
import { DraftedPart } from "../../components/forms/Drafted.tsx";
import { Button, IconButton } from "../../components/Button.tsx";
import { CodeBlock } from "../../components/content/CodeBlock.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import type { CardEditor } from "./EditorScreen.tsx";
import { getCardVoice, setCardVoice } from "../../state/characters/profiles.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatDateTime } from "../../texts/format.ts";
import { CardText, CardTexts, CardWordLists, countTokens } from "./fields.tsx";
import { useVoices, VoicePicker } from "../speech/VoicePicker.tsx";
import { AlwaysAttached } from "../documents/AlwaysAttached.tsx";
import { Icon } from "../../components/Icon.tsx";
import { EMPTY_ENTRY, getEntryTitle } from "../../state/documents/lorebook_entries.ts";
import { EntryForm } from "../lorebooks/EntryForm.tsx";

/** Name, description, personality. */
export function IdentitySection({ editor }: { editor: CardEditor }) {
  const t = texts.editor;
  return (
    <>
      <CardText editor={editor} field="name" />
      <CardText editor={editor} field="nickname" />
      <CardText editor={editor} field="description" rows={12} />
      <CardText editor={editor} field="personality" rows={4} />
      <CardWordLists
        label={t.fields.tags}
        hint={t.hints.tags}
        between="commas"
        values={editor.data.value!.tags}
        onChange={(tags) => editor.set({ tags })}
      />
    </>
  );
}

/** Greetings and example messages. */
export function VoiceSection({ editor }: { editor: CardEditor }) {
  return (
    <>
      <CardText editor={editor} field="first_mes" rows={8} />
      <CardTexts editor={editor} field="alternate_greetings" />
      <CardTexts editor={editor} field="group_only_greetings" />
      <CardText editor={editor} field="mes_example" rows={10} />
      <CardVoice editor={editor} />
    </>
  );
}

/** Scenario and prompts. */
export function ScenarioSection({ editor }: { editor: CardEditor }) {
  return (
    <>
      <CardText editor={editor} field="scenario" rows={6} />
      <CardText editor={editor} field="system_prompt" rows={6} />
      <CardText editor={editor} field="post_history_instructions" rows={5} />
      <AuthorNote editor={editor} />
    </>
  );
}

/** The author's note of the character, in Parlor's part of the extensions. */
function AuthorNote({ editor }: { editor: CardEditor }) {
  const { parlor: given, ...others } = editor.data.value!.extensions;
  const { note, ...parlor } = { ...given as Record<string, unknown> | undefined };
  const { text, place } = { ...note as Record<string, unknown> | undefined };
  const t = texts.editor.authorNote;
  const shown = typeof text === "string" ? text : "";
  const chosen = NOTE_PLACES.find((one) => one === place) ?? "replace";
  const set = (text: string, place: string) => {
    const own = text === "" ? parlor : { ...parlor, note: { text, place } };
    editor.set({ extensions: Object.keys(own).length === 0 ? others : { ...others, parlor: own } }, "author_note");
  };
  return (
    <>
      <TextField
        label={t.text}
        hint={[t.textHint, countTokens(shown)].filter(Boolean).join(" ")}
        rows={3}
        value={shown}
        onInput={(typed) => set(typed, chosen)}
      />
      {shown !== "" && (
        <Select
          label={t.place}
          value={chosen}
          options={NOTE_PLACES.map((value) => ({ value, name: t.places[value] }))}
          onChange={(value) => set(shown, value)}
        />
      )}
    </>
  );
}

const NOTE_PLACES = ["replace", "before", "after"] as const;

/** Creator, version, and fields of other programs. */
export function AdvancedSection({ editor }: { editor: CardEditor }) {
  const { extensions } = editor.data.value!;
  const t = texts.editor;
  return (
    <>
      <CardText editor={editor} field="creator" />
      <CardText editor={editor} field="character_version" />
      <CardText editor={editor} field="creator_notes" rows={8} isCounted={false} />
      <NotesByLanguage editor={editor} />
      <CardOrigin data={editor.data.value!} />
      <section>
        <h2>{t.fields.extensions}</h2>
        <p class="hint">{t.hints.extensions}</p>
        <CodeBlock language="json" text={JSON.stringify(extensions, null, 2)} isOpen={false} />
      </section>
    </>
  );
}

/** Nothing if the card has no such fields. */
function CardOrigin({ data }: { data: CardData }) {
  const t = texts.editor;
  const source = toTextList(data.source).filter((one) => typeof one === "string");
  const assets = toTextList(data.assets).map(getLanguageName).filter((name) => name !== "");
  const dates = ([["creation_date", data.creation_date], ["modification_date", data.modification_date]] as const)
    .flatMap(([field, seconds]) => isTime(seconds) ? [{ field, iso: new Date(seconds * 1000).toISOString() }] : []);
  if (source.length + assets.length + dates.length === 0) return null;
  return (
    <section>
      <h2>{t.origin}</h2>
      <dl class="facts">
        {source.length > 0 && (
          <>
            <dt>{t.fields.source}</dt>
            <dd>{source.map((one) => <div key={one}>{toLink(one)}</div>)}</dd>
          </>
        )}
        {dates.map(({ field, iso }) => (
          <>
            <dt key={field}>{t.fields[field]}</dt>
            <dd>{formatDateTime(iso)}</dd>
          </>
        ))}
        {assets.length > 0 && (
          <>
            <dt>{t.fields.assets}</dt>
            <dd>{assets.map((name, index) => <div key={index}>{name}</div>)}</dd>
          </>
        )}
      </dl>
    </section>
  );
}

function toTextList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** V3: 0 means unknown. The upper bound is the largest date. */
function isTime(value: unknown): value is number {
  return typeof value === "number" && value > 0 && value <= 8.64e12;
}

function getLanguageName(asset: unknown): string {
  const { type, name, ext } = (asset ?? {}) as Record<string, unknown>;
  return [type, name, ext].filter((part) => typeof part === "string" && part !== "").join(" · ");
}

function toLink(text: string) {
  if (!/^https?:\/\//i.test(text)) return text;
  return <a href={text} target="_blank" rel="noopener noreferrer nofollow">{text}</a>;
}

/** The voice picker; the default is the configured voice. */
function CardVoice({ editor }: { editor: CardEditor }) {
  const { speaking } = useStore();
  const voices = useVoices();
  useEffect(() => () => speaking.stop(), []);
  const data = editor.data.value!;
  const t = texts.voice;
  return (
    <VoicePicker
      {...voices}
      draftKey={`voice_name:${editor.id}`}
      label={t.character}
      hint={t.characterHint}
      standard={t.noCharacterVoice}
      value={getCardVoice(data) ?? ""}
      onChange={(voice) => editor.set({ extensions: setCardVoice(data, voice || undefined) })}
    />
  );
}

/** ISO 639-1 */
const CODES =
  "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee " +
  "el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja " +
  "jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne " +
  "ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su " +
  "sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu";

/** One text per language, and a select to add another. */
function NotesByLanguage({ editor }: { editor: CardEditor }) {
  const { creator_notes_multilingual: given } = editor.data.value!;
  // A file may have anything here; only texts can be edited.
  const notes = Object.fromEntries(Object.entries(given ?? {}).filter(([, text]) => typeof text === "string"));
  const add = useRef<HTMLDivElement>(null);
  const t = texts.editor;
  const names = new Intl.DisplayNames([texts.locale], { type: "language", fallback: "code" });
  const getLanguageName = (code: string) => /^[a-z]{2,3}(-[a-z0-9]+)*$/i.test(code) ? names.of(code) ?? code : code;
  const set = (changed: Record<string, string>) => {
    // A card without any omits the field.
    editor.set({ creator_notes_multilingual: Object.keys(changed).length === 0 ? undefined : changed });
  };
  const others = CODES.split(" ").filter((code) => !Object.hasOwn(notes, code))
    .map((code) => ({ value: code, name: getLanguageName(code) }))
    .sort((a, b) => a.name.localeCompare(b.name, texts.locale));
  return (
    <fieldset class="editor-list">
      <legend>{t.fields.creator_notes_multilingual}</legend>
      {Object.entries(notes).map(([code, text]) => (
        <div class="editor-list-item" key={code}>
          <TextField
            label={t.notesIn(getLanguageName(code))}
            rows={4}
            value={text}
            onInput={(typed) => set({ ...notes, [code]: typed })}
          />
          <IconButton
            icon="trash"
            label={t.removeNotesIn(getLanguageName(code))}
            onClick={() => {
              const { [code]: _, ...left } = notes;
              set(left);
              add.current?.querySelector("select")?.focus();
            }}
          />
        </div>
      ))}
      <div ref={add}>
        <Select
          label={t.addLanguage}
          value=""
          options={[{ value: "", name: "–" }, ...others]}
          onChange={(code) => code !== "" && set({ ...notes, [code]: "" })}
        />
      </div>
    </fieldset>
  );
}

/**
 * The documents of a character. They aren't part of its card, so they are saved separately, at once. Lists, adds and
 * removes them.
 */
export function DocumentsSection({ editor }: { editor: CardEditor }) {
  const store = useStore();
  const saving = useRef<Promise<void>>(Promise.resolve());
  // One after the other, since each change depends on the stored state.
  const save = (change: (uses: readonly DocumentUse[]) => DocumentUse[]) => {
    saving.current = saving.current.then(() => editor.changeDocuments(change)).catch((thrown) => store.report(thrown));
  };
  return (
    <AlwaysAttached
      uses={editor.document.value?.documents ?? []}
      hint={texts.documents.attachedToCharacter}
      onChange={save}
    />
  );
}

/** All entries, collapsed. */
export function LorebookSection({ editor }: { editor: CardEditor }) {
  const t = texts.editor;
  const book = editor.data.value!.character_book;
  const entries = book?.entries ?? [];
  const [opened, setOpened] = useState<number>();
  const add = useRef<HTMLDivElement>(null);
  const set = (changed: LorebookEntry[]) => {
    const character_book: CardBook = { extensions: {}, ...book, entries: changed };
    editor.set({ character_book });
  };
  const change = (at: number, changes: Partial<LorebookEntry>) =>
    set(entries.map((entry, index) => index === at ? { ...entry, ...changes } : entry));
  const remove = (at: number) => {
    setOpened(undefined);
    set(entries.filter((_, index) => index !== at));
    add.current?.querySelector("button")?.focus();
  };
  return (
    <>
      <p class="hint">{t.bookHint}</p>
      {entries.length > 0 && (
        <ul class="book">
          {entries.map((entry, index) => (
            <li key={index} class={entry.enabled ? "book-entry" : "book-entry is-off"}>
              <button
                type="button"
                class="book-summary"
                aria-expanded={opened === index}
                onClick={() => setOpened(opened === index ? undefined : index)}
              >
                <Icon name={opened === index ? "up" : "below"} />
                <span class="book-title">{getEntryTitle(entry) || t.entryNth(index + 1)}</span>
                {!entry.enabled && <span class="badge">{t.entryOff}</span>}
              </button>
              {opened === index && (
                <DraftedPart name={`entry ${index}`}>
                  <EntryForm
                    entry={entry}
                    onChange={(changes) => change(index, changes)}
                    onRemove={() => remove(index)}
                  />
                </DraftedPart>
              )}
            </li>
          ))}
        </ul>
      )}
      <div ref={add}>
        <Button
          icon="plus"
          onClick={() => {
            setOpened(entries.length);
            set([...entries, EMPTY_ENTRY]);
          }}
        >
          {t.addEntry}
        </Button>
      </div>
    </>
  );
}
