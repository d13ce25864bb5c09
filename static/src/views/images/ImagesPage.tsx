/** Image settings: backends, the search for more, and ComfyUI workflows. */
import { useEffect, useRef, useState } from "preact/hooks";
import { imageApi } from "../../api/images.ts";
import type { DetectedBackend, Workflow } from "../../api/types.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, LinkButton } from "../../components/Button.tsx";
import { EmptyState, ErrorNote, Notice } from "../../components/Notice.tsx";
import { ImageBackends } from "../../state/connections/image_backends.ts";
import { FoundElsewhere } from "../connections/FoundElsewhere.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { BackendCard } from "./BackendCard.tsx";
import { BackendFormPage } from "./BackendForm.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { type ApiError, asApiError } from "../../api/client.ts";
import { TextField } from "../../components/forms/Field.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { HistoryDialog } from "../documents/HistoryDialog.tsx";

/** The list, or the form of one backend (`item` is its id, or `new`). Follows changes while shown. */
export function ImagesPage({ item }: { item: string | undefined }) {
  const store = useStore();
  const [backends] = useState(() => new ImageBackends(imageApi(store.api.client)));
  useEffect(() => {
    void backends.refresh();
    return store.listen((event) => backends.onChange(event));
  }, []);
  return (
    <section class="images">
      {item === undefined ? <Overview backends={backends} /> : <BackendFormPage backends={backends} item={item} />}
    </section>
  );
}

function Overview({ backends }: { backends: ImageBackends }) {
  const { connections } = useStore();
  const t = texts.images;
  const items = backends.items.value;
  const error = backends.error.value;
  // Without a backend, the search starts at once.
  useEffect(() => {
    if (items?.length === 0 && connections.discovery.peek().kind === "idle") void connections.discover();
  }, [items?.length]);
  const ways = (
    <div class="actions-row">
      <LinkButton href="/settings/images/new" icon="plus" kind="primary">{t.add}</LinkButton>
      <Button
        icon="search"
        isBusy={connections.discovery.value.kind === "searching"}
        onClick={() => void connections.discover()}
      >
        {t.discover}
      </Button>
    </div>
  );
  return (
    <>
      <h2>{t.title}</h2>
      <p class="muted">{t.intro}</p>
      <div class="actions-row">
        <LinkButton href="/library/images" icon="image">{texts.gallery.title}</LinkButton>
      </div>
      {items?.length !== 0 && ways}
      <DetectedBackends backends={backends} />
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={() => void backends.refresh()} />}
      {items === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      {items?.length === 0 && <EmptyState level={3} title={t.none} text={t.noneText}>{ways}</EmptyState>}
      <ul class="cards">
        {items?.map((backend) => <BackendCard key={backend.id} backends={backends} backend={backend} />)}
      </ul>
      <WorkflowList backends={backends} />
    </>
  );
}

/** Nothing before a search; then its progress and result. */
function DetectedBackends({ backends }: { backends: ImageBackends }) {
  const t = texts.images;
  const search = useStore().connections.discovery.value;
  return (
    <div class="found" aria-live="polite">
      {search.kind === "searching" && <p class="muted">{texts.connections.searching}</p>}
      {search.kind === "failed" && <Notice tone="danger" title={t.discoverFailed} error={search.error} />}
      {search.kind === "done" && search.found.images.length === 0 && (
        <Notice tone="info" title={t.noneFound}>{t.noneFoundText}</Notice>
      )}
      {search.kind === "done" && search.found.images.length > 0 && (
        <>
          <h3>{t.found}</h3>
          <ul class="found-list">
            {search.found.images.map((found) => <FoundRow key={found.base_url} backends={backends} found={found} />)}
          </ul>
        </>
      )}
      {search.kind === "done" && <FoundElsewhere found={search.found} own={["images"]} />}
    </div>
  );
}

function FoundRow({ backends, found }: { backends: ImageBackends; found: DetectedBackend }) {
  const store = useStore();
  const t = texts.images;
  const [isBusy, setBusy] = useState(false);
  const known = backends.savedFor(found);
  const use = async () => {
    setBusy(true);
    try {
      const backend = await backends.use(found);
      store.toasts.show(t.activated(backend.name));
      if (found.hint === "login") store.router.go(`/settings/images/${encodeURIComponent(backend.id)}`);
    } catch (thrown) {
      store.report(thrown);
    }
    setBusy(false);
  };
  const word = known ? texts.connections.use : texts.connections.addAndUse;
  return (
    <li class="found-row">
      <div class="found-text">
        <p class="found-name">{t.kinds[found.kind]}</p>
        <p class="muted facts">{[found.base_url, found.hint && t.hints[found.hint]].filter(Boolean).join(" · ")}</p>
      </div>
      {known?.active ? <span class="badge">{texts.connections.inUse}</span> : found.hint !== "api_off" && (
        <Button
          kind="primary"
          isBusy={isBusy}
          label={`${word}: ${t.kinds[found.kind]}, ${found.base_url}`}
          onClick={() => void use()}
        >
          {word}
        </Button>
      )}
    </li>
  );
}

/** A larger file is not a workflow. In bytes. */
const MAX_FILE_BYTES = 1024 * 1024;

/** The list; each row opens its JSON. */
function WorkflowList({ backends }: { backends: ImageBackends }) {
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

/** The edited workflow. */
interface EditedWorkflow {
  /** Undefined if not saved yet. */
  id: string | undefined;
  name: string;
  text: string;
  /** Why the file can't be used. */
  problem?: string;
}

/** Checks the text while it is typed; the server checks the rest on save. */
function WorkflowDialog(
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
  const draft = useFormDraft(`workflow:${workflow.id ?? `new ${workflow.name}`}`);
  const id = workflow.id ?? toId(name);
  const attempt = async (work: () => Promise<void>, done: string) => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
      draft.clear();
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
        <Drafted draft={draft}>
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
        </Drafted>
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
