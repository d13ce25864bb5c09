/**
 * A voice picker: voices of the speech server, of the library, or by name; each can be previewed.
 *
 * Props: `speech`, `library`, `label`, `value` (empty is `standard`), `standard` (label of the empty choice),
 * `onChange(voice)`; `id?`, `hint?`.
 */
import { useEffect, useState } from "preact/hooks";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { IconButton } from "../../components/Button.tsx";
import { Field, type FieldProps, TextField } from "../../components/forms/Field.tsx";
import { SpeechSettings, toPreviewKey } from "../../state/speech/speech_settings.ts";
import { useStore } from "../../state/store.ts";
import { VoiceLibrary } from "../../state/speech/voice_library.ts";
import { texts } from "../../texts/texts.ts";

/** Not a valid voice name. */
const OTHER = "\n";

/** A select with a preview button. */
export function VoicePicker(
  props: FieldProps & {
    /** Names the draft of a voice's name that is being typed. */
    draftKey: string;
    speech: SpeechSettings;
    library: VoiceLibrary;
    value: string;
    standard: string;
    onChange: (voice: string) => void;
  },
) {
  const { draftKey, speech, library, value, standard, onChange } = props;
  const { speaking } = useStore();
  const [typed, setTyped] = useState<string>();
  const draft = useFormDraft(draftKey);
  useEffect(() => void draft.loaded.then(() => draft.isEmpty || setTyped("")), [draft]);
  const t = texts.voice;
  const choice = speech.choice.value;
  const samples = library.shown.value ?? [];
  // If samples are all there is, the server's list repeats them.
  const listed = choice?.source === "files" ? [] : choice?.voices ?? [];
  const isKnown = value === "" || [...listed, ...samples].some(({ id }) => id === value);
  const isHeard = speaking.now.value?.key === toPreviewKey(value);
  const choose = (voice: string) => {
    // Applied on blur, not with every key.
    setTyped(voice === OTHER ? "" : undefined);
    if (voice !== OTHER) onChange(voice);
  };
  return (
    <>
      <Field id={props.id} label={props.label} hint={props.hint} error={props.error}>
        {(describedBy, id) => (
          <div class="with-button">
            <select
              id={id}
              value={typed === undefined ? value : OTHER}
              aria-describedby={describedBy}
              onChange={(event) => choose(event.currentTarget.value)}
            >
              <option value="">{standard}</option>
              {!isKnown && <option value={value}>{value}</option>}
              {choice && listed.length > 0 && (
                <optgroup label={t.sources[choice.source]}>
                  {listed.map((voice) => <option key={voice.id} value={voice.id}>{getVoiceName(voice)}</option>)}
                </optgroup>
              )}
              {samples.length > 0 && (
                <optgroup label={t.sources.files}>
                  {samples.map((sample) => <option key={sample.id} value={sample.id}>{sample.name}</option>)}
                </optgroup>
              )}
              <option value={OTHER}>{t.other}</option>
            </select>
            <IconButton
              icon={isHeard ? "stop" : "speaker"}
              label={isHeard ? t.stop : t.hear(props.label)}
              onClick={() => speech.hear(value, t.sentence)}
            />
          </div>
        )}
      </Field>
      {typed !== undefined && (
        <Drafted draft={draft}>
          <TextField
            label={t.otherName}
            hint={t.otherHint}
            maxLength={300}
            isMono
            value={typed}
            onInput={setTyped}
            onChange={(text) => {
              draft.clear();
              choose(text.trim());
            }}
          />
        </Drafted>
      )}
    </>
  );
}

function getVoiceName({ name, language }: { name: string; language?: string }): string {
  return language === undefined ? name : `${name} (${language})`;
}

/** Loads both, and follows changes while the view is shown. */
export function useVoices(): { speech: SpeechSettings; library: VoiceLibrary } {
  const store = useStore();
  const [voices] = useState(() => ({ speech: new SpeechSettings(store), library: new VoiceLibrary(store) }));
  useEffect(() => {
    void voices.speech.refresh();
    void voices.library.refresh();
    return store.listen((event) => {
      voices.speech.onChange(event);
      voices.library.onChange(event);
    });
  }, []);
  return voices;
}
