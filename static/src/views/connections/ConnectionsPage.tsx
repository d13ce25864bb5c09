/** All connections: the active one, their states, and the search for more. */
import { useEffect } from "preact/hooks";
import { Button, LinkButton } from "../../components/Button.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ConnectionCard } from "./ConnectionCard.tsx";
import { ConnectionForm } from "./ConnectionForm.tsx";
import { DetectedServers } from "./DetectedServers.tsx";

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
        <Button kind="quiet" onClick={() => items.forEach((item) => void connections.check(item))}>
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
