/** The notes of a card's creator in further languages. @see V3, "creator_notes_multilingual" */
import { useRef } from "preact/hooks";
import { IconButton } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select } from "../../components/forms/Select.tsx";
import type { CardEditor } from "../../state/characters/card_editor.ts";
import { texts } from "../../texts/texts.ts";

/** ISO 639-1 */
const CODES =
  "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee " +
  "el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja " +
  "jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne " +
  "ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su " +
  "sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu";

/** One text a language, and a choice of another one. */
export function NotesByLanguage({ editor }: { editor: CardEditor }) {
  const { creator_notes_multilingual: given } = editor.data.value!;
  // Whatever a file holds there: only texts can be edited.
  const notes = Object.fromEntries(Object.entries(given ?? {}).filter(([, text]) => typeof text === "string"));
  const add = useRef<HTMLDivElement>(null);
  const t = texts.editor;
  const names = new Intl.DisplayNames([texts.locale], { type: "language", fallback: "code" });
  const nameOf = (code: string) => /^[a-z]{2,3}(-[a-z0-9]+)*$/i.test(code) ? names.of(code) ?? code : code;
  const set = (changed: Record<string, string>) => {
    // A card without any has no such field.
    editor.set({ creator_notes_multilingual: Object.keys(changed).length === 0 ? undefined : changed });
  };
  const others = CODES.split(" ").filter((code) => !Object.hasOwn(notes, code))
    .map((code) => ({ value: code, name: nameOf(code) }))
    .sort((a, b) => a.name.localeCompare(b.name, texts.locale));
  return (
    <fieldset class="editor-list">
      <legend>{t.fields.creator_notes_multilingual}</legend>
      {Object.entries(notes).map(([code, text]) => (
        <div class="editor-list-item" key={code}>
          <TextField
            label={t.notesIn(nameOf(code))}
            rows={4}
            value={text}
            onInput={(typed) => set({ ...notes, [code]: typed })}
          />
          <IconButton
            icon="trash"
            label={t.removeNotesIn(nameOf(code))}
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
