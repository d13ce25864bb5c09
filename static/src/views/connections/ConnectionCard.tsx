/** One saved connection. */
import type { Connection, ConnectionInput, ConnectionTest } from "../../api/types.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatDateTime, formatNumber } from "../../texts/format.ts";
import { ConnectionStateText } from "./ConnectionStateText.tsx";
import { useState } from "preact/hooks";
import { stripVersion } from "./connection_fields.ts";

/** Name, address, state and actions. */
export function ConnectionCard({ connection }: { connection: Connection }) {
  const store = useStore();
  const { connections } = store;
  const t = texts.connections;
  const check = connections.checks.value.get(connection.id);
  const state = connections.stateOf(connection);
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
      <p class="muted facts">{listFacts(connection)}</p>
      {connection.kind !== "demo" && <ConnectionStateText connection={connection} />}
      {connection.unreadable && <Notice tone="warning">{t.unreadable}</Notice>}
      {state.error && !check && (
        <Notice tone="warning" title={texts.connection.states[state.kind]}>{state.error}</Notice>
      )}
      <ConnectionNotes connection={connection} />
      {check?.kind === "done" && <ConnectionTestResult verdict={check.verdict} />}
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

function listFacts(connection: Connection): string {
  const t = texts.connections;
  if (connection.kind === "demo") return t.demoNote;
  const { kind, base_url, model, has_key, resolved_model, header_names = [], dialect } = connection;
  const first = resolved_model ? texts.connectionCard.answers(resolved_model) : t.noModel;
  const isNamed = kind === "openai" && dialect !== undefined && dialect.name !== "generic";
  return [
    isNamed ? dialect.title : t.kinds[kind],
    base_url,
    model || first,
    has_key && t.hasKey,
    header_names.length > 0 && texts.connectionCard.headers(header_names.join(", ")),
  ].filter(Boolean).join(" · ");
}

/** Each result on its own line, by icon and word. */
export function ConnectionTestResult({ verdict }: { verdict: ConnectionTest }) {
  const t = texts.connectionTest;
  const isGood = verdict.reachable && verdict.authorized && verdict.error === undefined;
  const { reachable, authorized, models, context_size } = verdict;
  return (
    <div class={isGood ? "verdict good" : "verdict bad"} role="status">
      <p class="verdict-title">
        <Icon name={isGood ? "check" : "warning"} />
        <strong>{isGood ? t.good : t.bad}</strong>
      </p>
      <ul>
        <li>{reachable ? `${t.reachable}, ${t.latency(Math.round(verdict.latency_ms))}` : t.unreachable}</li>
        {reachable && <li>{authorized ? t.authorized : t.unauthorized}</li>}
        {reachable && authorized && <li>{t.models(models.length)}</li>}
        {context_size !== undefined && <li>{t.context(formatNumber(context_size))}</li>}
      </ul>
      {verdict.error && <p>{verdict.error}</p>}
      {verdict.advice && <p class="advice">{verdict.advice}</p>}
    </div>
  );
}

/**
 * What a connection's server needs attention for: settings it refused, memory, a better way to talk to it. Empty for
 * most connections.
 */
function ConnectionNotes({ connection }: { connection: Connection }) {
  const t = texts.connectionCard;
  const { notice, refused } = connection;
  const isOllama = connection.suggested_kind === "ollama" ||
    (connection.kind === "openai" && connection.server.detected === "ollama" && !connection.server.override);
  return (
    <>
      {notice && <Notice tone="warning">{getNoticeText(notice)}</Notice>}
      {isOllama && (
        <Notice
          tone="info"
          actions={
            <SaveButton
              connection={connection}
              label={t.switchToOllama}
              changes={{ kind: "ollama", base_url: stripVersion(connection.base_url) }}
              done={t.switched(connection.name)}
            />
          }
        >
          {t.suggestOllama}
        </Notice>
      )}
      {refused.length > 0 && <RefusedFields connection={connection} />}
    </>
  );
}

function getNoticeText({ code, message }: { code: string; message: string }): string {
  const { notices } = texts.connectionCard;
  return Object.hasOwn(notices, code) ? notices[code as keyof typeof notices] : message;
}

/** By model. Saving the connection forgets them. */
function RefusedFields({ connection }: { connection: Connection }) {
  const t = texts.connectionCard;
  const { refused } = connection;
  const models = [...new Set(refused.map(({ model }) => model))];
  return (
    <details class="refused-fields">
      <summary>{t.refused(refused.length)}</summary>
      <p class="hint">{t.refusedHint}</p>
      {models.map((model) => (
        <section key={model}>
          <h4>{model}</h4>
          <ul>
            {refused.filter((each) => each.model === model).map(({ field, sent_as, status, reason, until }) => (
              <li key={field}>
                <code>{sent_as === undefined ? field : `${field} → ${sent_as}`}</code> ({status}): {reason}{" "}
                <span class="muted">{t.refusedUntil(formatDateTime(until))}</span>
              </li>
            ))}
          </ul>
        </section>
      ))}
      <div class="actions-row">
        <SaveButton connection={connection} label={t.tryAgain} changes={{}} done={t.forgotten} />
      </div>
    </details>
  );
}

/** Saves a change of the connection and says what it did. */
function SaveButton(
  { connection, label, changes, done }: {
    connection: Connection;
    label: string;
    changes: Partial<ConnectionInput>;
    done: string;
  },
) {
  const store = useStore();
  const [isBusy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    try {
      await store.connections.save({ id: connection.id, ...changes });
      store.toasts.show(done);
    } catch (thrown) {
      store.report(thrown);
    }
    setBusy(false);
  };
  return <Button isBusy={isBusy} label={`${label}: ${connection.name}`} onClick={save}>{label}</Button>;
}
