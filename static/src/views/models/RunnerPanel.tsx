/** The model that Parlor runs: its state, its last words, Stop. */
import { Button } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import type { Models } from "../../state/connections/models.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { sizeText } from "./format_figures.ts";

/** Nothing while no model has been run. */
export function RunnerPanel({ models }: { models: Models }) {
  const store = useStore();
  const t = texts.models;
  const runner = models.runner.value;
  if (!runner?.path) return null;
  const { state, path, log, error, memory_bytes, context_size } = runner;
  const isUp = state === "running" || state === "starting";
  const facts = [
    context_size && t.contextOf(context_size.toLocaleString()),
    memory_bytes && t.memory(sizeText(memory_bytes)),
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
