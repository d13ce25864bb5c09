/** What a preset says around the parts of a prompt, and how that is sent. What is not its own is the built-in preset's. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, asApiError } from "../../api/client.ts";
import { BUILTIN_PRESET_ID, type PresetFields } from "../../api/presets.ts";
import { Button } from "../../components/Button.tsx";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select } from "../../components/forms/Select.tsx";
import { Switch } from "../../components/forms/Switch.tsx";
import {
  type FlagName,
  flagOf,
  JOINT,
  JOINTS,
  type SentenceName,
  sentenceOf,
  SENTENCES,
  withSentence,
} from "../../state/documents/prompt_templates.ts";
import { texts } from "../../texts/texts.ts";
import type { PresetPartProps } from "./PresetPage.tsx";

/** A field for each. */
export function Sentences({ editor, api, isReadOnly }: PresetPartProps) {
  const [builtin, setBuiltin] = useState<PresetFields["rest"] | ApiError>();
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
  const set = (name: SentenceName | FlagName | typeof JOINT, value: string | boolean | undefined) =>
    editor.set({ rest: withSentence(editor.data.peek()!.rest, name, value) }, `sentence ${name}`);
  const flag = (name: FlagName) => (
    <Switch
      {...t.sentences.flags[name]}
      isOn={flagOf(rest, builtin, name)}
      isDisabled={isReadOnly}
      onChange={(isOn) => set(name, isOn)}
    />
  );
  const isAsked = !flagOf(rest, builtin, "continue_prefill");
  const shown = SENTENCES.filter(({ name }) => isAsked || name !== "continue_nudge_prompt");
  const joint = sentenceOf(rest, builtin, JOINT).text;
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
        const { text, isOwn } = sentenceOf(rest, builtin, name);
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
