import { Switch } from "./inputs.tsx";

/** Selects some of a few things, each with a switch. @param props.note Shown above them. */
export function SwitchList(
  { legend, note, items, ids, onChange }: {
    legend: string;
    note?: string;
    items: readonly { id: string; name: string }[];
    ids: string[];
    onChange: (ids: string[]) => void;
  },
) {
  return (
    <fieldset class="editor-list">
      <legend>{legend}</legend>
      {note !== undefined && <p class="muted">{note}</p>}
      {items.map(({ id, name }) => (
        <Switch
          key={id}
          label={name}
          isOn={ids.includes(id)}
          onChange={(isOn) => onChange(isOn ? [...ids, id] : ids.filter((each) => each !== id))}
        />
      ))}
    </fieldset>
  );
}
