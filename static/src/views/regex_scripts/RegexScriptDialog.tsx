/** Edits a regex script, and tries it on a text. */
import { useEffect, useState } from "preact/hooks";
import { asApiError } from "../../api/client.ts";
import type { RegexScriptApi, ScriptProblem } from "../../api/regex_scripts.ts";
import type { RegexScript, RegexScriptInput } from "../../api/types.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { NumberInput, Select, Switch } from "../../components/forms/inputs.tsx";
import { SwitchList } from "../../components/forms/SwitchList.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { LatestRead } from "../../state/app/latest_read.ts";
import { newId } from "../../state/app/ids.ts";
import { texts } from "../../texts/texts.ts";

/** Where a script runs; the API has two flags for it. */
type Scope = "both" | "display" | "prompt" | "each";
/** What a script of SillyTavern that isn't shown here keeps. */
const PLACEMENTS = ["user_input", "ai_output", "reasoning", "world_info"] as const;
const TRY_AFTER_MS = 300;
const MAX_DEPTH = 10_000;

const NEW: Required<RegexScriptInput> = {
  ...{ name: "", find: "", replace: "", trim: [], placement: ["ai_output"], enabled: true, display_only: false },
  ...{ prompt_only: false, run_on_edit: false, find_macros: "none", min_depth: null, max_depth: null, order: 0 },
};

/** The dialog. @param props.script Absent for a new one */
export function RegexScriptDialog(
  { script, api, onClose }: { script: RegexScript | undefined; api: RegexScriptApi; onClose: () => void },
) {
  const t = texts.regexScripts;
  const [fields, setFields] = useState<RegexScriptInput>(() => pickFields(script ?? NEW));
  const [sample, setSample] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string>();
  const tried = useTrial(api, fields, sample);
  const draft = useFormDraft(`regex_script:${script?.id ?? "new"}`);
  const change = (changes: RegexScriptInput) => setFields((before) => ({ ...before, ...changes }));
  const scope = toScope(fields);
  const save = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      await api.save(script?.id ?? newId(), fields);
      draft.clear();
      onClose();
    } catch (thrown) {
      setFailure(asApiError(thrown).message);
      setBusy(false);
    }
  };
  const others = fields.placement!.filter((place) => !PLACEMENTS.some((one) => one === place));
  return (
    <Dialog
      title={script === undefined ? t.add : t.edit}
      onClose={onClose}
      actions={
        <Button kind="primary" isBusy={isBusy} isDisabled={fields.find === ""} onClick={() => void save()}>
          {texts.save}
        </Button>
      }
    >
      <div class="form">
        <Drafted draft={draft}>
          <TextField
            label={t.name}
            value={fields.name!}
            maxLength={200}
            hasFocus
            onInput={(name) => change({ name })}
          />
          <TextField
            label={t.find}
            hint={t.findHint}
            value={fields.find!}
            error={tried?.problem && t.problems[tried.problem]}
            rows={2}
            isMono
            onInput={(find) => change({ find })}
          />
          <TextField
            label={t.replace}
            hint={t.replaceHint}
            value={fields.replace!}
            rows={3}
            isMono
            onInput={(replace) => change({ replace })}
          />
          <SwitchList
            legend={t.placement}
            items={PLACEMENTS.map((id) => ({ id, name: t.placements[id] }))}
            ids={fields.placement!}
            onChange={(ids) => change({ placement: [...PLACEMENTS.filter((place) => ids.includes(place)), ...others] })}
          />
          <Select<Scope>
            label={t.scope}
            hint={t.scopeHint}
            value={scope}
            options={(["both", "display", "prompt", "each"] as const).map((value) => ({
              value,
              name: t.scopes[value],
            }))}
            onChange={(value) =>
              change({
                display_only: value === "display" || value === "each",
                prompt_only: value === "prompt" || value === "each",
              })}
          />
          {scope === "both"
            ? (
              <Switch
                label={t.onEdit}
                hint={t.onEditHint}
                isOn={fields.run_on_edit!}
                onChange={(run_on_edit) => change({ run_on_edit })}
              />
            )
            : (
              <>
                <NumberInput
                  label={t.minDepth}
                  hint={t.depthHint}
                  value={fields.min_depth ?? undefined}
                  min={-1}
                  max={MAX_DEPTH}
                  onChange={(depth) => change({ min_depth: depth ?? null })}
                />
                <NumberInput
                  label={t.maxDepth}
                  value={fields.max_depth ?? undefined}
                  min={-1}
                  max={MAX_DEPTH}
                  onChange={(depth) => change({ max_depth: depth ?? null })}
                />
              </>
            )}
          <details>
            <summary>{t.details}</summary>
            <Select
              label={t.findMacros}
              value={fields.find_macros!}
              options={(["none", "raw", "escaped"] as const).map((value) => ({ value, name: t.macros[value] }))}
              onChange={(find_macros) => change({ find_macros })}
            />
            <TextField
              label={t.trim}
              hint={t.trimHint}
              value={fields.trim!.join("\n")}
              rows={3}
              isMono
              onInput={(text) => change({ trim: text === "" ? [] : text.split("\n") })}
            />
          </details>
          <TextField label={t.sample} hint={t.sampleHint} value={sample} rows={3} onInput={setSample} />
        </Drafted>
        {sample !== "" && (
          <div class="field" role="status">
            <p class="label">{t.result}</p>
            <pre class="script-result">{tried?.text ?? sample}</pre>
          </div>
        )}
        {failure && <p class="field-error" role="alert">{failure}</p>}
      </div>
    </Dialog>
  );
}

/** Runs the script on the sample on the server, a moment after the last change. */
function useTrial(
  api: RegexScriptApi,
  { find, replace, trim, find_macros }: RegexScriptInput,
  sample: string,
): { text: string; problem?: ScriptProblem } | undefined {
  const [latest] = useState(() => new LatestRead());
  const [tried, setTried] = useState<{ text: string; problem?: ScriptProblem }>();
  useEffect(() => {
    if (find === "" || sample === "") return setTried(undefined);
    const timer = setTimeout(() => {
      const removed = trim?.filter((text) => text !== "");
      latest.run(() => api.test({ find, replace, trim: removed, find_macros }, sample), setTried).catch(() =>
        setTried(undefined)
      );
    }, TRY_AFTER_MS);
    return () => clearTimeout(timer);
  }, [find, replace, trim, find_macros, sample]);
  return tried;
}

function toScope({ display_only, prompt_only }: RegexScriptInput): Scope {
  if (display_only && prompt_only) return "each";
  return display_only ? "display" : prompt_only ? "prompt" : "both";
}

function pickFields(
  { name, find, replace, trim, placement, display_only, prompt_only, run_on_edit, find_macros, ...rest }:
    RegexScriptInput,
): RegexScriptInput {
  const { enabled, min_depth, max_depth } = rest;
  return {
    ...{ name, find, replace, trim, placement, display_only, prompt_only, run_on_edit, find_macros },
    ...{ enabled, min_depth, max_depth },
  };
}
