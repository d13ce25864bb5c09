/** The library of voice samples: record, upload, import; play, rename, delete. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { Job, VoiceImport, VoiceSample } from "../../api/types.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, IconButton } from "../../components/Button.tsx";
import { EmptyState, ErrorNote, Notice } from "../../components/Notice.tsx";
import { Progress } from "../../components/Progress.tsx";
import { Recorder, type VoiceLibrary } from "../../state/speech/voice_library.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { bytes, formatProgress } from "../../texts/quantities.ts";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Menu } from "../../components/overlays/Menu.tsx";
import { formatClock, formatNumber, formatTime } from "../../texts/format.ts";
import { HistoryDialog } from "../documents/HistoryDialog.tsx";
import { useNow } from "../../components/hooks.ts";

/** The section. */
export function VoiceLibrarySection({ library }: { library: VoiceLibrary }) {
  const t = texts.voice.library;
  const [dialog, setDialog] = useState<"record" | "import">();
  const [failed, setFailed] = useState<ApiError>();
  const chooser = useRef<HTMLInputElement>(null);
  const upload = async (files: File[]) => {
    setFailed(undefined);
    try {
      for (const file of files) await library.add(file, getSampleName(file));
    } catch (thrown) {
      setFailed(asApiError(thrown));
    }
  };
  const samples = library.shown.value;
  const [error, importError] = [library.error.value, library.importError.value];
  const ways = (
    <div class="actions-row">
      <Button icon="microphone" onClick={() => setDialog("record")}>{t.record}</Button>
      <Button icon="send" onClick={() => chooser.current?.click()}>{t.upload}</Button>
      <Button icon="import" onClick={() => setDialog("import")}>{t.fetch}</Button>
    </div>
  );
  return (
    <>
      <h3 id="voice-library" tabIndex={-1}>{t.title}</h3>
      <p class="muted">{t.intro}</p>
      {samples?.length !== 0 && ways}
      <input
        ref={chooser}
        type="file"
        hidden
        multiple
        accept="audio/*,.m4a,.webm,.ogg,.opus,.flac"
        onChange={(event) => {
          void upload([...event.currentTarget.files ?? []]);
          event.currentTarget.value = "";
        }}
      />
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={() => void library.refresh()} />}
      {failed && <ErrorNote title={t.addFailed} error={failed} />}
      {importError && <ErrorNote title={t.fetchFailed} error={importError} />}
      {library.imports.value.length > 0 && (
        <ul class="cards" aria-label={t.imports}>
          {library.imports.value.map((job) => <VoiceImportRow key={job.id} job={job} />)}
        </ul>
      )}
      {samples?.length === 0 && <EmptyState level={3} title={t.empty} text={t.emptyText}>{ways}</EmptyState>}
      {samples && samples.length > 0 && (
        <ul class="cards voice-samples" aria-label={t.title}>
          {samples.map((sample) => <VoiceSampleRow key={sample.id} library={library} sample={sample} />)}
        </ul>
      )}
      {dialog === "record" && <RecordDialog library={library} onClose={() => setDialog(undefined)} />}
      {dialog === "import" && <VoiceImportDialog library={library} onClose={() => setDialog(undefined)} />}
    </>
  );
}

/** Returns a file's name without its extension. */
function getSampleName({ name }: File): string {
  return name.replace(/\.[^.]*$/, "").trim() || name;
}

/** Progress and Cancel. */
function VoiceImportRow({ job }: { job: Job }) {
  const store = useStore();
  const { title, progress } = job;
  const share = progress?.total ? progress.done / progress.total : null;
  return (
    <li class="card">
      <h4>{title}</h4>
      <Progress label={title} value={share} text={formatProgress(progress)} />
      <div class="actions-row">
        <Button
          label={`${texts.cancel}: ${title}`}
          onClick={() => void store.activity.cancel(job.id).catch((thrown) => store.report(thrown))}
        >
          {texts.cancel}
        </Button>
      </div>
    </li>
  );
}

/** Name, details, actions. */
function VoiceSampleRow({ library, sample }: { library: VoiceLibrary; sample: VoiceSample }) {
  const { speaking } = useStore();
  const [isRenaming, setRenaming] = useState(false);
  const [isHistoryOpen, setHistoryOpen] = useState(false);
  const t = texts.voice.library;
  const isHeard = speaking.now.value?.key === sample.id;
  const remove = () => library.remove(sample, { done: t.removed(sample.name), undo: texts.undo });
  return (
    <li class="card voice-sample">
      <IconButton
        icon={isHeard ? "stop" : "play"}
        label={isHeard ? t.stopHearing(sample.name) : t.hear(sample.name)}
        onClick={() => library.hear(sample)}
      />
      <div class="voice-sample-text">
        <h4>{sample.name}</h4>
        <p class="muted">{listFacts(sample)}</p>
        {sample.description !== "" && <p>{sample.description}</p>}
      </div>
      <Menu
        label={t.more(sample.name)}
        items={[
          { label: t.rename, icon: "pencil", onSelect: () => setRenaming(true) },
          { label: texts.history.open, icon: "history", onSelect: () => setHistoryOpen(true) },
          { label: t.remove, icon: "trash", isDanger: true, onSelect: remove },
        ]}
      />
      {isHistoryOpen && (
        <HistoryDialog
          path={`/api/voices/${encodeURIComponent(sample.id)}`}
          name={sample.name}
          current={{ name: sample.name, description: sample.description }}
          names={{ name: t.name, description: texts.personas.description }}
          onRestored={() => void library.refresh()}
          onClose={() => setHistoryOpen(false)}
        />
      )}
      {isRenaming && <RenameDialog library={library} sample={sample} onClose={() => setRenaming(false)} />}
    </li>
  );
}

