/** The form of one prompt of a preset. */
import { useEffect, useRef } from "preact/hooks";
import type { PresetPrompt } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { NumberInput } from "../../components/forms/NumberInput.tsx";
import { Select } from "../../components/forms/Select.tsx";
import { Switch } from "../../components/forms/Switch.tsx";
import { ROLES } from "../../state/documents/lorebook_entries.ts";
import type { PresetEditor } from "../../state/documents/preset_editor.ts";
import { isFixed, isMarker, listOrder, replacePrompt, setOrder } from "../../state/documents/prompt_order.ts";
import { texts } from "../../texts/texts.ts";
import { countTokens } from "../character_editor/fields.tsx";

/** Prompts that a card can override. */
const REPLACEABLE = ["main", "jailbreak"];

/** The form. */
export function PromptForm(
  { editor, prompt, onBack }: { editor: PresetEditor; prompt: PresetPrompt; onBack: () => void },
) {
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => head.current?.focus(), []);
  const t = texts.presets;
  const { identifier, content = "" } = prompt;
  const role = ROLES.find((each) => each === prompt.role) ?? "system";
  const isAtDepth = prompt.injection_position === 1;
  const change = (changes: Partial<PresetPrompt>) =>
    editor.set(replacePrompt(editor.data.peek()!, identifier, changes), `${identifier} ${Object.keys(changes).join()}`);
  return (
    <div class="form">
      <div class="entry-head">
        <Button icon="left" kind="quiet" onClick={onBack}>{t.order.toOrder}</Button>
        <h3 ref={head} tabIndex={-1}>{getPromptName(prompt)}</h3>
      </div>
      <TextField label={t.prompt.name} value={prompt.name ?? ""} onInput={(name) => change({ name })} />
      <Select
        label={t.prompt.role}
        value={role}
        options={ROLES.map((value) => ({ value, name: texts.chatOptions.options.roles[value] }))}
        onChange={(chosen) => change({ role: chosen })}
      />
      <TextField
        label={t.prompt.content}
        hint={[t.prompt.contentHint, countTokens(content)].filter(Boolean).join(" ")}
        rows={10}
        value={content}
        onInput={(text) => change({ content: text })}
      />
      <Select
        label={t.prompt.position}
        value={isAtDepth ? "depth" : "order"}
        options={(["order", "depth"] as const).map((value) => ({ value, name: t.prompt.positions[value] }))}
        onChange={(value) => change({ injection_position: value === "depth" ? 1 : 0 })}
      />
      {isAtDepth && (
        <div class="options-pair">
          <NumberInput
            label={t.prompt.depth}
            value={prompt.injection_depth}
            min={0}
            max={10_000}
            placeholder="4"
            onChange={(depth) => change({ injection_depth: depth })}
          />
          <NumberInput
            label={t.prompt.depthOrder}
            value={prompt.injection_order}
            min={-10_000}
            max={10_000}
            placeholder="100"
            onChange={(order) => change({ injection_order: order })}
          />
        </div>
      )}
      {REPLACEABLE.includes(identifier) && (
        <Switch
          label={t.prompt.forbid}
          isOn={prompt.forbid_overrides === true}
          onChange={(forbid_overrides) => change({ forbid_overrides })}
        />
      )}
      <Removal editor={editor} identifier={identifier} onDone={onBack} />
    </div>
  );
}

function Removal({ editor, identifier, onDone }: { editor: PresetEditor; identifier: string; onDone: () => void }) {
  const t = texts.presets.order;
  const leave = (isRemoved: boolean) => {
    const preset = editor.data.peek()!;
    const order = setOrder(preset, listOrder(preset).filter((place) => place.identifier !== identifier));
    const prompts = preset.prompts.filter((prompt) => prompt.identifier !== identifier);
    editor.set(isRemoved ? { prompts, ...order } : order, `remove ${identifier}`);
    onDone();
  };
  return (
    <div class="actions-row">
      <Button icon="eyeOff" onClick={() => leave(false)}>{t.takeOut}</Button>
      {!isFixed(identifier) && <Button icon="trash" onClick={() => leave(true)}>{t.removePrompt}</Button>}
    </div>
  );
}

/** Returns the name of a prompt: our own for parts of the chat. */
export function getPromptName({ identifier, name }: PresetPrompt): string {
  const { markers } = texts.presets;
  const own = Object.hasOwn(markers, identifier) ? markers[identifier as keyof typeof markers] : undefined;
  return (isMarker(identifier) ? own : name?.trim() || own) ?? identifier;
}
