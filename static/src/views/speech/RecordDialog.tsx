/** Records a voice sample from the microphone, previews it, and saves it under a name. */
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { Button } from "../../components/Button.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { useNow } from "../../components/hooks.ts";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { Recorder, type VoiceLibrary } from "../../state/speech/voice_library.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatClock, formatTime } from "../../texts/format.ts";

/** Closing it releases the microphone. */
export function RecordDialog({ library, onClose }: { library: VoiceLibrary; onClose: () => void }) {
  const store = useStore();
  const t = texts.voice.library;
  const [recorder] = useState(() => new Recorder());
  const [name, setName] = useState(() => t.recordingName(formatTime(new Date().toISOString(), new Date())));
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  useEffect(() => {
    store.speaking.stop(); // or the microphone hears it
    return () => recorder.close();
  }, []);
  const state = recorder.state.value;
  const isRecording = state.kind === "recording";
  const now = useNow(isRecording);
  const save = async (event: Event) => {
    event.preventDefault();
    if (state.kind !== "done" || name.trim() === "") return;
    setBusy(true);
    setError(undefined);
    try {
      await library.add(state.audio, name.trim());
      onClose();
    } catch (thrown) {
      setError(asApiError(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={t.recordTitle}
      onClose={onClose}
      actions={
        <>
          {isRecording
            ? <Button kind="primary" icon="stop" onClick={() => recorder.stop()}>{t.recordStop}</Button>
            : (
              <Button
                kind={state.kind === "done" ? "plain" : "primary"}
                icon="microphone"
                isBusy={state.kind === "asking"}
                onClick={() => void recorder.start()}
              >
                {state.kind === "done" ? t.recordAgain : t.recordStart}
              </Button>
            )}
          {state.kind === "done" && (
            <Button kind="primary" type="submit" form="voice-recording" isBusy={isBusy}>{texts.save}</Button>
          )}
        </>
      }
    >
      <form id="voice-recording" class="form" onSubmit={save}>
        <p class="hint">{t.recordHint}</p>
        <p class={isRecording ? "record-state is-on" : "record-state"} role="status">
          {isRecording ? t.recording : state.kind === "done" ? t.recorded : t.notRecording}
        </p>
        {isRecording && <p class="record-clock">{formatClock(now - state.sinceMs)}</p>}
        {state.kind === "done" && (
          <>
            <Preview audio={state.audio} />
            <TextField label={t.name} value={name} maxLength={200} isRequired onInput={setName} />
          </>
        )}
        {state.kind === "refused" && <Notice tone="warning">{t.microphoneRefused}</Notice>}
        {state.kind === "impossible" && <Notice tone="warning">{t.microphoneMissing}</Notice>}
        {error && <ErrorNote title={t.addFailed} error={error} />}
      </form>
    </Dialog>
  );
}

/** The browser's own player for the local recording. */
function Preview({ audio }: { audio: Blob }) {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(audio);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [audio]);
  return <audio class="record-preview" controls src={url} aria-label={texts.voice.library.preview} />;
}
