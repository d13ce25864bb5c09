/** The text of one workflow. */
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { Button } from "../../components/Button.tsx";
import { Dialog } from "../../components/Dialog.tsx";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import { TextField } from "../../components/Field.tsx";
import { Notice } from "../../components/Notice.tsx";
import type { ImageBackends } from "../../state/image_backends.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** What is edited. */
export interface EditedWorkflow {
  /** Undefined for one that is not saved yet. */
  id: string | undefined;
  name: string;
  text: string;
  /** Why the file cannot be used. */
  problem?: string;
}

/** Says what is wrong with the text while it is written; the rest the server says when it is saved. */
export function WorkflowDialog(
  { backends, workflow, onClose }: { backends: ImageBackends; workflow: EditedWorkflow; onClose: () => void },
) {
  const store = useStore();
  const t = texts.images;
  const [name, setName] = useState(workflow.name);
  const [text, setText] = useState(workflow.text);
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const json = parsed(text);
  const id = workflow.id ?? idOf(name);
  const attempt = async (work: () => Promise<void>, done: string) => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
      store.toasts.show(done);
      onClose();
    } catch (thrown) {
      setError(asApiError(thrown));
    }
    setBusy(false);
  };
  const save = () => attempt(() => backends.saveWorkflow(id, json), t.workflowSaved);
  const remove = () => attempt(() => backends.removeWorkflow(id), t.workflowRemoved);
  return (
    <Dialog
      title={workflow.id === undefined ? t.addWorkflow : workflow.name}
      onClose={onClose}
      actions={
        <>
          {workflow.id !== undefined && <Button kind="quiet" onClick={() => void remove()}>{t.removeWorkflow}</Button>}
          <Button
            kind="primary"
            isBusy={isBusy}
            isDisabled={json === undefined || id === ""}
            onClick={() => void save()}
          >
            {texts.form.save}
          </Button>
        </>
      }
    >
      <div class="form">
        {workflow.problem && <Notice tone="warning">{workflow.problem}</Notice>}
        {workflow.id === undefined && (
          <TextField
            label={t.workflowName}
            hint={t.workflowNameHint}
            maxLength={64}
            value={name}
            onInput={setName}
            hasFocus
          />
        )}
        <TextField
          rows={16}
          isMono
          label={t.workflowText}
          hint={t.workflowTextHint}
          error={text.trim() !== "" && json === undefined ? t.notJson : undefined}
          value={text}
          onInput={setText}
        />
        {error && <ErrorNote title={texts.form.saveFailed} error={error} />}
      </div>
    </Dialog>
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Gives the id that a name becomes. */
function idOf(name: string): string {
  return name.trim().normalize("NFKD").replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 64);
}
