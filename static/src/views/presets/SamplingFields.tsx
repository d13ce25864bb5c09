/** Sampling parameters. Empty ones are not sent. */
import { useState } from "preact/hooks";
import { TextField } from "../../components/forms/Field.tsx";
import { ANY, MORE_FIELDS, NUMBER_FIELDS, type NumberField } from "../../state/documents/sampling.ts";
import { texts } from "../../texts/texts.ts";
import { NumberInput } from "../../components/forms/NumberInput.tsx";
import { findBodyProblem } from "../connections/connection_fields.ts";
import type { PresetSectionProps } from "./PresetsPage.tsx";

/** A field for each, and for those that a file added. */
export function SamplingFields({ editor, isReadOnly }: PresetSectionProps) {
  const t = texts.presets.samplers;
  const { sampler } = editor.data.value!;
  const known: readonly NumberField[] = [...NUMBER_FIELDS, ...MORE_FIELDS];
  const others = Object.keys(sampler).filter((name) => known.every((field) => field.name !== name));
  const names: Record<string, string> = texts.chatOptions.options.fields;
  const set = (name: string, value: number | undefined) => {
    const { [name]: _, ...rest } = sampler;
    editor.set({ sampler: value === undefined ? rest : { ...rest, [name]: value } }, `sampler ${name}`);
  };
  const input = ({ name, min, max, isWhole = false }: NumberField) => (
    <NumberInput
      key={name}
      id={name}
      label={names[name] ?? name}
      value={sampler[name]}
      min={min}
      max={max}
      isWhole={isWhole}
      placeholder={texts.chatOptions.options.standard}
      onChange={(value) => set(name, value)}
    />
  );
  return (
    <fieldset class="samplers" disabled={isReadOnly} aria-label={texts.presets.parts.samplers}>
      <p class="hint">{t.intro}</p>
      <div class="images-numbers">{known.map(input)}</div>
      {others.length > 0 && (
        <>
          <h3>{t.other}</h3>
          <div class="images-numbers">{others.map((name) => input({ name, min: -ANY, max: ANY }))}</div>
        </>
      )}
      <ExtraBody editor={editor} />
    </fieldset>
  );
}

/** Invalid JSON stays in the field with an error and changes nothing. */
function ExtraBody({ editor }: Pick<PresetSectionProps, "editor">) {
  const t = texts.form;
  const stored = editor.data.value!.extra_body ?? null;
  const format = () => stored === null ? "" : JSON.stringify(stored, null, 2);
  const [typed, setTyped] = useState(format);
  const [last, setLast] = useState(stored);
  // A value from elsewhere, such as Undo, replaces the typed text.
  const shown = stored === last ? typed : format();
  const problem = findBodyProblem(shown);
  return (
    <TextField
      label={t.extraBody}
      hint={texts.presets.samplers.extraBodyHint}
      error={problem === undefined
        ? undefined
        : problem === "no_object"
        ? t.extraBodyNoObject
        : t.extraBodyBad(problem)}
      rows={4}
      isMono
      value={shown}
      onInput={(text) => {
        setTyped(text);
        if (findBodyProblem(text) !== undefined) return setLast(stored);
        const extra_body = text.trim() === "" ? null : JSON.parse(text);
        setLast(extra_body);
        editor.set({ extra_body }, "extra body");
      }}
    />
  );
}
