/** The library of voice samples: record, upload, import; play, rename, delete. */
import { useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { Job } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { Progress } from "../../components/Progress.tsx";
import type { VoiceLibrary } from "../../state/speech/voice_library.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatProgress } from "../activity/format_progress.ts";
import { RecordDialog } from "./RecordDialog.tsx";
import { VoiceImportDialog } from "./VoiceImportDialog.tsx";
import { VoiceSampleRow } from "./VoiceSampleRow.tsx";

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
      <Button icon="down" onClick={() => setDialog("import")}>{t.fetch}</Button>
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