function listFacts({ duration_s, sample_rate_hz, format, size_bytes }: VoiceSample): string {
  return [
    duration_s === undefined ? undefined : formatClock(duration_s * 1000),
    sample_rate_hz === undefined ? undefined : `${formatNumber(sample_rate_hz / 1000)} kHz`,
    format,
    bytes(size_bytes),
  ].filter(Boolean).join(" · ");
}

function RenameDialog(
  { library, sample, onClose }: { library: VoiceLibrary; sample: VoiceSample; onClose: () => void },
) {
  const store = useStore();
  const [name, setName] = useState(sample.name);
  const draft = useFormDraft(`voice:${sample.id}`);
  const t = texts.voice.library;
  const save = (event: Event) => {
    event.preventDefault();
    if (name.trim() === "") return;
    library.rename(sample.id, name.trim()).then(() => {
      draft.clear();
      onClose();
    }, (thrown) => store.report(thrown));
  };
  return (
    <Dialog
      title={t.rename}
      onClose={onClose}
      actions={<Button kind="primary" type="submit" form="rename-sample">{texts.save}</Button>}
    >
      <form id="rename-sample" onSubmit={save}>
        <Drafted draft={draft}>
          <TextField label={t.name} value={name} maxLength={200} isRequired hasFocus onInput={setName} />
        </Drafted>
      </form>
    </Dialog>
  );
}

/** The form; the import itself continues on the page. */
function VoiceImportDialog({ library, onClose }: { library: VoiceLibrary; onClose: () => void }) {
  const store = useStore();
  const t = texts.voice.library;
  const [url, setUrl] = useState("");
  const [name, setName] = useState("");
  const [start, setStart] = useState("");
  const [end, setEnd] = useState("");
  const [isChecked, setChecked] = useState(false);
  const draft = useFormDraft("voice:import");
  const [startS, endS] = [parseSeconds(start), parseSeconds(end)];
  const isUrlBad = !/^https?:\/\/\S+$/i.test(url.trim());
  const isPieceBad = startS === null || endS === null || (endS !== undefined && endS <= (startS ?? 0));
  const submit = (event: Event) => {
    event.preventDefault();
    setChecked(true);
    if (isUrlBad || isPieceBad || name.trim() === "") return;
    const request = { url: url.trim(), name: name.trim(), start_s: startS, end_s: endS } satisfies VoiceImport;
    draft.clear();
    void library.import(request).then((isDone) => isDone && store.toasts.show(t.fetched(request.name)));
    onClose();
  };
  return (
    <Dialog
      title={t.fetchTitle}
      onClose={onClose}
      actions={<Button kind="primary" type="submit" form="voice-import">{t.fetchStart}</Button>}
    >
      <form id="voice-import" class="form" noValidate onSubmit={submit}>
        <Drafted draft={draft}>
          <TextField
            type="url"
            inputMode="url"
            label={t.url}
            hint={t.urlHint}
            error={isChecked && isUrlBad ? t.urlBad : undefined}
            hasFocus
            value={url}
            onInput={setUrl}
          />
          <TextField
            label={t.name}
            maxLength={200}
            error={isChecked && name.trim() === "" ? t.nameMissing : undefined}
            value={name}
            onInput={setName}
          />
          <div class="options-pair">
            <TextField label={t.from} placeholder="0:00" value={start} onInput={setStart} />
            <TextField label={t.to} placeholder="0:15" value={end} onInput={setEnd} />
          </div>
        </Drafted>
        <p class="hint">{t.pieceHint}</p>
        {isChecked && isPieceBad && <p class="field-error" role="alert">{t.pieceBad}</p>}
      </form>
    </Dialog>
  );
}

/** Parses `75`, `1:15` or `1:01:15`; undefined for empty text, null for an invalid time. */
function parseSeconds(text: string): number | undefined | null {
  if (text.trim() === "") return undefined;
  if (!/^\d{1,5}(?::[0-5]?\d){0,2}(?:\.\d+)?$/.test(text.trim())) return null;
  return text.trim().split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
}

/**
 * Records a voice sample from the microphone, previews it, and saves it under a name. Closing it releases the
 * microphone.
 */
function RecordDialog({ library, onClose }: { library: VoiceLibrary; onClose: () => void }) {
  const store = useStore();
  const t = texts.voice.library;
  const [recorder] = useState(() => new Recorder());
  const draft = useFormDraft("voice:recording", { isAnyBase: true });
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
      draft.clear();
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
            <Drafted draft={draft}>
              <TextField label={t.name} value={name} maxLength={200} isRequired onInput={setName} />
            </Drafted>
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
    const objectUrl = URL.createObjectURL(audio);
    setUrl(objectUrl);
    return () => URL.revokeObjectURL(objectUrl);
  }, [audio]);
  return <audio class="record-preview" controls src={url} aria-label={texts.voice.library.preview} />;
}
