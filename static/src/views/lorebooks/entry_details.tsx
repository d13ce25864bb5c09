/** The less common fields of an entry. */
import { TextField } from "../../components/forms/Field.tsx";
import { Select } from "../../components/forms/Select.tsx";
import { Switch } from "../../components/forms/Switch.tsx";
import {
  ENTRY_POSITIONS,
  getExtensionNumber,
  placeOf,
  ROLES,
  setExtension,
  setPosition,
} from "../../state/documents/lorebook_entries.ts";
import { texts } from "../../texts/texts.ts";
import { NumberInput } from "../../components/forms/NumberInput.tsx";
import type { EntryProps } from "./EntryForm.tsx";

/** Messages: more than any scan covers. */
const MANY = 10_000;

/** How keys are matched. */
export function MatchFields({ entry, onChange }: EntryProps) {
  const t = texts.lorebooks.entry;
  return (
    <>
      <Switch
        label={t.regex}
        hint={t.regexHint}
        isOn={entry.use_regex === true}
        onChange={(use_regex) => onChange({ use_regex })}
      />
      <Switch
        label={texts.editor.entry.caseSensitive}
        isOn={(entry.case_sensitive ?? entry.extensions.case_sensitive) === true}
        onChange={(case_sensitive) => onChange({ case_sensitive })}
      />
      <ExtensionSwitch entry={entry} onChange={onChange} field="match_whole_words" label={t.wholeWords} />
      <ExtensionNumber
        entry={entry}
        onChange={onChange}
        field="scan_depth"
        label={t.scanDepth}
        hint={t.scanDepthHint}
        max={MANY}
      />
    </>
  );
}

/** Where the content is inserted. */
export function PlaceFields({ entry, onChange }: EntryProps) {
  const t = texts.editor.entry;
  const more = texts.lorebooks.entry;
  const place = placeOf(entry);
  const names = { ...t.positions, ...more.places };
  return (
    <>
      <div class="options-pair">
        <NumberInput
          label={t.order}
          value={entry.insertion_order}
          min={-999_999}
          max={999_999}
          isRequired
          onChange={(order) => onChange({ insertion_order: order! })}
        />
        <Select
          label={t.position}
          value={place ?? ""}
          options={(["", ...ENTRY_POSITIONS] as const).map((value) => ({ value, name: names[value || "none"] }))}
          onChange={(value) => onChange(setPosition(entry, value || undefined))}
        />
      </div>
      {place === "at_depth" && (
        <div class="options-pair">
          <ExtensionNumber
            entry={entry}
            onChange={onChange}
            field="depth"
            label={texts.chatOptions.options.noteDepth}
            max={MANY}
            placeholder="4"
          />
          <Select
            label={texts.chatOptions.options.noteRole}
            value={ROLES[getExtensionNumber(entry, "role") ?? 0] ?? "system"}
            options={ROLES.map((value) => ({ value, name: texts.chatOptions.options.roles[value] }))}
            onChange={(role) => onChange(setExtension(entry, "role", ROLES.indexOf(role)))}
          />
        </div>
      )}
      <ExtensionSwitch
        entry={entry}
        onChange={onChange}
        field="ignore_budget"
        label={more.ignoreBudget}
        hint={more.ignoreBudgetHint}
      />
    </>
  );
}

/** Probability and timing. */
export function ChanceFields({ entry, onChange }: EntryProps) {
  const t = texts.lorebooks.entry;
  const props = { entry, onChange };
  const isSure = entry.extensions.useProbability === false;
  const setChance = (value: number | undefined) => {
    const { probability: _, useProbability: __, ...others } = entry.extensions;
    onChange({ extensions: value === undefined ? others : { ...others, probability: value, useProbability: true } });
  };
  return (
    <>
      <NumberInput
        label={t.probability}
        hint={t.probabilityHint}
        value={isSure ? undefined : getExtensionNumber(entry, "probability")}
        min={0}
        max={100}
        isWhole={false}
        placeholder="100"
        onChange={setChance}
      />
      <ExtensionNumber {...props} field="sticky" label={t.sticky} hint={t.stickyHint} max={MANY} placeholder="0" />
      <ExtensionNumber
        {...props}
        field="cooldown"
        label={t.cooldown}
        hint={t.cooldownHint}
        max={MANY}
        placeholder="0"
      />
      <ExtensionNumber {...props} field="delay" label={t.delay} hint={t.delayHint} max={MANY} placeholder="0" />
    </>
  );
}

/** Only one entry of a group is activated. */
export function GroupFields({ entry, onChange }: EntryProps) {
  const t = texts.lorebooks.entry;
  const { group } = entry.extensions;
  const props = { entry, onChange };
  return (
    <>
      <TextField
        label={t.group}
        hint={t.groupHint}
        value={typeof group === "string" ? group : ""}
        onInput={(text) => onChange(setExtension(entry, "group", text))}
      />
      <ExtensionNumber {...props} field="group_weight" label={t.groupWeight} max={MANY} placeholder="100" />
      <ExtensionSwitch {...props} field="group_override" label={t.groupOverride} />
      <ExtensionSwitch {...props} field="use_group_scoring" label={t.groupScoring} />
    </>
  );
}

/** Recursion: the content of activated entries is scanned. */
export function RecursionFields({ entry, onChange }: EntryProps) {
  const t = texts.lorebooks.entry;
  const props = { entry, onChange };
  const late = entry.extensions.delay_until_recursion;
  return (
    <>
      <ExtensionSwitch {...props} field="exclude_recursion" label={t.excludeRecursion} />
      <ExtensionSwitch {...props} field="prevent_recursion" label={t.preventRecursion} />
      <NumberInput
        label={t.delayUntilRecursion}
        hint={t.delayUntilRecursionHint}
        value={late === true ? 1 : getExtensionNumber(entry, "delay_until_recursion")}
        min={0}
        max={100}
        placeholder="0"
        onChange={(value) => onChange(setExtension(entry, "delay_until_recursion", value))}
      />
    </>
  );
}

function ExtensionNumber(
  { entry, onChange, field, ...shown }: EntryProps & {
    field: string;
    label: string;
    hint?: string;
    max: number;
    placeholder?: string;
  },
) {
  return (
    <NumberInput
      {...shown}
      value={getExtensionNumber(entry, field)}
      min={0}
      onChange={(value) => onChange(setExtension(entry, field, value))}
    />
  );
}

function ExtensionSwitch(
  { entry, onChange, field, label, hint }: EntryProps & { field: string; label: string; hint?: string },
) {
  return (
    <Switch
      label={label}
      hint={hint}
      isOn={entry.extensions[field] === true}
      onChange={(isOn) => onChange(setExtension(entry, field, isOn))}
    />
  );
}
