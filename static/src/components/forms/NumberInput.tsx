/** A number input. Invalid text stays in the field with an error and changes nothing. */
import { useState } from "preact/hooks";
import { TextField } from "./Field.tsx";
import { parseNumber } from "../../state/documents/sampling.ts";
import { texts } from "../../texts/texts.ts";

/** The field. An empty one is undefined unless a number is required. */
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
  const field = { name: label, min, max, isWhole };
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
