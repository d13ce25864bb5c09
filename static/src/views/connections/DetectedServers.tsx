/** Detected servers; one click adds and activates one. */
import { useState } from "preact/hooks";
import type { DetectedServer } from "../../api/types.ts";
import { Button, CopyButton } from "../../components/Button.tsx";
import { VisibleText } from "../../components/content/VisibleText.tsx";
import { Notice } from "../../components/Notice.tsx";
import { isLoopback } from "../../state/app/loopback.ts";
import { useStore } from "../../state/store.ts";
import { CommandChoice, QuickModel } from "../models/QuickModel.tsx";
import { texts } from "../../texts/texts.ts";
import { toVisibleText } from "../../texts/visible_text.ts";

/** Nothing before a search; then its progress and result. */
export function DetectedServers(
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
      {discovery.kind === "done" && discovery.servers.length === 0 && <ServerAdvice level={level} onUsed={onUsed} />}
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
      store.toasts.show(t.activated(toVisibleText(connection.name)));
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
        <p class="muted facts">
          <VisibleText text={facts} />
        </p>
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

/** How to make each server listen on other interfaces; from the servers' own documentation. */
const LISTENING = {
  "Ollama": "OLLAMA_HOST=0.0.0.0 ollama serve",
  "LM Studio": "Developer → Server Settings → Serve on Local Network",
  "llama.cpp": "llama-server --host 0.0.0.0 -m model.gguf",
  "KoboldCpp": "koboldcpp --host 0.0.0.0 model.gguf",
  "vLLM": "vllm serve MODEL --host 0.0.0.0",
} as const;

/** As in compose.yaml. */
const LOOK_AROUND = "PARLOR_DISCOVER_HOSTS=host.docker.internal";

/** The advice, depending on where the search ran. */
function ServerAdvice({ level, onUsed }: { level: 2 | 3 | 4; onUsed?: () => void }) {
  const setup = useStore().setup.value;
  const t = texts.connections;
  const hosts = setup?.discover_hosts ?? [];
  const [software, setSoftware] = useState<keyof typeof LISTENING>("Ollama");
  const isElsewhere = hosts.some((host) => !isLoopback(host.replace(/^(\[.*\]|[^:]*):\d+$/, "$1")));
  if (!setup?.in_container && !isElsewhere) {
    return (
      <>
        <Notice tone="info" title={t.noneFound}>{t.noneFoundAdvice}</Notice>
        <QuickModel level={level} onUsed={onUsed} />
      </>
    );
  }
  const w = texts.welcome;
  return (
    <>
      <Notice tone="info" title={t.noneFound}>{isElsewhere ? w.elsewhere(hosts.join(", ")) : w.container}</Notice>
      <QuickModel level={level} onUsed={onUsed} />
      <div class="server-advice">
        {!isElsewhere && (
          <p class="secret">
            <code>{LOOK_AROUND}</code>
            <CopyButton text={LOOK_AROUND} />
          </p>
        )}
        <CommandChoice
          legend={`${texts.quickModel.which} ${w.listen}`}
          choices={LISTENING}
          current={software}
          onSelect={setSoftware}
        />
        <p class="muted">{w.listenNote}</p>
      </div>
    </>
  );
}
