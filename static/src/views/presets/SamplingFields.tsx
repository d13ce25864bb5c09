/** Sampling parameters. Empty ones are not sent. */
import { NUMBER_FIELDS, type NumberField } from "../../state/documents/sampling.ts";
import { texts } from "../../texts/texts.ts";
import { NumberInput } from "../../components/forms/NumberInput.tsx";
import type { PresetSectionProps } from "./PresetsPage.tsx";

/** Parameters that a preset has beyond those of a chat. */
const MORE = [
  { name: "context_size", min: 1, max: 100_000_000, isWhole: true },
  { name: "top_a", min: 0, max: 1 },
  { name: "typical_p", min: 0, max: 1 },
] as const satisfies readonly NumberField[];

/** Wide enough for any parameter that only its server knows. */
const ANY = 1_000_000_000;

/** A field for each, and for those that a file added. */
export function SamplingFields({ editor, isReadOnly }: PresetSectionProps) {
  const t = texts.presets.samplers;
  const { sampler } = editor.data.value!;
  const known: readonly NumberField[] = [...NUMBER_FIELDS, ...MORE];
  const others = Object.keys(sampler).filter((name) => known.every((field) => field.name !== name));
  const names: Record<string, string> = { ...texts.chatOptions.options.fields, ...t };
  const set = (name: string, value: number | undefined) => {
    const { [name]: _, ...rest } = sampler;
    editor.set({ sampler: value === undefined ? rest : { ...rest, [name]: value } }, `sampler ${name}`);
  };
  const input = ({ name, min, max, isWhole = false }: NumberField) => (
    <NumberInput
      key={name}
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
    </fieldset>
  );
}
