/** What the search for image backends found; one click adds one and puts it to use. */
import type { DetectedBackend } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { Notice } from "../../components/Notice.tsx";
import type { ImageBackends } from "../../state/connections/image_backends.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Nothing before a search; then its course and its result. */
export function FoundBackends({ backends }: { backends: ImageBackends }) {
  const t = texts.images;
  const search = backends.search.value;
  return (
    <div class="found" aria-live="polite">
      {search.kind === "searching" && <p class="muted">{texts.connections.searching}</p>}
      {search.kind === "failed" && <Notice tone="danger" title={t.discoverFailed} error={search.error} />}
      {search.kind === "done" && search.found.length === 0 && (
        <Notice tone="info" title={t.noneFound}>{t.noneFoundText}</Notice>
      )}
      {search.kind === "done" && search.found.length > 0 && (
        <>
          <h3>{t.found}</h3>
          <ul class="found-list">
            {search.found.map((found) => <FoundRow key={found.base_url} backends={backends} found={found} />)}
          </ul>
        </>
      )}
    </div>
  );
}

function FoundRow({ backends, found }: { backends: ImageBackends; found: DetectedBackend }) {
  const store = useStore();
  const t = texts.images;
  const [isBusy, setBusy] = useState(false);
  const known = backends.savedFor(found);
  const use = async () => {
    setBusy(true);
    try {
      const backend = await backends.use(found);
      store.toasts.show(t.activated(backend.name));
      if (found.hint === "login") store.router.go(`/settings/images/${encodeURIComponent(backend.id)}`);
    } catch (thrown) {
      store.report(thrown);
    }
    setBusy(false);
  };
  const word = known ? texts.connections.use : texts.connections.addAndUse;
  return (
    <li class="found-row">
      <div class="found-text">
        <p class="found-name">{t.kinds[found.kind]}</p>
        <p class="muted facts">{[found.base_url, found.hint && t.hints[found.hint]].filter(Boolean).join(" · ")}</p>
      </div>
      {known?.active ? <span class="badge">{texts.connections.inUse}</span> : found.hint !== "api_off" && (
        <Button
          kind="primary"
          isBusy={isBusy}
          label={`${word}: ${t.kinds[found.kind]}, ${found.base_url}`}
          onClick={() => void use()}
        >
          {word}
        </Button>
      )}
    </li>
  );
}
