/** The first step: who answers. */
import { useEffect } from "preact/hooks";
import { Button, LinkButton } from "../../components/Button.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { FoundServers } from "../connections/DetectedServers.tsx";
import type { StepProps } from "./SetupScreen.tsx";

/** Looks for servers by itself: found ones first, then an address by hand. */
export function ModelStep({ onNext }: StepProps) {
  const { connections } = useStore();
  const t = texts.welcome;
  useEffect(() => void connections.discover(), []);
  const active = connections.active.value;
  const hasModel = active !== undefined && active.kind !== "demo";
  return (
    <>
      <p>{hasModel ? t.modelThere(active.name) : t.modelText}</p>
      <FoundServers level={2} isUntitled onUsed={onNext} />
      <div class="gate-actions">
        {hasModel && <Button kind="primary" onClick={onNext}>{t.goOn}</Button>}
        <Button
          icon="search"
          isBusy={connections.discovery.value.kind === "searching"}
          onClick={() => void connections.discover()}
        >
          {texts.connections.searchAgain}
        </Button>
        <LinkButton href="/settings/connections/new">{texts.firstRun.manual}</LinkButton>
        {!hasModel && <Button kind="quiet" onClick={onNext}>{t.skip}</Button>}
      </div>
    </>
  );
}
