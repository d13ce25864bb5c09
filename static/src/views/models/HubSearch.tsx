/** Search on the hub, and the files of its results. */
import type { HubFile, HubModel, ModelFormat } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import type { Models } from "../../state/connections/models.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatCount, formatDay, formatSize } from "../../texts/quantities.ts";

const FORMATS = [{ value: "gguf", name: "GGUF (llama.cpp)" }, { value: "mlx", name: "MLX (Apple)" }] as const;

/** The search field. */
export const HUB_SEARCH_ID = "hub-search";

/** Searches on submit, not on each key: the hub limits requests. */
export function HubSearch({ models }: { models: Models }) {
  const store = useStore();
  const t = texts.models;
  const found = models.search.value;
  return (
    <>
      <h3>{t.search}</h3>
      <form
        class="model-search"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          void models.find();
        }}
      >
        <TextField
          id={HUB_SEARCH_ID}
          label={t.query}
          type="search"
          value={models.query.value}
          onInput={(text) => models.query.value = text}
          placeholder={t.queryExample}
        />
        <Select<ModelFormat>
          label={t.format}
          value={models.format.value}
          options={FORMATS}
          onChange={(format) => {
            models.format.value = format;
            if (models.search.value.kind !== "idle") void models.find();
          }}
        />
        <Button type="submit" icon="search" kind="primary" isBusy={found.kind === "searching"}>{t.find}</Button>
      </form>
      <p class="hint">{t.hubNote}</p>
      {found.kind === "failed" && (
        <ErrorNote
          title={t.searchFailed}
          error={found.error}
          onRetry={() => models.find()}
        />
      )}
      {found.kind === "done" && (
        <>
          <p class="visually-hidden" role="status">{t.foundCount(found.items.length)}</p>
          {found.items.length === 0 && <p class="muted">{t.nothingFound}</p>}
          <ul class="cards">
            {found.items.map((item) => <HubModelCard key={item.repo} models={models} item={item} />)}
          </ul>
          {found.nextCursor !== null && (
            <Button
              isBusy={found.isLoadingMore}
              onClick={() => models.findMore().catch((thrown) => store.report(thrown))}
            >
              {t.more}
            </Button>
          )}
        </>
      )}
    </>
  );
}

function HubModelCard({ models, item }: { models: Models; item: HubModel }) {
  const t = texts.models;
  const { repo, downloads, license, gated, updated_at } = item;
  const files = models.files.value.get(repo);
  return (
    <li class="card">
      <div class="card-head">
        <h4>{repo}</h4>
        {gated && <span class="badge">{t.gated}</span>}
      </div>
      <p class="muted facts">
        {[t.downloadCount(formatCount(downloads)), license, updated_at && t.updated(formatDay(updated_at))]
          .filter(Boolean).join(" · ")}
      </p>
      <div class="actions-row">
        <Button
          isExpanded={files !== undefined}
          label={`${files === undefined ? t.showFiles : t.hideFiles}: ${repo}`}
          onClick={() => files === undefined ? models.open(repo) : models.close(repo)}
        >
          {files === undefined ? t.showFiles : t.hideFiles}
        </Button>
      </div>
      {files?.kind === "loading" && <p class="muted" role="status">{texts.loading}</p>}
      {files?.kind === "failed" && (
        <ErrorNote
          title={t.filesFailed}
          error={files.error}
          onRetry={() => models.open(repo)}
        />
      )}
      {files?.kind === "done" && (
        <>
          {gated && <Notice tone="warning">{t.gatedText}</Notice>}
          {files.listing.has_code && <Notice tone="info">{t.codeText}</Notice>}
          <p class="hub-page">
            <a href={files.listing.url} target="_blank" rel="noopener noreferrer">{t.page}</a>
          </p>
          <FileList models={models} repo={repo} files={files.listing.files} />
        </>
      )}
    </li>
  );
}

function FileList({ models, repo, files }: { models: Models; repo: string; files: HubFile[] }) {
  const store = useStore();
  const t = texts.models;
  const format = models.format.value;
  const start = async (file?: string) => {
    try {
      await models.download(repo, format, file);
      store.toasts.show(t.started(file ?? repo));
    } catch (thrown) {
      store.report(thrown);
    }
  };
  const shown = files.filter(({ role }) => role !== "other" || format === "mlx");
  if (shown.length === 0) return <p class="muted">{t.noFiles}</p>;
  if (format === "mlx") {
    const bytes = shown.reduce((sum, file) => sum + file.size_bytes, 0);
    const state = models.getState(repo);
    return (
      <div class="actions-row">
        {state === "absent"
          ? (
            <Button kind="primary" label={`${t.download}: ${repo}`} onClick={() => start()}>
              {t.downloadSize(formatSize(bytes))}
            </Button>
          )
          : <span class="badge">{t.fileStates[state]}</span>}
      </div>
    );
  }
  const rows = (role: HubFile["role"]) =>
    shown.filter((file) => file.role === role).map(({ path, size_bytes, quantization, shards }) => {
      const state = models.getState(`${repo}/${path}`);
      return (
        <ListRow
          key={path}
          title={path}
          text={[quantization, formatSize(size_bytes), shards && t.shards(shards.length)].filter(Boolean).join(" · ")}
          end={state === "absent"
            ? <Button label={`${t.download}: ${path}`} onClick={() => start(path)}>{t.download}</Button>
            : <span class="badge">{t.fileStates[state]}</span>}
        />
      );
    });
  const projectors = rows("mmproj");
  return (
    <>
      <List label={repo}>{rows("model")}</List>
      {projectors.length > 0 && (
        <>
          <h5>{t.projectors}</h5>
          <p class="hint">{t.projectorsText}</p>
          <List label={`${repo}: ${t.projectors}`}>{projectors}</List>
        </>
      )}
    </>
  );
}
