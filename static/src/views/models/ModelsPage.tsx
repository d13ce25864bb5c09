/** Models: running, downloading, on disk, and the hub search. */
import { useEffect, useState } from "preact/hooks";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button } from "../../components/Button.tsx";
import { EmptyState, ErrorNote, Notice } from "../../components/Notice.tsx";
import { Models } from "../../state/connections/models.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { DownloadList } from "./DownloadList.tsx";
import { HUB_SEARCH_ID, HubSearch } from "./HubSearch.tsx";
import { formatCount, formatSize } from "../../texts/quantities.ts";
import type { LocalModel, RunModel } from "../../api/types.ts";
import { CodeBlock } from "../../components/content/CodeBlock.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Switch } from "../../components/forms/inputs.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";

/** The page; it follows changes while shown. */
export function ModelsPage() {
  const store = useStore();
  const [models] = useState(() => new Models(store.api));
  const t = texts.models;
  useEffect(() => {
    void models.refresh();
    return store.listen((event) => models.onChange(event));
  }, []);
  const error = models.error.value;
  return (
    <section class="models">
      <h2>{t.title}</h2>
      <p class="muted">{t.intro}</p>
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={() => models.refresh()} />}
      <RunnerPanel models={models} />
      <DownloadList models={models} />
      <LocalModels models={models} />
      <HubSearch models={models} />
    </section>
  );
}

/** Nothing until a model has been run. */
function RunnerPanel({ models }: { models: Models }) {
  const store = useStore();
  const t = texts.models;
  const runner = models.runner.value;
  if (!runner?.path) return null;
  const { state, path, log, error, memory_bytes, context_size } = runner;
  const isUp = state === "running" || state === "starting";
  const facts = [
    context_size && t.contextOf(context_size.toLocaleString()),
    memory_bytes && t.memory(formatSize(memory_bytes)),
  ].filter(Boolean).join(" · ");
  return (
    <div class={state === "running" ? "card connection active" : "card"}>
      <div class="card-head">
        <h3>{path.slice(path.lastIndexOf("/") + 1)}</h3>
        <span class="badge" role="status">{t.runnerStates[state]}</span>
      </div>
      {facts !== "" && <p class="muted facts">{facts}</p>}
      {error && <Notice tone={state === "failed" ? "danger" : "warning"} title={t.runFailed}>{error}</Notice>}
      {log.length > 0 && (
        <details class="model-log">
          <summary>{t.log}</summary>
          <pre tabIndex={0} role="region" aria-label={t.log}>{log.join("\n")}</pre>
        </details>
      )}
      {isUp && (
        <div class="actions-row">
          <Button icon="stop" onClick={() => models.stop().catch((thrown) => store.report(thrown))}>{t.stop}</Button>
        </div>
      )}
    </div>
  );
}

/** The list; each model that can run here has a button for it. */
function LocalModels({ models }: { models: Models }) {
  const t = texts.models;
  const items = models.local.value;
  if (items === undefined) return <p class="muted" role="status">{texts.loading}</p>;
  return (
    <>
      <h3>{t.local}</h3>
      {items.length === 0 && (
        <EmptyState level={3} title={t.none} text={t.noneText}>
          <Button kind="primary" icon="search" onClick={() => document.getElementById(HUB_SEARCH_ID)?.focus()}>
            {t.search}
          </Button>
        </EmptyState>
      )}
      <ul class="cards">{items.map((model) => <LocalCard key={model.path} models={models} model={model} />)}</ul>
    </>
  );
}

type RunRequest =
  | { kind: "run" }
  | { kind: "delete" }
  | { kind: "command"; command: string; advice: string }
  | undefined;

