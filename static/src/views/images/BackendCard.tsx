/** One saved image backend. */
import type { ImageBackend } from "../../api/types.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import type { BackendCheck, ImageBackends } from "../../state/connections/image_backends.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Name, address, state and actions. */
export function BackendCard({ backends, backend }: { backends: ImageBackends; backend: ImageBackend }) {
  const store = useStore();
  const t = texts.connections;
  const check = backends.checks.value.get(backend.id);
  const of = (action: string) => `${action}: ${backend.name}`;
  const attempt = async (work: () => Promise<string>) => {
    try {
      store.toasts.show(await work());
    } catch (thrown) {
      store.report(thrown);
    }
  };
  const use = () => attempt(async () => texts.images.activated((await backends.activate(backend.id)).name));
  const remove = () => {
    // Its key could not be restored, so it is deleted only when the offer to undo ends.
    backends.items.value = backends.items.peek()?.filter(({ id }) => id !== backend.id);
    store.toasts.offerUndo(
      texts.images.removed,
      texts.undo,
      () => void backends.refresh(),
      () => void backends.remove(backend.id).catch((thrown) => store.report(thrown)),
    );
  };
  return (
    <li class={backend.active ? "card connection active" : "card connection"}>
      <div class="card-head">
        <h3>{backend.name}</h3>
        {backend.active && <span class="badge">{t.inUse}</span>}
      </div>
      <p class="muted facts">{listFacts(backend)}</p>
      {backend.unreadable && <Notice tone="warning">{t.unreadable}</Notice>}
      <Finding check={check} />
      <div class="actions-row">
        {!backend.active && <Button kind="primary" label={of(t.use)} onClick={() => void use()}>{t.use}</Button>}
        <Button label={of(t.test)} isBusy={check?.kind === "running"} onClick={() => void backends.check(backend)}>
          {check?.kind === "running" ? t.testing : t.test}
        </Button>
        <LinkButton href={`/settings/images/${encodeURIComponent(backend.id)}`}>{t.edit}</LinkButton>
        <Button kind="quiet" label={of(t.remove)} onClick={remove}>{t.remove}</Button>
      </div>
    </li>
  );
}

/** The result of a test. */
export function Finding({ check }: { check: BackendCheck | undefined }) {
  const t = texts.images;
  if (check === undefined || check.kind === "running") return null;
  if (check.kind === "failed") return <ErrorNote title={texts.form.testFailed} error={check.error} />;
  const { reachable, error } = check.result;
  return reachable
    ? <Notice tone="info" title={t.good} />
    : <Notice tone="warning" title={texts.connection.away}>{error}</Notice>;
}

function listFacts({ kind, base_url, checkpoint, has_key }: ImageBackend): string {
  const t = texts.images;
  return [t.kinds[kind], base_url, checkpoint, has_key && texts.connections.hasKey].filter(Boolean).join(" · ");
}
