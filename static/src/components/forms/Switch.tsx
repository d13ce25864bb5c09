/**
 * A switch that takes effect at once.
 *
 * Props: `label`, `isOn`, `onChange(isOn)`; `id?`, `hint?`, `isDisabled?`.
 */
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

/** A switch after its label; the whole row is clickable. */
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
  const made = useId();
  const id = given ?? made;
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
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
      </label>
      {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
    </div>
  );
}
