/** Models: what runs, what comes, what is there, and the search for more. */
import { useEffect, useState } from "preact/hooks";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import { Models } from "../../state/connections/models.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { DownloadList } from "./DownloadList.tsx";
import { HubSearch } from "./HubSearch.tsx";
import { LocalModels } from "./LocalModels.tsx";
import { RunnerPanel } from "./RunnerPanel.tsx";

/** The page; it listens for changes while it is shown. */
export function ModelsPage() {
  const store = useStore();
  const [models] = useState(() => new Models(store.api));
  const t = texts.models;
  useEffect(() => {
    void models.refresh();
    return store.listen((event) => models.onChange(event));
  }, []);
  const error = models.error.value;
  return (
    <section class="models">
      <h2>{t.title}</h2>
      <p class="muted">{t.intro}</p>
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={() => models.refresh()} />}
      <RunnerPanel models={models} />
      <DownloadList models={models} />
      <LocalModels models={models} />
      <HubSearch models={models} />
    </section>
  );
}
