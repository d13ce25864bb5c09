/** The hint that only the demo connection exists. */
import { Button, LinkButton } from "../../components/Button.tsx";
import { lazy } from "../../components/Lazy.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

const DetectedServers = lazy(() => import("../connections/DetectedServers.tsx").then((file) => file.DetectedServers));

/** Searches for a model on this machine. */
export function DemoHint() {
  const store = useStore();
  const { connections } = store;
  const hasSearched = connections.discovery.value.kind !== "idle";
  return (
    <section class="card first-run" aria-labelledby="first-run-title">
      <h3 id="first-run-title">{texts.firstRun.title}</h3>
      <p>{texts.firstRun.text}</p>
      {hasSearched && <DetectedServers level={4} onUsed={() => store.completeSetup()} />}
      <div class="actions-row">
        <Button
          kind={hasSearched ? "plain" : "primary"}
          icon="search"
          isBusy={connections.discovery.value.kind === "searching"}
          onClick={() => connections.discover()}
        >
          {texts.firstRun.find}
        </Button>
        <LinkButton href="/settings/connections/new">{texts.firstRun.manual}</LinkButton>
        <Button kind="quiet" onClick={() => store.completeSetup()}>{texts.firstRun.later}</Button>
      </div>
    </section>
  );
}
