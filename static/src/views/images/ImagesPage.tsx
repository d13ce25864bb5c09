/** Images: what draws them, the search for more, and ComfyUI's workflows. */
import { useEffect, useState } from "preact/hooks";
import { imageApi } from "../../api/images.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { EmptyState } from "../../components/EmptyState.tsx";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import { ImageBackends } from "../../state/connections/image_backends.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { BackendCard } from "./BackendCard.tsx";
import { BackendFormPage } from "./BackendForm.tsx";
import { FoundBackends } from "./DetectedBackends.tsx";
import { WorkflowList } from "./WorkflowList.tsx";

/** The list, or the form of one backend (`item` is its id, or `new`). It listens for changes while it is shown. */
export function ImagesPage({ item }: { item: string | undefined }) {
  const store = useStore();
  const [backends] = useState(() => new ImageBackends(imageApi(store.api.client)));
  useEffect(() => {
    void backends.refresh();
    return store.listen((event) => backends.onChange(event));
  }, []);
  return (
    <section class="images">
      {item === undefined ? <Overview backends={backends} /> : <BackendFormPage backends={backends} item={item} />}
    </section>
  );
}

function Overview({ backends }: { backends: ImageBackends }) {
  const t = texts.images;
  const items = backends.items.value;
  const error = backends.error.value;
  // Whoever has none yet came to find one.
  useEffect(() => {
    if (items?.length === 0 && backends.search.peek().kind === "idle") void backends.discover();
  }, [items?.length]);
  return (
    <>
      <h2>{t.title}</h2>
      <p class="muted">{t.intro}</p>
      <div class="actions-row">
        <LinkButton href="/settings/images/new" icon="plus" kind="primary">{t.add}</LinkButton>
        <Button
          icon="search"
          isBusy={backends.search.value.kind === "searching"}
          onClick={() => void backends.discover()}
        >
          {t.discover}
        </Button>
      </div>
      <FoundBackends backends={backends} />
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={() => void backends.refresh()} />}
      {items === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      {items?.length === 0 && <EmptyState level={3} title={t.none} text={t.noneText} />}
      <ul class="cards">
        {items?.map((backend) => <BackendCard key={backend.id} backends={backends} backend={backend} />)}
      </ul>
      <WorkflowList backends={backends} />
    </>
  );
}
