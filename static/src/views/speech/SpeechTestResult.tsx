/** What a trial of the speech server found. */
import { Icon } from "../../components/Icon.tsx";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import type { SpeechTrial } from "../../state/speech/speech_settings.ts";
import { figure } from "../../texts/times.ts";
import { texts } from "../../texts/texts.ts";

/** Nothing while it runs: the button says so. */
export function TrialVerdict({ trial }: { trial: SpeechTrial }) {
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
        <li>{t.firstSound(figure(Math.round(firstSoundMs)))}</li>
        <li>{models === undefined ? t.noModels : t.models(models)}</li>
        <li>{t.voices[choice.source](choice.voices.length)}</li>
      </ul>
    </div>
  );
}
