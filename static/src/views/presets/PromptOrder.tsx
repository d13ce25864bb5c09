/** The prompts of a preset in order, and the form of the open one. */
import { useEffect, useRef, useState } from "preact/hooks";
import { BUILTIN_PRESET_ID } from "../../api/documents.ts";
import type { PresetPrompt } from "../../api/types.ts";
import { DraftedPart } from "../../components/forms/Drafted.tsx";
import { Button } from "../../components/Button.tsx";
import { EmptyState } from "../../components/Notice.tsx";
import { SortableList } from "../../components/lists/SortableList.tsx";
import { newId } from "../../state/app/ids.ts";
import {
  isFixed,
  isMarker,
  listOrder,
  listUnordered,
  moved,
  type OrderedPrompt,
  type PresetEditor,
  replacePrompt,
  setOrder,
} from "../../state/documents/preset_editor.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import type { PresetSectionProps } from "./PresetsPage.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { NumberInput, Select, Switch } from "../../components/forms/inputs.tsx";
import { ROLES } from "../../state/documents/lorebook_entries.ts";
import { countTokens } from "../character_editor/fields.tsx";

/** The list, or one prompt in its place. */
export function PromptOrder({ editor, api, isReadOnly }: PresetSectionProps) {
  const store = useStore();
  const [opened, setOpened] = useState<string>();
  const t = texts.presets.order;
  const preset = editor.data.value!;
  const entries = listOrder(preset);
  const unplaced = listUnordered(preset);
  if (entries.length === 0 && unplaced.length === 0) {
    const take = async () => {
      try {
        const { prompts, prompt_order } = (await api.read(BUILTIN_PRESET_ID)).document;
        editor.set({ prompts, prompt_order }, "take");
      } catch (thrown) {
        store.report(thrown);
      }
    };
    return (
      <EmptyState level={3} title={t.none}>
        <Button onClick={() => void take()}>{t.takeBuiltin}</Button>
      </EmptyState>
    );
  }
  const prompt = entries.find(({ identifier }) => identifier === opened)?.prompt ??
    unplaced.find(({ identifier }) => identifier === opened);
  if (prompt) return <PromptForm editor={editor} prompt={prompt} onBack={() => setOpened(undefined)} />;
  const set = (changed: OrderedPrompt[], step: string) => editor.set(setOrder(preset, changed), step);
  const toggle = (entry: OrderedPrompt, enabled: boolean) =>
    set(entries.map((each) => each === entry ? { ...each, enabled } : each), `enable ${entry.identifier}`);
  const add = () => {
    const prompt: PresetPrompt = { identifier: newId(), name: t.newName, role: "system", content: "" };
    const order = setOrder(preset, [...entries, { identifier: prompt.identifier, enabled: true, prompt }]);
    editor.set({ prompts: [...preset.prompts, prompt], ...order }, "add");
    setOpened(prompt.identifier);
  };
  return (
    <div id="prompts" class="prompt-order" tabIndex={-1}>
      {!isReadOnly && <p class="hint">{t.intro}</p>}
      <SortableList
        items={entries}
        keyOf={({ identifier }) => identifier}
        nameOf={({ prompt }) => getPromptName(prompt)}
        onMove={(from, to) => set(moved(entries, from, to), `move ${Date.now()}`)}
        label={t.list}
        labels={t}
        isDisabled={isReadOnly}
      >
        {(entry) => (
          <EntryRow
            entry={entry}
            isReadOnly={isReadOnly}
            onOpen={() => setOpened(entry.identifier)}
            onToggle={(isOn) => toggle(entry, isOn)}
          />
        )}
      </SortableList>
      {unplaced.length > 0 && (
        <Unplaced
          prompts={unplaced}
          isReadOnly={isReadOnly}
          onPutIn={(prompt) => set([...entries, { identifier: prompt.identifier, enabled: true, prompt }], "put in")}
        />
      )}
      {!isReadOnly && (
        <div class="actions-row">
          <Button icon="plus" onClick={add}>{t.add}</Button>
        </div>
      )}
    </div>
  );
}

function EntryRow(
  { entry: { identifier, enabled, prompt }, isReadOnly, onOpen, onToggle }: {
    entry: OrderedPrompt;
    isReadOnly: boolean;
    onOpen: () => void;
    onToggle: (isOn: boolean) => void;
  },
) {
  const t = texts.presets.order;
  const name = getPromptName(prompt);
  const label = (
    <>
      <span class="entry-title">{name}</span>
      <span class="entry-more">{listPromptActions(prompt)}</span>
    </>
  );
  return (
    <>
      {isMarker(identifier)
        ? <span class="entry-text is-marker">{label}</span>
        : (
          <button type="button" class="entry-text" disabled={isReadOnly} onClick={onOpen}>
            <span class="visually-hidden">{t.edit}</span>
            {label}
          </button>
        )}
      <input
        type="checkbox"
        role="switch"
        class="switch"
        aria-label={t.enabled(name)}
        // The chat history is always sent, whatever the order says.
        checked={enabled || identifier === "chatHistory"}
        disabled={isReadOnly || identifier === "chatHistory"}
        onChange={(event) => onToggle(event.currentTarget.checked)}
      />
    </>
  );
}

function Unplaced(
  { prompts, isReadOnly, onPutIn }: {
    prompts: PresetPrompt[];
    isReadOnly: boolean;
    onPutIn: (prompt: PresetPrompt) => void;
  },
) {
  const t = texts.presets.order;
  return (
    <section>
      <h3>{t.unplaced}</h3>
      <div class="chips">
        {prompts.map((prompt) => (
          <Button
            key={prompt.identifier}
            icon="plus"
            label={t.putIn(getPromptName(prompt))}
            isDisabled={isReadOnly}
            onClick={() => onPutIn(prompt)}
          >
            {getPromptName(prompt)}
          </Button>
        ))}
      </div>
    </section>
  );
}

function listPromptActions({ content, injection_position, injection_depth = 4 }: PresetPrompt): string {
  const start = (content ?? "").slice(0, 200);
  return injection_position === 1 ? [texts.presets.order.depth(injection_depth), start].join(" · ") : start;
}

/** Prompts that a card can override. */
const REPLACEABLE = ["main", "jailbreak"];

/** The form. */
function PromptForm(
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
    <DraftedPart name={identifier}>
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
    </DraftedPart>
  );
}

function Removal({ editor, identifier, onDone }: { editor: PresetEditor; identifier: string; onDone: () => void }) {
  const t = texts.presets.order;
  const leave = (isRemoved: boolean) => {
    const preset = editor.data.peek()!;
    const order = setOrder(preset, listOrder(preset).filter((entry) => entry.identifier !== identifier));
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
function getPromptName({ identifier, name }: PresetPrompt): string {
  const { markers } = texts.presets;
  const own = Object.hasOwn(markers, identifier) ? markers[identifier as keyof typeof markers] : undefined;
  return (isMarker(identifier) ? own : name?.trim() || own) ?? identifier;
}
