/** The speech server: address, key, model, format, and an audible test. */
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { SpeechConfig } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { ApiKeyField } from "../../components/forms/ApiKeyField.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import type { SpeechSettings, SpeechTest } from "../../state/speech/speech_settings.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatNumber } from "../../texts/format.ts";

type Changes = Partial<{ base_url: string; model: string; format: (typeof FORMATS)[number] }>;

/** Selectable formats; the first starts soonest. */
const FORMATS = ["mp3", "opus", "aac", "flac", "wav", "pcm"] as const;

/** The form. A test saves it first. */
export function SpeechServerSection({ speech, config }: { speech: SpeechSettings; config: SpeechConfig }) {
  const store = useStore();
  const t = texts.voice;
  const [typed, setTyped] = useState<Changes>({});
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState<"save" | "try">();
  const [error, setError] = useState<ApiError>();
  const fields = { ...config, ...typed };
  const set = (changes: Changes) => {
    setTyped({ ...typed, ...changes });
    speech.trial.value = undefined;
  };
  const run = async (kind: "save" | "try", work: () => Promise<void> | void) => {
    setBusy(kind);
    setError(undefined);
    try {
      await speech.change({ ...typed, ...(key === "" ? {} : { api_key: key }) });
      setTyped({});
      setKey("");
      await work();
    } catch (thrown) {
      setError(asApiError(thrown));
    }
    setBusy(undefined);
  };
  const clearKey = () => {
    speech.change({ api_key: null }).then(() => store.toasts.show(texts.form.keyCleared), setError);
  };
  return (
    <>
      <h3>{t.server}</h3>
      <form
        class="form"
        noValidate
        autocomplete="off"
        onSubmit={(event) => {
          event.preventDefault();
          void run("save", () => store.toasts.show(t.saved));
        }}
      >
        <TextField
          id="speech-url"
          type="url"
          inputMode="url"
          label={t.url}
          hint={t.urlHint}
          value={fields.base_url}
          onInput={(base_url) => set({ base_url })}
        />
        <ApiKeyField
          id="speech-key"
          standing={{ stored: config, address: fields.base_url, typed: key }}
          hint={t.keyHint}
          onInput={setKey}
          onClear={clearKey}
        />
        <TextField
          id="speech-model"
          isMono
          label={t.model}
          hint={speech.models.value.length > 0 ? t.modelOffered(speech.models.value.length) : t.modelHint}
          list={speech.models.value}
          value={fields.model}
          onInput={(model) => set({ model })}
        />
        <Select
          id="speech-format"
          label={t.format}
          hint={t.formatHint}
          value={fields.format as (typeof FORMATS)[number]}
          options={FORMATS.map((value) => ({ value, name: t.formats[value] }))}
          onChange={(format) => set({ format })}
        />
        {speech.trial.value && <SpeechTestResult trial={speech.trial.value} />}
        {error && <ErrorNote title={t.saveFailed} error={error} />}
        <div class="actions-row">
          <Button type="submit" kind="primary" isBusy={busy === "save"}>{texts.save}</Button>
          <Button
            icon="speaker"
            isBusy={busy === "try"}
            isDisabled={fields.base_url.trim() === ""}
            onClick={() => void run("try", () => speech.try(t.sentence))}
          >
            {busy === "try" ? t.trying : t.try}
          </Button>
        </div>
      </form>
    </>
  );
}

/** Nothing while it runs: the button says so. */
function SpeechTestResult({ trial }: { trial: SpeechTest }) {
  const t = texts.voice.trial;
  if (trial.kind === "running") return null;
  if (trial.kind === "failed") return <ErrorNote title={t.bad} error={trial.error} />;
  const { firstSoundMs, models, choice } = trial;
  return (
    <div class="verdict good" role="status">
      <p class="verdict-title">
        <Icon name="check" />
        <strong>{t.good}</strong>
      </p>
      <ul>
        <li>{t.firstSound(formatNumber(Math.round(firstSoundMs)))}</li>
        <li>{models === undefined ? t.noModels : t.models(models)}</li>
        <li>{t.voices[choice.source](choice.voices.length)}</li>
      </ul>
    </div>
  );
}
