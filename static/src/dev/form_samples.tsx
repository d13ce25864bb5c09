/** Form controls. */
import { useState } from "preact/hooks";
import { Field, TextField } from "../components/forms/Field.tsx";
import { Select } from "../components/forms/Select.tsx";
import { Slider } from "../components/forms/Slider.tsx";
import { Switch } from "../components/forms/Switch.tsx";

/** Each control in each state. */
export function FormSamples() {
  const [text, setText] = useState("Some text");
  const [choice, setChoice] = useState<"a" | "b">("a");
  const [isOn, setOn] = useState(true);
  const [value, setValue] = useState(0.7);
  return (
    <section>
      <h2>Fields</h2>
      <div class="form">
        <TextField label="Plain" value={text} onInput={setText} />
        <TextField label="With a hint" value="" placeholder="Placeholder" hint="What belongs here." onInput={setText} />
        <TextField label="With an error" value="bad" error="This is not an address" onInput={setText} />
        <TextField label="Disabled" value="fixed" isDisabled onInput={setText} />
        <TextField label="With suggestions" value={text} list={["alpha", "beta"]} onInput={setText} />
        <TextField label="Code" value="{}" isMono onInput={setText} />
        <TextField label="Several lines" rows={4} value={text} onInput={setText} />
        <Field label="A control of one's own">
          {(describedBy, id) => <input id={id} type="date" aria-describedby={describedBy} />}
        </Field>
        <Select
          label="Choice"
          value={choice}
          options={[{ value: "a", name: "First" }, { value: "b", name: "Second" }]}
          onChange={setChoice}
        />
        <Select
          label="Disabled choice"
          value="a"
          options={[{ value: "a", name: "First" }]}
          isDisabled
          onChange={() => {}}
        />
        <Switch label="Switch" hint="With a hint." isOn={isOn} onChange={setOn} />
        <Switch label="Off" isOn={false} onChange={() => {}} />
        <Switch label="Disabled" isOn isDisabled onChange={() => {}} />
        <Slider
          label="Slider"
          value={value}
          min={0}
          max={2}
          step={0.05}
          format={(number) => number.toFixed(2)}
          onInput={setValue}
          onChange={setValue}
        />
        <Slider label="Disabled slider" value={1} min={0} max={2} isDisabled onChange={() => {}} />
      </div>
    </section>
  );
}
