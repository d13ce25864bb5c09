/** Detected servers; one click adds and activates one. */
import { useState } from "preact/hooks";
import type { DetectedServer } from "../../api/types.ts";
import { Button, CopyButton } from "../../components/Button.tsx";
import { VisibleText } from "../../components/content/VisibleText.tsx";
import { ApiKeyField } from "../../components/forms/ApiKeyField.tsx";
import { Notice } from "../../components/Notice.tsx";
import { isLoopback } from "../../state/app/loopback.ts";
import { useStore } from "../../state/store.ts";
import { FoundElsewhere } from "./FoundElsewhere.tsx";
import { CommandChoice, QuickModel } from "../models/QuickModel.tsx";
import { texts } from "../../texts/texts.ts";
import { toVisibleText } from "../../texts/visible_text.ts";

/** Nothing before a search; then its progress and result. */
export function DetectedServers(
  { level, isUntitled = false, onUsed }: { level: 2 | 3 | 4; isUntitled?: boolean; onUsed?: () => void },
) {
  const store = useStore();
  const t = texts.connections;
  const discovery = store.connections.discovery.value;
  const Heading = `h${level}` as const;
  return (
    <div class="found" aria-live="polite">
      {discovery.kind === "searching" && <p class="muted">{t.searching}</p>}
      {discovery.kind === "failed" && <Notice tone="danger" title={t.discoverFailed} error={discovery.error} />}
      {discovery.kind === "done" && discovery.found.models.length === 0 && (
        <ServerAdvice level={level} onUsed={onUsed} />
      )}
      {discovery.kind === "done" && discovery.found.models.length > 0 && (
        <>
          {isUntitled
            ? <p class="muted">{t.searchEnded(discovery.found.models.length)}</p>
            : <Heading>{t.found}</Heading>}
          <ul class="found-list">
            {discovery.found.models.map((server) => <FoundRow key={server.base_url} server={server} onUsed={onUsed} />)}
          </ul>
        </>
      )}
      {discovery.kind === "done" && store.isSetupCompleted.value && (
        <FoundElsewhere found={discovery.found} own={["models"]} />
      )}
    </div>
  );
}

function FoundRow({ server, onUsed }: { server: DetectedServer; onUsed?: () => void }) {
  const store = useStore();
  const t = texts.connections;
  const [isBusy, setBusy] = useState(false);
  const [key, setKey] = useState("");
  const [refusal, setRefusal] = useState<string>();
  const known = store.connections.savedFor(server);
  const isLocked = server.needs_key === true && known === undefined;
  const use = async () => {
    setBusy(true);
    setRefusal(undefined);
    try {
      // With its key, a server shows what it is.
      const answer = isLocked ? await store.connections.unlock(server, key.trim()) : undefined;
      const isRefused = answer && !(answer.reachable && answer.authorized);
      if (isRefused || answer?.speech) {
        setRefusal(answer.speech ? t.onlySpeech : answer.advice ?? answer.error ?? t.needsKey);
        return setBusy(false);
      }
      const { software = server.software, models = server.models } = answer ?? {};
      const connection = await store.connections.use({ ...server, software, models }, answer && key.trim());
      store.toasts.show(t.activated(toVisibleText(connection.name)));
      onUsed?.();
      if (server.needs_key && !connection.has_key) {
        store.router.go(`/settings/connections/${encodeURIComponent(connection.id)}`);
      }
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
        {isLocked && (
          <form
            class="found-key"
            onSubmit={(event) => {
              event.preventDefault();
              if (key.trim() !== "") void use();
            }}
          >
            <ApiKeyField
              id={`key-of-${server.base_url}`}
              keyState={{ stored: undefined, address: server.base_url, typed: key }}
              hint={t.keyOfFound}
              onInput={setKey}
            />
            {refusal !== undefined && <p class="field-error" role="alert">{refusal}</p>}
          </form>
        )}
      </div>
      {known?.active ? <span class="badge">{t.inUse}</span> : (
        <Button
          kind="primary"
          isBusy={isBusy}
          isDisabled={isLocked && key.trim() === ""}
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
      <QuickModel level={level} onUsed={onUsed} />
    </>
  );
}