function LocalCard({ models, model }: { models: Models; model: LocalModel }) {
  const store = useStore();
  const t = texts.models;
  const [pending, setPending] = useState<RunRequest>(undefined);
  const runner = models.runner.value;
  const isHere = runner?.path === model.path && (runner.state === "running" || runner.state === "starting");
  const canRun = model.format === "gguf" && model.role === "model";
  const close = () => setPending(undefined);
  const act = (work: Promise<void>) => void work.catch((thrown) => store.report(thrown));
  const run = async () => {
    if (runner?.program) return setPending({ kind: "run" });
    setPending({ kind: "command", command: await models.commandFor(model.path), advice: runner?.advice ?? "" });
  };
  return (
    <li class="card">
      <div class="card-head">
        <h4>{model.path.slice(model.path.lastIndexOf("/") + 1)}</h4>
        {isHere && <span class="badge">{t.runnerStates[runner.state]}</span>}
      </div>
      <p class="muted facts">{listFacts(model)}</p>
      {!isHere && (
        <div class="actions-row">
          {canRun && (
            <Button kind="primary" label={`${t.run}: ${model.path}`} onClick={() => act(run())}>{t.run}</Button>
          )}
          <Button kind="quiet" label={`${t.remove}: ${model.path}`} onClick={() => setPending({ kind: "delete" })}>
            {t.remove}
          </Button>
        </div>
      )}
      {pending?.kind === "run" && <RunDialog models={models} model={model} onClose={close} />}
      {pending?.kind === "delete" && (
        <Dialog
          title={t.deleteTitle}
          onClose={close}
          actions={
            <>
              <Button onClick={close}>{t.keep}</Button>
              <Button
                kind="primary"
                onClick={() => {
                  close();
                  act(models.remove(model.path));
                }}
              >
                {t.remove}
              </Button>
            </>
          }
        >
          <p>{t.deleteText(model.path, formatSize(model.size_bytes))}</p>
        </Dialog>
      )}
      {pending?.kind === "command" && (
        <Dialog title={t.noProgram} onClose={close}>
          <Notice tone="info">{pending.advice}</Notice>
          <p>{t.byHand}</p>
          <CodeBlock text={pending.command} language="sh" isOpen={false} />
        </Dialog>
      )}
    </li>
  );
}

function listFacts({ repo, format, role, size_bytes, quantization, parameters, context_size }: LocalModel): string {
  const t = texts.models;
  return [
    repo,
    role === "mmproj" ? t.projector : format.toUpperCase(),
    quantization,
    parameters && t.parameters(formatCount(parameters)),
    context_size && t.contextOf(formatCount(context_size)),
    formatSize(size_bytes),
  ].filter(Boolean).join(" · ");
}

const MAX_IDLE_MINUTES = 10_080; // API document: a week

/** Asks for context size, GPU layers and idle time; closes when started. */
function RunDialog({ models, model, onClose }: { models: Models; model: LocalModel; onClose: () => void }) {
  const store = useStore();
  const t = texts.models;
  const most = model.context_size;
  const [context, setContext] = useState(String(Math.min(most ?? 8192, 8192)));
  const [layers, setLayers] = useState("");
  const [idle, setIdle] = useState("30");
  const [activate, setActivate] = useState(true);
  const draft = useFormDraft(`run:${model.path}`);
  const isContextGood = /^\d{3,8}$/.test(context) && Number(context) >= 256;
  const areLayersGood = /^\d{0,4}$/.test(layers);
  const isIdleGood = /^\d{1,5}$/.test(idle) && Number(idle) <= MAX_IDLE_MINUTES;
  const isGood = isContextGood && areLayersGood && isIdleGood;
  const start = () => {
    if (!isGood) return;
    draft.clear();
    onClose();
    const gpu = layers === "" ? {} : { gpu_layers: Number(layers) } satisfies Partial<RunModel>;
    const request = {
      path: model.path,
      context_size: Number(context),
      idle_minutes: Number(idle),
      ...gpu,
      activate,
    } satisfies RunModel;
    models.run(request).catch((thrown) => store.report(thrown));
  };
  return (
    <Dialog
      title={t.runTitle(model.path.slice(model.path.lastIndexOf("/") + 1))}
      onClose={onClose}
      actions={<Button kind="primary" isDisabled={!isGood} onClick={start}>{t.start}</Button>}
    >
      <div class="form">
        {model.chat_template === false && <Notice tone="warning">{t.baseModel}</Notice>}
        <Drafted draft={draft}>
          <TextField
            label={t.context}
            hint={most === undefined ? undefined : t.contextHint(most.toLocaleString())}
            error={isContextGood ? undefined : t.contextBad}
            value={context}
            onInput={setContext}
            inputMode="numeric"
            hasFocus
          />
          <TextField
            label={t.layers}
            hint={model.layers === undefined ? t.layersHint : `${t.layersHint} ${t.layersOf(model.layers)}`}
            error={areLayersGood ? undefined : t.layersBad}
            value={layers}
            onInput={setLayers}
            inputMode="numeric"
          />
          <TextField
            label={t.idle}
            hint={t.idleHint}
            error={isIdleGood ? undefined : t.idleBad}
            value={idle}
            onInput={setIdle}
            inputMode="numeric"
          />
          <Switch label={t.activate} isOn={activate} onChange={setActivate} />
        </Drafted>
      </div>
    </Dialog>
  );
}
