/** Adding a connection: servers that were found first, then suggestions, then everything by hand. */
import { useEffect } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ConnectionForm } from "./ConnectionForm.tsx";
import { FoundServers } from "./DetectedServers.tsx";

/** Looks for servers by itself; that is what most people come for. */
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
        <FoundServers level={3} isUntitled onUsed={onUsed} />
      </div>
      <div class="wizard-step">
        <h3>{texts.form.byHand}</h3>
        <ConnectionForm connection={undefined} />
      </div>
    </section>
  );
}
