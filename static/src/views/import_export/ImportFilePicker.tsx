/** Selects the file and its kind. */
import { useRef, useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { Select } from "../../components/forms/Select.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { CARD } from "../../state/import_export/import_detection.ts";
import type { Imports } from "../../state/import_export/imports.ts";
import { texts } from "../../texts/texts.ts";
import { bytes } from "../activity/format_progress.ts";
import { DropArea } from "../characters/DropArea.tsx";
import { ImportNotices } from "../characters/ImportNotices.tsx";

/** Filter of the file dialog; a server may accept more. */
const FILES = ".zip,.json,.jsonl,.png,.charx,.bin,application/zip,application/json,image/png";

/** The selection stays until another file is chosen. */
export function ImportFilePicker({ moving }: { moving: Imports }) {
  const t = texts.import;
  const chooser = useRef<HTMLInputElement>(null);
  const [isMissing, setMissing] = useState(false);
  const file = moving.file.value;
  const kind = moving.kind.value;
  const error = moving.error.value;
  const complaint = moving.complaint.value;
  const importable = moving.importable.value;
  const begin = () => {
    setMissing(kind === "");
    void moving.begin();
  };
  const complaints = {
    folder: t.folder,
    too_large: t.tooLarge(bytes(importable?.max_bytes ?? 0)),
  };
  return (
    <DropArea
      title={t.drop}
      hint={t.dropHint}
      onFiles={(files, folders) => void moving.choose(files, folders)}
    >
      <form
        class="card moving-step"
        onSubmit={(event) => {
          event.preventDefault();
          begin();
        }}
      >
        <input
          ref={chooser}
          type="file"
          hidden
          multiple
          accept={FILES}
          onChange={(event) => {
            void moving.choose([...event.currentTarget.files ?? []]);
            event.currentTarget.value = "";
          }}
        />
        {file
          ? (
            <p class="moving-file">
              {file.name} <span class="muted">{bytes(file.size)}</span>
            </p>
          )
          : <p class="muted">{t.dropHint}</p>}
        <div class="actions-row">
          <Button icon="folder" kind={file ? "plain" : "primary"} onClick={() => chooser.current?.click()}>
            {file ? t.otherFile : t.chooseFile}
          </Button>
        </div>
        {complaint && <Notice tone="danger">{complaints[complaint]}</Notice>}
        {file && importable && (
          <Select
            id="import-kind"
            label={t.kind}
            hint={kind === CARD ? undefined : t.previewHint}
            error={kind === "" && isMissing ? t.kindMissing : undefined}
            value={kind}
            options={["", ...importable.kinds, CARD].map((value) => ({ value, name: getImportKindName(value) }))}
            onChange={(chosen) => {
              moving.changeKind(chosen);
              setMissing(false);
            }}
          />
        )}
        {error && (
          <ErrorNote
            title={importable ? t.sendFailed : t.unknown}
            error={error}
            onRetry={importable ? undefined : () => void moving.open()}
          />
        )}
        {file && importable && (
          <div class="actions-row">
            <Button kind="primary" type="submit">{kind === CARD ? t.confirm : t.look}</Button>
          </div>
        )}
        <ImportNotices imports={moving.cards} />
        <Arrived moving={moving} />
      </form>
    </DropArea>
  );
}

/** Returns the label of a kind; an unknown one uses its own name. */
export function getImportKindName(kind: string): string {
  const t = texts.import;
  return kind === "" ? t.kindUnknown : (t.kinds as Record<string, string>)[kind] ?? kind;
}

function Arrived({ moving }: { moving: Imports }) {
  const characters = moving.arrived.value;
  if (characters.length === 0) return null;
  const t = texts.import;
  return (
    <div role="status">
      <p>{t.cardsImported(characters.length)}</p>
      <List label={t.reportTitle}>
        {characters.map(({ id, name }) => (
          <ListRow key={id} title={name} href={`/characters/${encodeURIComponent(id)}`} />
        ))}
      </List>
    </div>
  );
}
