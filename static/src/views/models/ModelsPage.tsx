/** Models: running, downloading, on disk, and the hub search. */
import { useEffect, useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { Models } from "../../state/connections/models.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { DownloadList } from "./DownloadList.tsx";
import { HubSearch } from "./HubSearch.tsx";
import { LocalModels } from "./LocalModels.tsx";
import { formatSize } from "./format_figures.ts";

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
