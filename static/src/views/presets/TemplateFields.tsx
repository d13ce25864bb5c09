/** The utility prompts and format templates of a preset. Unset ones use the built-in preset's. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, asApiError } from "../../api/client.ts";
import { BUILTIN_PRESET_ID, type PresetDraft } from "../../api/documents.ts";
import { Button } from "../../components/Button.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select, Switch } from "../../components/forms/inputs.tsx";
import { texts } from "../../texts/texts.ts";
import type { PresetSectionProps } from "./PresetsPage.tsx";

/** Templates that are sent, by SillyTavern's names, in order of appearance. */
const SENTENCES = [
  { name: "new_chat_prompt", rows: 2 },
  { name: "new_group_chat_prompt", rows: 2 },
  { name: "new_example_chat_prompt", rows: 2 },
  { name: "personality_format", rows: 2 },
  { name: "scenario_format", rows: 2 },
  { name: "wi_format", rows: 2 },
  { name: "group_nudge_prompt", rows: 2 },
  { name: "impersonation_prompt", rows: 4 },
  { name: "assistant_prefill", rows: 2 },
  { name: "assistant_impersonation", rows: 2 },
  { name: "send_if_empty", rows: 2 },
  { name: "continue_nudge_prompt", rows: 2 },
] as const;

/** Name of a template. */
type TemplateName = (typeof SENTENCES)[number]["name"];
/** A boolean option, by SillyTavern's name. */
type FlagName = "continue_prefill" | "squash_system_messages";
/** The separator between a reply and its continuation. */
const JOINT = "continue_postfix";
/** The choices of SillyTavern; a preset may have another. */
const JOINTS = { none: "", space: " ", line: "\n", paragraph: "\n\n" } as const;

type Rest = PresetDraft["rest"];

/** Returns a preset's template; an empty one is set, too, and sends nothing. */
function getTemplate(
  rest: Rest,
  builtin: Rest,
  name: TemplateName | typeof JOINT,
): { text: string; isOwn: boolean } {
  const own = rest[name];
  const builtinText = typeof builtin[name] === "string" ? builtin[name] : "";
  return { text: typeof own === "string" ? own : builtinText, isOwn: typeof own === "string" && own !== builtinText };
}

/** Returns a preset's option. */
function getFlag(rest: Rest, builtin: Rest, name: FlagName): boolean {
  return typeof rest[name] === "boolean" ? rest[name] : builtin[name] === true;
}

/** Returns the fields with the preset's own value, or the built-in one for undefined. */
function setTemplate(
  rest: Rest,
  name: TemplateName | FlagName | typeof JOINT,
  value: string | boolean | undefined,
): Rest {
  const { [name]: _, ...others } = rest;
  return value === undefined ? others : { ...others, [name]: value };
}

/** A field for each. */
export function TemplateFields({ editor, api, isReadOnly }: PresetSectionProps) {
  const [builtin, setBuiltin] = useState<PresetDraft["rest"] | ApiError>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isHere = true;
    api.read(BUILTIN_PRESET_ID).then(
      ({ document }) => isHere && setBuiltin(document.rest),
      (thrown) => isHere && setBuiltin(asApiError(thrown)),
    );
    return () => {
      isHere = false;
    };
  }, [round]);
  const t = texts.presets;
  if (builtin === undefined) return <p class="muted" role="status">{texts.loading}</p>;
  if (builtin instanceof ApiError) {
    return <ErrorNote title={t.oneFailed} error={builtin} onRetry={() => setRound(round + 1)} />;
  }
  const { rest } = editor.data.value!;
  const set = (name: TemplateName | FlagName | typeof JOINT, value: string | boolean | undefined) =>
    editor.set({ rest: setTemplate(editor.data.peek()!.rest, name, value) }, `sentence ${name}`);
  const flag = (name: FlagName) => (
    <Switch
      {...t.sentences.flags[name]}
      isOn={getFlag(rest, builtin, name)}
      isDisabled={isReadOnly}
      onChange={(isOn) => set(name, isOn)}
    />
  );
  const isAsked = !getFlag(rest, builtin, "continue_prefill");
  const shown = SENTENCES.filter(({ name }) => isAsked || name !== "continue_nudge_prompt");
  const joint = getTemplate(rest, builtin, JOINT).text;
  const joints = Object.entries(JOINTS).map(([name, value]) => ({
    value,
    name: t.sentences.joints[name as keyof typeof JOINTS],
  }));
  const hasOwnJoint = !joints.some(({ value }) => value === joint);
  return (
    <fieldset class="samplers form" disabled={isReadOnly} aria-label={t.parts.sentences}>
      <p class="hint">{t.sentences.intro}</p>
      {flag("squash_system_messages")}
      {flag("continue_prefill")}
      {shown.map(({ name, rows }) => {
        const { text, isOwn } = getTemplate(rest, builtin, name);
        const { label, hint } = t.sentences.fields[name];
        return (
          <div key={name}>
            <TextField label={label} hint={hint} rows={rows} value={text} onInput={(typed) => set(name, typed)} />
            {isOwn && (
              <Button
                kind="quiet"
                icon="restore"
                label={t.sentences.resetOne(label)}
                onClick={() => set(name, undefined)}
              >
                {t.sentences.reset}
              </Button>
            )}
          </div>
        );
      })}
      {isAsked && (
        <Select
          label={t.sentences.joint}
          value={joint}
          options={hasOwnJoint ? [...joints, { value: joint, name: JSON.stringify(joint) }] : joints}
          onChange={(value) => set(JOINT, value)}
        />
      )}
    </fieldset>
  );
}
