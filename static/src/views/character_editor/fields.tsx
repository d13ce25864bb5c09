/** The form controls of the editor, each bound to one field of the card. */
import { useRef, useState } from "preact/hooks";
import type { CardData } from "../../api/types.ts";
import { Button, IconButton } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { addDictated, DictateButton } from "../talk/DictationBar.tsx";
import type { CardEditor } from "./EditorScreen.tsx";
import { texts } from "../../texts/texts.ts";

/** Fields with one text. */
export type TextFieldName =
  | "name"
  | "nickname"
  | "description"
  | "personality"
  | "scenario"
  | "first_mes"
  | "mes_example"
  | "system_prompt"
  | "post_history_instructions"
  | "creator"
  | "creator_notes"
  | "character_version";

/** Fields with several texts. */
export type ListFieldName = "alternate_greetings" | "group_only_greetings";

/** Returns the token count of a text as a hint; undefined for none. */
export function countTokens(text: string): string | undefined {
  return text === "" ? undefined : texts.editor.tokens(estimateTokens(text));
}

/** One text. `isCounted`: it is part of the prompt. */
export function CardText(
  { editor, field, rows = 1, isCounted = rows > 1 }: {
    editor: CardEditor;
    field: TextFieldName;
    rows?: number;
    isCounted?: boolean;
  },
) {
  const data = editor.data.value!;
  const value = data[field] ?? "";
  const t = texts.editor;
  const hint = [
    Object.hasOwn(t.hints, field) ? t.hints[field as keyof typeof t.hints] : undefined,
    isCounted ? countTokens(value) : undefined,
  ].filter(Boolean).join(" ");
  const set = (text: string) => {
    // A card without a nickname omits the field: an empty one would be its name.
    const changes: Partial<CardData> = { [field]: field === "nickname" && text === "" ? undefined : text };
    editor.set(changes);
  };
  const label = t.fields[field];
  return (
    <div class="dictated-field">
      <TextField
        label={label}
        hint={hint || undefined}
        rows={rows}
        value={value}
        onInput={set}
        isRequired={field === "name"}
        error={field === "name" && editor.isIncomplete.value ? t.nameless : undefined}
      />
      {rows > 1 && (
        <DictateButton
          label={label}
          onText={(text) => set(addDictated(editor.data.peek()?.[field] ?? "", text))}
        />
      )}
    </div>
  );
}

/** Several texts, each in its own field. */
export function CardTexts({ editor, field }: { editor: CardEditor; field: ListFieldName }) {
  const list = editor.data.value![field];
  const add = useRef<HTMLDivElement>(null);
  const t = texts.editor;
  const set = (texts: string[]) => editor.set({ [field]: texts });
  const remove = (at: number) => {
    set(list.filter((_, index) => index !== at));
    add.current?.querySelector("button")?.focus();
  };
  return (
    <fieldset class="editor-list">
      <legend>{t.fields[field]}</legend>
      {list.map((text, index) => (
        <div class="editor-list-item" key={index}>
          <TextField
            label={t.nth(t.fields[field], index + 1)}
            hint={countTokens(text)}
            rows={5}
            value={text}
            onInput={(typed) => set(list.map((each, at) => at === index ? typed : each))}
          />
          <IconButton icon="trash" label={t.removeNth(t.fields[field], index + 1)} onClick={() => remove(index)} />
        </div>
      ))}
      <div ref={add}>
        <Button icon="plus" label={t.addTo(t.fields[field])} onClick={() => set([...list, ""])}>{t.add}</Button>
      </div>
    </fieldset>
  );
}

/** Short texts in one field, separated by lines or commas. */
export function CardWordLists(
  { label, hint, values, between, onChange }: {
    label: string;
    hint: string;
    values: readonly string[];
    between: "lines" | "commas";
    onChange: (words: string[]) => void;
  },
) {
  const joined = values.join(between === "lines" ? "\n" : ", ");
  const [typed, setTyped] = useState(joined);
  // Typed text stays as it is, unfinished separators included; a value from elsewhere replaces it.
  const isSame = splitWords(typed, between).join("\0") === values.join("\0");
  return (
    <TextField
      label={label}
      hint={hint}
      rows={between === "lines" ? 2 : 1}
      value={isSame ? typed : joined}
      onInput={(text) => {
        setTyped(text);
        onChange(splitWords(text, between));
      }}
    />
  );
}

function splitWords(text: string, between: "lines" | "commas"): string[] {
  return text.split(between === "lines" ? "\n" : ",").map((word) => word.trim()).filter((word) => word !== "");
}

const TOKENS_PER_CHAR = 0.25;
/** In scripts without spaces nearly every character is a token. */
const TOKENS_PER_WIDE_CHAR = 0.85;
const WIDE_QUERY = /[\u2e80-\uffff]/g;

/** Estimates the tokens of a text as the server does (services/prompts/tokens), rounded up. */
function estimateTokens(text: string): number {
  const wide = text.match(WIDE_QUERY)?.length ?? 0;
  return Math.ceil((text.length - wide) * TOKENS_PER_CHAR + wide * TOKENS_PER_WIDE_CHAR);
}
