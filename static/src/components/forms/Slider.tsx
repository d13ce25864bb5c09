/**
 * A slider.
 *
 * Props: `label`, `value`, `min`, `max`, `onChange(value)` (on release); `step?`, `onInput?(value)` (while moving),
 * `format?(value)` (text of a value), `id?`, `hint?`, `isDisabled?`, `class?`.
 */
import { Field, type FieldProps } from "./Field.tsx";

/** A slider with its value as text. */
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
  const words = props.format?.(props.value);
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
            aria-valuetext={words}
            aria-describedby={describedBy}
            onInput={(event) => props.onInput?.(Number(event.currentTarget.value))}
            onChange={(event) => props.onChange(Number(event.currentTarget.value))}
          />
          {words && <output for={id}>{words}</output>}
        </div>
      )}
    </Field>
  );
}
