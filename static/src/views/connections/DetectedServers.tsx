/** What the search for servers found; one click adds a server and puts it to use. */
import type { DetectedServer } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ServerAdvice } from "./ServerAdvice.tsx";

/** Nothing before a search; then its course and its result. */
export function FoundServers(
  { level, isUntitled = false, onUsed }: { level: 2 | 3 | 4; isUntitled?: boolean; onUsed?: () => void },
) {
  const { connections } = useStore();
  const t = texts.connections;
  const discovery = connections.discovery.value;
  const Heading = `h${level}` as const;
  return (
    <div class="found" aria-live="polite">
      {discovery.kind === "searching" && <p class="muted">{t.searching}</p>}
      {discovery.kind === "failed" && <Notice tone="danger" title={t.discoverFailed} error={discovery.error} />}
      {discovery.kind === "done" && discovery.servers.length === 0 && <ServerAdvice />}
      {discovery.kind === "done" && discovery.servers.length > 0 && (
        <>
          {!isUntitled && <Heading>{t.found}</Heading>}
          <ul class="found-list">
            {discovery.servers.map((server) => <FoundRow key={server.base_url} server={server} onUsed={onUsed} />)}
          </ul>
        </>
      )}
    </div>
  );
}

function FoundRow({ server, onUsed }: { server: DetectedServer; onUsed?: () => void }) {
  const store = useStore();
  const t = texts.connections;
  const [isBusy, setBusy] = useState(false);
  const known = store.connections.savedFor(server);
  const use = async () => {
    setBusy(true);
    try {
      const connection = await store.connections.use(server);
      store.toasts.show(t.activated(connection.name));
      onUsed?.();
      if (server.needs_key) store.router.go(`/settings/connections/${encodeURIComponent(connection.id)}`);
    } catch (thrown) {
      store.report(thrown);
    }
    setBusy(false);
  };
  const facts = [
    server.base_url,
    server.models.length > 0 && (server.models.length === 1 ? server.models[0] : t.models(server.models.length)),
    server.needs_key && t.needsKey,
    server.starting && t.starting,
  ].filter(Boolean).join(" · ");
  return (
    <li class="found-row">
      <div class="found-text">
        <p class="found-name">{server.software}</p>
        <p class="muted facts">{facts}</p>
      </div>
      {known?.active ? <span class="badge">{t.inUse}</span> : (
        <Button
          kind="primary"
          isBusy={isBusy}
          label={`${known ? t.use : t.addAndUse}: ${server.software}, ${server.base_url}`}
          onClick={use}
        >
          {known ? t.use : t.addAndUse}
        </Button>
      )}
    </li>
  );
}
