/** The JSON of one workflow. */
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { Button } from "../../components/Button.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import type { ImageBackends } from "../../state/connections/image_backends.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { HistoryDialog } from "../documents/HistoryDialog.tsx";

/** The edited workflow. */
export interface EditedWorkflow {
  /** Undefined if not saved yet. */
  id: string | undefined;
  name: string;
  text: string;
  /** Why the file can't be used. */
  problem?: string;
}

/** Checks the text while it is typed; the server checks the rest on save. */
export function WorkflowDialog(
  { backends, workflow, onClose }: { backends: ImageBackends; workflow: EditedWorkflow; onClose: () => void },
) {
  const store = useStore();
  const t = texts.images;
  const [name, setName] = useState(workflow.name);
  const [text, setText] = useState(workflow.text);
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const [isHistoryOpen, setHistoryOpen] = useState(false);
  const json = parsed(text);
  const id = workflow.id ?? toId(name);
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
          {workflow.id !== undefined && (
            <Button kind="quiet" icon="history" onClick={() => setHistoryOpen(true)}>{texts.history.open}</Button>
          )}
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
      {workflow.id !== undefined && isHistoryOpen && (
        <HistoryDialog
          path={`/api/image/workflows/${encodeURIComponent(workflow.id)}`}
          name={workflow.name}
          current={countNodes(parsed(workflow.text))}
          fieldsOf={countNodes}
          names={{}}
          onRestored={() => {
            void backends.refresh();
            onClose();
          }}
          onClose={() => setHistoryOpen(false)}
        />
      )}
    </Dialog>
  );
}

/** Returns the nodes of a workflow by name, so that a difference names them. */
function countNodes(workflow: unknown): Record<string, unknown> {
  if (typeof workflow !== "object" || workflow === null) return {};
  return Object.fromEntries(
    Object.entries(workflow).map(([id, node]) => [`${id} ${(node as { class_type?: string }).class_type ?? ""}`, node]),
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Converts a name to an id. */
function toId(name: string): string {
  return name.trim().normalize("NFKD").replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 64);
}
