/**
 * A labeled control with its hint and its error.
 *
 * Field: `label`, `children(describedBy, id)`; `id?`, `hint?`, `error?`. For custom controls.
 * TextField: `label`, `value`, `onInput(text)`; `onChange(text)?` (the field was left), `id?`, `hint?`, `error?`, `type?`, `rows?` (more than one: a text
 * area), `placeholder?`, `list?` (suggestions), `inputMode?`, `autocomplete?`, `maxLength?`, `isRequired?`,
 * `isDisabled?`, `isMono?`, `hasFocus?` (initial focus of a dialog), `isSecret?` (no draft keeps it).
 */
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { useDraftField } from "./draft_field.ts";

/** Props of every labeled control. */
export interface FieldProps {
  /** Generated if missing. */
  id?: string;
  label: string;
  hint?: ComponentChildren;
  error?: string;
}

/** Frames one control, which gets the ids of its hint and error. */
export function Field(
  { id: given, label, hint, error, children }: FieldProps & {
    children: (describedBy: string | undefined, id: string) => ComponentChildren;
  },
) {
  const generatedId = useId();
  const id = given ?? generatedId;
  const parts = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(parts === "" ? undefined : parts, id)}
      {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
      {error && <p class="field-error" id={`${id}-error`} role="alert">{error}</p>}
    </div>
  );
}

/** Props of a text field. */
export interface TextFieldProps extends FieldProps {
  value: string;
  onInput: (text: string) => void;
  /** Called when the field is left, or Enter pressed, after its text has changed. */
  onChange?: (text: string) => void;
  type?: "text" | "url" | "password" | "search" | "email";
  rows?: number;
  placeholder?: string;
  list?: readonly string[];
  inputMode?: "text" | "url" | "numeric" | "decimal";
  autocomplete?: string;
  maxLength?: number;
  isRequired?: boolean;
  isDisabled?: boolean;
  isMono?: boolean;
  hasFocus?: boolean;
  /** No draft keeps what is typed. A password is one anyway. */
  isSecret?: boolean;
}

/** One line of text, or several. */
export function TextField(props: TextFieldProps) {
  const { type = "text", rows = 1, list, isSecret = type === "password" } = props;
  const kind = isSecret ? "secret" : type === "search" ? "search" : "text";
  const keep = useDraftField(props.id ?? props.label, props.value, props.onInput, kind, props.error !== undefined);
  const onInput = (event: { currentTarget: { value: string } }) => keep(event.currentTarget.value);
  return (
    <Field id={props.id} label={props.label} hint={props.hint} error={props.error}>
      {(describedBy, id) => {
        const shared = {
          id,
          value: props.value,
          class: props.isMono ? "mono" : undefined,
          placeholder: props.placeholder,
          maxLength: props.maxLength,
          required: props.isRequired,
          disabled: props.isDisabled,
          autofocus: props.hasFocus,
          spellcheck: props.isMono || type === "url" ? false : undefined,
          "aria-describedby": describedBy,
          "aria-invalid": props.error !== undefined,
        };
        if (rows > 1) {
          return <textarea rows={rows} {...shared} onInput={onInput} />;
        }
        return (
          <>
            <input
              // The types have one set of attributes per element; all of ours share these.
              type={type as "text"}
              inputMode={props.inputMode}
              autocomplete={props.autocomplete ?? "off"}
              {...(list ? { list: `${id}-list` } : {})}
              {...shared}
              onInput={onInput}
              onChange={props.onChange && ((event) => props.onChange!(event.currentTarget.value))}
            />
            {list && (
              <datalist id={`${id}-list`}>{list.map((option) => <option key={option} value={option} />)}</datalist>
            )}
          </>
        );
      }}
    </Field>
  );
}
