/** One saved connection. */
import { Button, LinkButton } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import type { Connection } from "../../api/types.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { Verdict } from "./Verdict.tsx";

/** Its name, address and state, and what can be done with it. */
export function ConnectionCard({ connection }: { connection: Connection }) {
  const store = useStore();
  const { connections } = store;
  const t = texts.connections;
  const check = connections.checks.value.get(connection.id);
  const health = connections.health.value?.connection;
  const isAway = connection.active && health?.id === connection.id && !health.reachable;
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
      {connection.unreadable && <Notice tone="warning">{t.unreadable}</Notice>}
      {isAway && health.error && !check && <Notice tone="warning" title={texts.connection.away}>{health.error}</Notice>}
      {check?.kind === "done" && <Verdict verdict={check.verdict} />}
      {check?.kind === "failed" && <Notice tone="danger" title={texts.form.testFailed} error={check.error} />}
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

function factsOf(connection: Connection): string {
  const t = texts.connections;
  if (connection.kind === "demo") return t.demoNote;
  return [t.kinds[connection.kind], connection.base_url, connection.model || t.noModel].join(" · ");
}
