/** The form of one entry of a lorebook, on its own or in a card. */
import type { LorebookEntry } from "../../api/types.ts";
import type { ComponentChildren } from "preact";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { NumberInput, Select, Switch } from "../../components/forms/inputs.tsx";
import {
  ENTRY_POSITIONS,
  findPosition,
  getExtensionNumber,
  getOwnTitle,
  isSelective,
  LOGICS,
  ROLES,
  setEntryTitle,
  setExtension,
  setPosition,
} from "../../state/documents/lorebook_entries.ts";
import { texts } from "../../texts/texts.ts";
import { CardWordLists, countTokens } from "../character_editor/fields.tsx";

/** Props of the form's sections. `onChange` gets the changed fields. */
interface EntryProps {
  entry: LorebookEntry;
  onChange: (changes: Partial<LorebookEntry>) => void;
}

/** The main fields are open, the rest is collapsed by subject. */
export function EntryForm({ entry, onChange, onRemove }: EntryProps & { onRemove: () => void }) {
  const t = texts.editor;
  const more = texts.lorebooks.entry;
  const props = { entry, onChange };
  return (
    <div class="book-fields">
      <Switch label={t.entry.enabled} isOn={entry.enabled} onChange={(enabled) => onChange({ enabled })} />
      <TextField
        label={more.title}
        hint={more.titleHint}
        value={getOwnTitle(entry)}
        onInput={(title) => onChange(setEntryTitle(entry, title))}
      />
      <CardWordLists
        label={t.entry.keys}
        hint={t.entry.keysHint}
        between="lines"
        values={entry.keys}
        onChange={(keys) => onChange({ keys })}
      />
      <TextField
        label={t.entry.content}
        hint={countTokens(entry.content)}
        rows={6}
        value={entry.content}
        onInput={(content) => onChange({ content })}
      />
      <Switch
        label={t.entry.constant}
        hint={t.entry.constantHint}
        isOn={entry.constant === true}
        onChange={(constant) => onChange({ constant })}
      />
      <SecondaryFields {...props} />
      <Fold title={more.match}>
        <MatchFields {...props} />
      </Fold>
      <Fold title={more.where}>
        <PlaceFields {...props} />
      </Fold>
      <Fold title={more.chance}>
        <ChanceFields {...props} />
      </Fold>
      <Fold title={more.groups}>
        <GroupFields {...props} />
      </Fold>
      <Fold title={more.recursion}>
        <RecursionFields {...props} />
      </Fold>
      <Button icon="trash" kind="quiet" onClick={onRemove}>{t.removeEntry}</Button>
    </div>
  );
}

function SecondaryFields({ entry, onChange }: EntryProps) {
  const t = texts.editor.entry;
  const more = texts.lorebooks.entry;
  const isOn = isSelective(entry);
  return (
    <>
      <Switch
        label={t.selective}
        hint={t.selectiveHint}
        isOn={isOn}
        onChange={(selective) => onChange({ selective })}
      />
      {isOn && (
        <>
          <Select
            label={more.logic}
            value={LOGICS[getExtensionNumber(entry, "selectiveLogic") ?? 0] ?? "any"}
            options={LOGICS.map((value) => ({ value, name: more.logics[value] }))}
            onChange={(logic) => onChange(setExtension(entry, "selectiveLogic", LOGICS.indexOf(logic)))}
          />
          <CardWordLists
            label={t.secondaryKeys}
            hint={t.keysHint}
            between="lines"
            values={entry.secondary_keys ?? []}
            onChange={(secondary_keys) => onChange({ secondary_keys })}
          />
        </>
      )}
    </>
  );
}

function Fold({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <details class="fold">
      <summary>{title}</summary>
      <div class="fold-body">{children}</div>
    </details>
  );
}

/** Maximum number of messages to scan. */
const MANY = 10_000;

/** How keys are matched. */
function MatchFields({ entry, onChange }: EntryProps) {
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
function PlaceFields({ entry, onChange }: EntryProps) {
  const t = texts.editor.entry;
  const more = texts.lorebooks.entry;
  const position = findPosition(entry);
  const names = { ...t.positions, ...more.places };
  const outlet = entry.extensions.outlet_name;
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
          value={position ?? ""}
          options={(["", ...ENTRY_POSITIONS] as const).map((value) => ({ value, name: names[value || "none"] }))}
          onChange={(value) => onChange(setPosition(entry, value || undefined))}
        />
      </div>
      {position === "at_depth" && (
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
      {position === "outlet" && (
        <TextField
          label={more.outlet}
          hint={more.outletHint}
          value={typeof outlet === "string" ? outlet : ""}
          onInput={(text) => onChange(setExtension(entry, "outlet_name", text))}
        />
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
function ChanceFields({ entry, onChange }: EntryProps) {
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
function GroupFields({ entry, onChange }: EntryProps) {
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
function RecursionFields({ entry, onChange }: EntryProps) {
  const t = texts.lorebooks.entry;
  const props = { entry, onChange };
  const delay = entry.extensions.delay_until_recursion;
  return (
    <>
      <ExtensionSwitch {...props} field="exclude_recursion" label={t.excludeRecursion} />
      <ExtensionSwitch {...props} field="prevent_recursion" label={t.preventRecursion} />
      <NumberInput
        label={t.delayUntilRecursion}
        hint={t.delayUntilRecursionHint}
        value={delay === true ? 1 : getExtensionNumber(entry, "delay_until_recursion")}
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
