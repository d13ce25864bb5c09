/** All connections: which is in use, how each stands, and the search for more. */
import { Button, LinkButton } from "../../components/Button.tsx";
import { EmptyState } from "../../components/EmptyState.tsx";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ConnectionCard } from "./ConnectionCard.tsx";
import { FoundServers } from "./DetectedServers.tsx";

/** The list and its two ways to grow. */
export function ConnectionsPage() {
  const { connections } = useStore();
  const t = texts.connections;
  const items = connections.shown.value;
  const error = connections.error.value;
  return (
    <section>
      <h2>{texts.settings.connections}</h2>
      <p class="muted">{t.intro}</p>
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
      <FoundServers level={3} />
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={() => void connections.refresh()} />}
      {connections.state.value === "loading" && <p class="muted" role="status">{texts.loading}</p>}
      {connections.state.value === "ready" && items.length === 0 && (
        <EmptyState level={3} title={t.none} text={t.noneText} />
      )}
      <ul class="cards">
        {items.map((connection) => <ConnectionCard key={connection.id} connection={connection} />)}
      </ul>
    </section>
  );
}
