/** ComfyUI workflows: those in the folder, and the starter. */
import type { Workflow } from "../../api/types.ts";
import { useRef, useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import type { ImageBackends } from "../../state/connections/image_backends.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { type EditedWorkflow, WorkflowDialog } from "./WorkflowDialog.tsx";

/** A larger file is not a workflow. In bytes. */
const MAX_FILE_BYTES = 1024 * 1024;

/** The list; each row opens its JSON. */
export function WorkflowList({ backends }: { backends: ImageBackends }) {
  const store = useStore();
  const t = texts.images;
  const chooser = useRef<HTMLInputElement>(null);
  const [edited, setEdited] = useState<EditedWorkflow>();
  const workflows = backends.workflows.value;
  const open = async ({ id, name, builtin, problem }: Workflow) => {
    try {
      if (problem !== undefined) return setEdited({ id, name, text: "", problem });
      const text = JSON.stringify(await backends.api.readWorkflow(id), null, 2);
      // The starter itself stays: edits are saved as a copy.
      setEdited(builtin ? { id: undefined, name: t.copyOfStarter, text } : { id, name, text });
    } catch (thrown) {
      store.report(thrown);
    }
  };
  const take = async (file: File | undefined) => {
    if (file === undefined) return;
    if (file.size > MAX_FILE_BYTES) return store.toasts.show(t.tooLarge, { isError: true });
    setEdited({ id: undefined, name: file.name.replace(/\.json$/i, ""), text: await file.text() });
  };
  if (workflows === undefined) return null;
  return (
    <section>
      <h3>{t.workflows}</h3>
      <p class="muted">{t.workflowsText}</p>
      <div class="actions-row">
        <Button icon="plus" onClick={() => chooser.current?.click()}>{t.addWorkflow}</Button>
        <input
          ref={chooser}
          type="file"
          hidden
          accept=".json,application/json"
          onChange={(event) => {
            void take(event.currentTarget.files?.[0]);
            event.currentTarget.value = "";
          }}
        />
      </div>
      <List label={t.workflows}>
        {workflows.map((workflow) => (
          <ListRow
            key={workflow.id}
            title={workflow.builtin ? t.starter : workflow.name}
            text={workflow.problem
              ? <span class="list-error">{workflow.problem}</span>
              : workflow.placeholders.map((name) => `%${name}%`).join(" ")}
            end={
              <Button label={`${texts.connections.edit}: ${workflow.name}`} onClick={() => void open(workflow)}>
                {texts.connections.edit}
              </Button>
            }
          />
        ))}
      </List>
      {edited && <WorkflowDialog backends={backends} workflow={edited} onClose={() => setEdited(undefined)} />}
    </section>
  );
}
