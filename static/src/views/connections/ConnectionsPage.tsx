/** All connections: the active one, their states, and the search for more. */
import { useEffect, useState } from "preact/hooks";
import { Button, LinkButton } from "../../components/Button.tsx";
import { VisibleText } from "../../components/content/VisibleText.tsx";
import { EmptyState, ErrorNote, Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { toVisibleText } from "../../texts/visible_text.ts";
import { ConnectionForm, ConnectionTestResult } from "./ConnectionForm.tsx";
import { DetectedServers } from "./DetectedServers.tsx";
import type { Connection, ConnectionInput } from "../../api/types.ts";
import { formatDateTime } from "../../texts/format.ts";
import { ConnectionStateText } from "./ConnectionStateText.tsx";
import { stripVersion } from "./connection_fields.ts";

/** The list and the two ways to add one. */
export function ConnectionsPage() {
  const { connections } = useStore();
  const t = texts.connections;
  const items = connections.shown.value;
  const error = connections.error.value;
  const isEmpty = connections.state.value === "ready" && items.length === 0;
  const ways = (
    <div class="actions-row">
      <LinkButton href="/settings/connections/new" icon="plus" kind="primary">{t.add}</LinkButton>
      <Button
        icon="search"
        isBusy={connections.discovery.value.kind === "searching"}
        onClick={() => connections.discover()}
      >
        {t.discover}
      </Button>
      {items.length > 1 && (
        <Button
          kind="quiet"
          onClick={() => items.forEach((item) => void connections.check(item, { quick: false }))}
        >
          {t.testAll}
        </Button>
      )}
    </div>
  );
  return (
    <section>
      <h2>{texts.settings.connections}</h2>
      <p class="muted">{t.intro}</p>
      {!isEmpty && ways}
      <DetectedServers level={3} />
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={() => void connections.refresh()} />}
      {connections.state.value === "loading" && <p class="muted" role="status">{texts.loading}</p>}
      {isEmpty && <EmptyState level={3} title={t.none} text={t.noneText}>{ways}</EmptyState>}
      <ul class="cards">
        {items.map((connection) => <ConnectionCard key={connection.id} connection={connection} />)}
      </ul>
    </section>
  );
}

/** Searches for servers at once, since that is what most users want. */
export function AddConnectionPage() {
  const store = useStore();
  const { connections } = store;
  const t = texts.connections;
  const discovery = connections.discovery.value;
  useEffect(() => void connections.discover(), []);
  const onUsed = () => {
    store.router.go(store.isSetupCompleted.peek() ? "/settings/connections" : "/welcome/name");
  };
  return (
    <section>
      <h2>{texts.form.addTitle}</h2>
      <div class="wizard-step">
        <div class="card-head">
          <h3>{texts.form.nearby}</h3>
          <Button
            kind="quiet"
            icon="search"
            isBusy={discovery.kind === "searching"}
            onClick={() => void connections.discover()}
          >
            {t.searchAgain}
          </Button>
        </div>
        <DetectedServers level={3} isUntitled onUsed={onUsed} />
      </div>
      <div class="wizard-step">
        <h3>{texts.form.byHand}</h3>
        <ConnectionForm connection={undefined} />
      </div>
    </section>
  );
}

/** The form, once its connection is loaded. */
export function EditConnectionPage({ id }: { id: string }) {
  const { connections } = useStore();
  const connection = connections.items.value.find((item) => item.id === id);
  if (!connection) {
    if (connections.state.value === "loading") return <p class="muted" role="status">{texts.loading}</p>;
    return (
      <EmptyState title={texts.form.missing}>
        <LinkButton href="/settings/connections">{texts.settings.connections}</LinkButton>
      </EmptyState>
    );
  }
  return (
    <section>
      <h2>{texts.form.editTitle}</h2>
      <ConnectionForm connection={connection} />
    </section>
  );
}

/** A connection of the list: name, address, state and actions. */
function ConnectionCard({ connection }: { connection: Connection }) {
  const store = useStore();
  const { connections } = store;
  const t = texts.connections;
  const check = connections.checks.value.get(connection.id);
  const state = connections.getState(connection);
  const name = toVisibleText(connection.name);
  const of = (action: string) => `${action}: ${name}`;
  const activate = async () => {
    try {
      await connections.activate(connection.id);
      store.toasts.show(t.activated(name));
    } catch (thrown) {
      store.report(thrown);
    }
  };
  return (
    <li class={connection.active ? "card connection active" : "card connection"}>
      <div class="card-head">
        <h3>
          <VisibleText text={connection.name} />
        </h3>
        {connection.active && <span class="badge">{t.inUse}</span>}
      </div>
      <p class="muted facts">
        <VisibleText text={listFacts(connection)} />
      </p>
      {connection.kind !== "demo" && <ConnectionStateText connection={connection} />}
      {connection.unreadable && <Notice tone="warning">{t.unreadable}</Notice>}
      {state.error && !check && (
        <Notice tone="warning" title={texts.connection.states[state.kind]}>{state.error}</Notice>
      )}
      <ConnectionNotes connection={connection} />
      {check?.kind === "done" && <ConnectionTestResult result={check.result} />}
      {check?.kind === "failed" && <ErrorNote title={texts.form.testFailed} error={check.error} />}
      <div class="actions-row">
        {!connection.active && <Button kind="primary" label={of(t.use)} onClick={activate}>{t.use}</Button>}
        <Button
          label={of(t.test)}
          isBusy={check?.kind === "running"}
          onClick={() => connections.check(connection, { quick: false })}
        >
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

/**
 * Warnings of a connection's server: settings it refused, memory, a better protocol. Empty for
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
              done={t.switched(toVisibleText(connection.name))}
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

/** Saves a change of the connection and shows a confirmation. */
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
  return <Button isBusy={isBusy} label={`${label}: ${toVisibleText(connection.name)}`} onClick={save}>{label}</Button>;
}
