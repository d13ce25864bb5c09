/**
 * A choice among a few options, as a native select.
 *
 * Props: `label`, `value`, `options` (`value`, `name`, `lang?`), `onChange(value)`; `id?`, `hint?`, `error?`,
 * `isDisabled?`.
 */
import { Field, type FieldProps } from "./Field.tsx";

/** One option. */
export interface Option<T extends string> {
  value: T;
  name: string;
  /** Language of the name, if it differs from the page's. */
  lang?: string;
}

/** A labeled select. */
export function Select<T extends string>(
  props: FieldProps & {
    value: T;
    options: readonly Option<T>[];
    onChange: (value: T) => void;
    isDisabled?: boolean;
  },
) {
  return (
    <Field id={props.id} label={props.label} hint={props.hint} error={props.error}>
      {(describedBy, id) => (
        <select
          id={id}
          value={props.value}
          disabled={props.isDisabled}
          aria-describedby={describedBy}
          aria-invalid={props.error !== undefined}
          onChange={(event) => {
            const chosen = props.options.find((option) => option.value === event.currentTarget.value);
            if (chosen) props.onChange(chosen.value);
          }}
        >
          {props.options.map(({ value, name, lang }) => <option key={value} value={value} lang={lang}>{name}</option>)}
        </select>
      )}
    </Field>
  );
}
