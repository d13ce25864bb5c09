/** Where backups go, how often, and how many stay. */
import { useState } from "preact/hooks";
import { type BackupChanges, changeBackups } from "../../api/import_export.ts";
import type { DataReport } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select } from "../../components/forms/Select.tsx";
import { Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { useAction } from "../use_action.ts";

const KEEP_CHOICES = [1, 3, 7, 14, 30, 90];

/** What a flag or the environment sets is shown, but can't be changed. @param props.onChange Called after a change. */
export function BackupSettings({ report, onChange }: { report: DataReport; onChange: () => void }) {
  const store = useStore();
  const t = texts.backups;
  const { backup_dir: folder, backup_schedule: schedule, backup_keep: keep, backup_fixed: fixed } = report;
  const [path, setPath] = useState(folder ?? "");
  const save = async (changes: BackupChanges, message?: string) => {
    await changeBackups(store.api.client, changes);
    if (message) store.toasts.show(message);
    onChange();
  };
  const useFolder = useAction(() => save({ backup_dir: path.trim() }, t.folderSaved));
  const turnOff = useAction(() => save({ backup_dir: null }, t.turnedOff));
  const change = (changes: BackupChanges) => void save(changes).catch((thrown) => store.report(thrown));
  const hintOf = (field: keyof BackupChanges, hint?: string) => fixed.includes(field) ? t.fixed : hint;
  const counts = [...new Set([...KEEP_CHOICES, keep])].sort((a, b) => a - b);
  return (
    <div class="form backup-settings">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void useFolder.run();
        }}
      >
        <TextField
          id="backup-folder"
          label={t.folder}
          hint={hintOf("backup_dir", t.folderHint)}
          value={path}
          placeholder={t.folderPlaceholder}
          maxLength={4096}
          error={useFolder.failure ?? turnOff.failure}
          isMono
          isDisabled={fixed.includes("backup_dir")}
          onInput={setPath}
        />
        {report.backup_same_disk === true && <Notice tone="warning">{t.sameDisk}</Notice>}
        {!fixed.includes("backup_dir") && (path.trim() !== (folder ?? "") || folder !== null) && (
          <div class="actions-row">
            {path.trim() !== "" && path.trim() !== folder && (
              <Button kind="primary" type="submit" isBusy={useFolder.isBusy}>{t.useFolder}</Button>
            )}
            {folder !== null && <Button isBusy={turnOff.isBusy} onClick={() => void turnOff.run()}>{t.turnOff}</Button>}
          </div>
        )}
      </form>
      {folder !== null && (
        <>
          <Select
            id="backup-schedule"
            label={t.schedule}
            hint={hintOf("backup_schedule")}
            value={schedule}
            options={(["daily", "weekly", "off"] as const).map((value) => ({ value, name: t.schedules[value] }))}
            isDisabled={fixed.includes("backup_schedule")}
            onChange={(value) => change({ backup_schedule: value })}
          />
          {schedule !== "off" && (
            <Select
              id="backup-keep"
              label={t.keep}
              hint={hintOf("backup_keep", t.keepHint)}
              value={String(keep)}
              options={counts.map((count) => ({ value: String(count), name: String(count) }))}
              isDisabled={fixed.includes("backup_keep")}
              onChange={(value) => change({ backup_keep: Number(value) })}
            />
          )}
        </>
      )}
    </div>
  );
}
