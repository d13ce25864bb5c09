/** Inputs besides text: a choice, a number, a slider and a switch. */
import { useDraftField } from "./draft_field.ts";
import { Field, type FieldProps, TextField } from "./Field.tsx";
import { useId, useState } from "preact/hooks";
import { type NumberField, parseNumber } from "../../state/documents/sampling.ts";
import { texts } from "../../texts/texts.ts";
import type { ComponentChildren } from "preact";

/** One option. */
interface Option<T extends string> {
  value: T;
  name: string;
  /** Language of the name, if it differs from the page's. */
  lang?: string;
}

/**
 * A labeled choice among a few options, as a native select.
 *
 * Props: `label`, `value`, `options` (`value`, `name`, `lang?`), `onChange(value)`; `id?`, `hint?`, `error?`,
 * `isDisabled?`.
 */
export function Select<T extends string>(
  props: FieldProps & {
    value: T;
    options: readonly Option<T>[];
    onChange: (value: T) => void;
    isDisabled?: boolean;
  },
) {
  const set = (value: string) => {
    const chosen = props.options.find((option) => option.value === value);
    if (chosen) props.onChange(chosen.value);
  };
  const onChange = useDraftField(props.id ?? props.label, props.value, set, "choice");
  return (
    <Field id={props.id} label={props.label} hint={props.hint} error={props.error}>
      {(describedBy, id) => (
        <select
          id={id}
          value={props.value}
          disabled={props.isDisabled}
          aria-describedby={describedBy}
          aria-invalid={props.error !== undefined}
          onChange={(event) => onChange(event.currentTarget.value)}
        >
          {props.options.map(({ value, name, lang }) => <option key={value} value={value} lang={lang}>{name}</option>)}
        </select>
      )}
    </Field>
  );
}

/**
 * A number input. Invalid text stays in the field with an error and changes nothing. An empty one is undefined unless a
 * number is required.
 */
export function NumberInput(
  { id, label, hint, value, min, max, isWhole = true, isRequired = false, placeholder, onChange }: {
    id?: string;
    label: string;
    hint?: string;
    value: number | undefined;
    min: number;
    max: number;
    isWhole?: boolean;
    isRequired?: boolean;
    placeholder?: string;
    onChange: (value: number | undefined) => void;
  },
) {
  const field = { name: label, min, max, isWhole } satisfies NumberField;
  const [typed, setTyped] = useState(value === undefined ? "" : String(value));
  const [last, setLast] = useState(value);
  const read = (text: string) => {
    const number = parseNumber(field, text);
    return number === undefined && isRequired ? "bad" : number;
  };
  // A value from elsewhere, such as Undo, replaces the typed text.
  const isFromElsewhere = value !== last && read(typed) !== value;
  const shown = isFromElsewhere ? value === undefined ? "" : String(value) : typed;
  return (
    <TextField
      id={id}
      label={label}
      hint={hint}
      inputMode={isWhole ? "numeric" : "decimal"}
      value={shown}
      placeholder={placeholder}
      error={read(shown) === "bad" ? texts.chatOptions.options.bad(min, max) : undefined}
      onInput={(text) => {
        setTyped(text);
        const number = read(text);
        setLast(number === "bad" ? value : number);
        if (number !== "bad") onChange(number);
      }}
    />
  );
}

/**
 * A slider with its value as text.
 *
 * Props: `label`, `value`, `min`, `max`, `onChange(value)` (on release); `step?`, `onInput?(value)` (while moving),
 * `format?(value)` (text of a value), `id?`, `hint?`, `isDisabled?`, `class?`.
 */
export function Slider(
  props: FieldProps & {
    value: number;
    min: number;
    max: number;
    step?: number;
    onChange: (value: number) => void;
    onInput?: (value: number) => void;
    format?: (value: number) => string;
    isDisabled?: boolean;
    class?: string;
  },
) {
  const formatted = props.format?.(props.value);
  return (
    <Field id={props.id} label={props.label} hint={props.hint} error={props.error}>
      {(describedBy, id) => (
        <div class="slider-row">
          <input
            id={id}
            class={props.class}
            type="range"
            min={props.min}
            max={props.max}
            step={props.step ?? 1}
            value={props.value}
            disabled={props.isDisabled}
            aria-valuetext={formatted}
            aria-describedby={describedBy}
            onInput={(event) => props.onInput?.(Number(event.currentTarget.value))}
            onChange={(event) => props.onChange(Number(event.currentTarget.value))}
          />
          {formatted && <output for={id}>{formatted}</output>}
        </div>
      )}
    </Field>
  );
}

/**
 * A switch that takes effect at once, after its label; the whole row is clickable.
 *
 * Props: `label`, `isOn`, `onChange(isOn)`; `id?`, `hint?`, `isDisabled?`.
 */
export function Switch(
  { id: given, label, hint, isOn, onChange, isDisabled = false }: {
    id?: string;
    label: string;
    hint?: ComponentChildren;
    isOn: boolean;
    onChange: (isOn: boolean) => void;
    isDisabled?: boolean;
  },
) {
  const generatedId = useId();
  const id = given ?? generatedId;
  const set = useDraftField(given ?? label, String(isOn), (value) => onChange(value === "true"), "choice");
  return (
    <div class="switch-field">
      <label class="switch-row">
        <span>{label}</span>
        <input
          id={id}
          type="checkbox"
          role="switch"
          class="switch"
          checked={isOn}
          disabled={isDisabled}
          aria-describedby={hint ? `${id}-hint` : undefined}
          onChange={(event) => set(String(event.currentTarget.checked))}
        />
      </label>
      {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
    </div>
  );
}
