/** One saved connection. */
import type { Connection } from "../../api/types.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import { Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { type ConnectionState, stateOf } from "./connection_state.ts";
import { Verdict } from "./ConnectionTestResult.tsx";

/** Its name, address and state, and what can be done with it. */
export function ConnectionCard({ connection }: { connection: Connection }) {
  const store = useStore();
  const { connections } = store;
  const t = texts.connections;
  const check = connections.checks.value.get(connection.id);
  const state = stateOf(connection, check, connections.health.value?.connection);
  const of = (action: string) => `${action}: ${connection.name}`;
  const activate = async () => {
    try {
      await connections.activate(connection.id);
      store.toasts.show(t.activated(connection.name));
    } catch (thrown) {
      store.report(thrown);
    }
  };
  return (
    <li class={connection.active ? "card connection active" : "card connection"}>
      <div class="card-head">
        <h3>{connection.name}</h3>
        {connection.active && <span class="badge">{t.inUse}</span>}
      </div>
      <p class="muted facts">{factsOf(connection)}</p>
      {connection.kind !== "demo" && <StateLine state={state} />}
      {connection.unreadable && <Notice tone="warning">{t.unreadable}</Notice>}
      {state.error && !check && <Notice tone="warning" title={texts.connection.away}>{state.error}</Notice>}
      {check?.kind === "done" && <Verdict verdict={check.verdict} />}
      {check?.kind === "failed" && <ErrorNote title={texts.form.testFailed} error={check.error} />}
      <div class="actions-row">
        {!connection.active && <Button kind="primary" label={of(t.use)} onClick={activate}>{t.use}</Button>}
        <Button label={of(t.test)} isBusy={check?.kind === "running"} onClick={() => connections.check(connection)}>
          {check?.kind === "running" ? t.testing : t.test}
        </Button>
        {connection.kind !== "demo" && (
          <LinkButton href={`/settings/connections/${encodeURIComponent(connection.id)}`}>{t.edit}</LinkButton>
        )}
        <Button
          kind="quiet"
          label={of(t.remove)}
          onClick={() => store.deleteConnection(connection.id, { done: t.removed, undo: texts.undo })}
        >
          {t.remove}
        </Button>
      </div>
    </li>
  );
}

/** Whether it answers, by mark and word. */
function StateLine({ state }: { state: ConnectionState }) {
  const words = {
    unknown: texts.connection.untested,
    running: texts.connection.checking,
    good: texts.connection.ready,
    bad: texts.connection.away,
    refused: texts.connection.refused,
  };
  const tone = state.kind === "good" ? "good" : state.kind === "bad" || state.kind === "refused" ? "bad" : "unknown";
  return (
    <p class="state-line">
      <span class={`state-mark ${tone}`} aria-hidden="true" />
      {words[state.kind]}
    </p>
  );
}

function factsOf(connection: Connection): string {
  const t = texts.connections;
  if (connection.kind === "demo") return t.demoNote;
  const { kind, base_url, model, has_key } = connection;
  return [t.kinds[kind], base_url, model || t.noModel, has_key && t.hasKey].filter(Boolean).join(" · ");
}
