/** A first model without a terminal: choose one that fits this machine, download it, run it, use it. */
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { LocalModel, ModelDownload, RecommendedModels } from "../../api/types.ts";
import { Button, CopyButton } from "../../components/Button.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { Progress } from "../../components/Progress.tsx";
import { Models } from "../../state/connections/models.ts";
import { useStore } from "../../state/store.ts";
import { formatNumber } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { listFigures } from "./DownloadList.tsx";
import { formatSize } from "../../texts/quantities.ts";

type Offer = RecommendedModels["items"][number];

/** How to get llama-server. @see https://github.com/ggml-org/llama.cpp/blob/master/docs/install.md */
const INSTALL = {
  macOS: "brew install llama.cpp",
  Windows: "winget install llama.cpp",
  Linux: "brew install llama.cpp",
  Nix: "nix profile install nixpkgs#llama-cpp",
} as const;

/** A word has about this many tokens. */
const TOKENS_PER_WORD = 1.4;

/** Up to three models that fit; nothing if this server can't say. @param props.onUsed Called when the model answers. */
export function QuickModel({ level, onUsed }: { level: 2 | 3 | 4; onUsed?: () => void }) {
  const store = useStore();
  const t = texts.quickModel;
  const [models] = useState(() => new Models(store.api));
  const [offers, setOffers] = useState<RecommendedModels>();
  const [error, setError] = useState<ApiError>();
  const load = () => {
    setError(undefined);
    store.api.listRecommendedModels().then(setOffers, (thrown) => setError(asApiError(thrown)));
    void models.refresh();
  };
  useEffect(() => {
    load();
    const again = () => void models.refresh(); // llama-server may have been installed meanwhile
    globalThis.addEventListener("focus", again);
    const stop = store.listen((event) => models.onChange(event));
    return () => {
      globalThis.removeEventListener("focus", again);
      stop();
    };
  }, []);
  const runner = models.runner.value;
  useRunning(models, offers, onUsed);
  const Heading = `h${level}` as const;
  if (error) return <ErrorNote title={t.failed} error={error} onRetry={load} />;
  if (!offers || !runner) return <p class="muted" role="status">{texts.loading}</p>;
  const { items, memory_bytes, free_disk_bytes } = offers;
  // Programs of the host can't run inside the container, but another container can.
  if (!runner.program && store.setup.value?.in_container) {
    return items[0] === undefined ? null : <ComposeLine offer={items[0]} level={level} />;
  }
  return (
    <div class="quick-model">
      <Heading>{t.title}</Heading>
      <p class="muted">
        {items.length > 0
          ? t.text(formatSize(memory_bytes), formatSize(free_disk_bytes))
          : t.none(formatSize(memory_bytes), formatSize(free_disk_bytes))}
      </p>
      <ul class="found-list">
        {items.map((offer) => <OfferRow key={offer.id} models={models} offer={offer} />)}
      </ul>
      {!runner.program && items.length > 0 && <Install onCheck={() => void models.refresh()} />}
    </div>
  );
}

/** Reports once that a recommended model runs. */
function useRunning(models: Models, offers: RecommendedModels | undefined, onUsed: (() => void) | undefined): void {
  const store = useStore();
  const runner = models.runner.value;
  const isRunning = runner?.state === "running" &&
    offers?.items.some(({ repo }) => runner.path?.startsWith(`${repo}/`)) === true;
  const [wasStarted, setStarted] = useState(false);
  useEffect(() => {
    if (runner?.state === "starting") setStarted(true);
    if (!isRunning || !wasStarted) return;
    setStarted(false);
    // The connection becomes active when the model is ready.
    void store.connections.refresh().then(() => onUsed?.());
  }, [isRunning, runner?.state]);
}

function OfferRow({ models, offer }: { models: Models; offer: Offer }) {
  const store = useStore();
  const t = texts.quickModel;
  const [isBusy, setBusy] = useState(false);
  const runner = models.runner.value;
  const { repo, quantization, name, level, size_bytes, memory_bytes, tokens_per_second } = offer;
  const here = models.local.value?.find((model) => isOffer(model, offer));
  const download = models.downloads.value.find((one) => one.repo === repo && one.file?.includes(quantization));
  const isMine = here !== undefined && runner?.path === here.path;
  const act = async (work: () => Promise<void>) => {
    setBusy(true);
    await work().catch((thrown) => store.report(thrown));
    setBusy(false);
  };
  const fetchIt = async () => {
    const { files } = await store.api.listModelFiles(repo, "gguf");
    const file = files.find((one) => one.role === "model" && one.quantization === quantization);
    if (!file) throw new Error(t.gone(name));
    await models.download(repo, "gguf", file.path);
    awaitDownload();
  };
  const run = async () => {
    if (here) await models.run({ path: here.path, activate: true });
  };
  const awaitDownload = useRunWhenDone(download, here, runner?.program !== null, () => void act(run));
  const wordsPerSecond = Math.max(1, Math.round(tokens_per_second / TOKENS_PER_WORD));
  return (
    <li class="found-row">
      <div class="found-text">
        <p class="found-name">
          {name} <span class="badge">{t.levels[level]}</span>
        </p>
        {download && download.state !== "failed"
          ? <Progress label={name} value={getShare(download)} text={listFigures(download)} />
          : (
            <p class="muted facts">
              {[formatSize(size_bytes), t.memory(formatSize(memory_bytes)), t.speed(formatNumber(wordsPerSecond))].join(
                " · ",
              )}
            </p>
          )}
        {download?.state === "failed" && <Notice tone="danger">{download.error?.message}</Notice>}
        {isMine && runner?.state === "starting" && <p role="status">{t.starting}</p>}
        {isMine && runner?.state === "failed" && <Notice tone="danger">{runner.error}</Notice>}
      </div>
      {isMine && runner?.state === "running"
        ? <span class="badge">{texts.connections.inUse}</span>
        : download && download.state !== "failed"
        ? (
          <Button
            label={`${texts.models.cancel}: ${name}`}
            onClick={() => void act(() => models.cancel(download.id))}
          >
            {texts.models.cancel}
          </Button>
        )
        : here
        ? (
          <Button
            kind="primary"
            isBusy={isBusy || (isMine && runner?.state === "starting")}
            isDisabled={!runner?.program}
            label={`${t.start}: ${name}`}
            onClick={() => void act(run)}
          >
            {t.start}
          </Button>
        )
        : (
          <Button
            kind="primary"
            isBusy={isBusy}
            label={`${t.download}: ${name}`}
            onClick={() => void act(fetchIt)}
          >
            {t.download}
          </Button>
        )}
    </li>
  );
}

/**
 * Runs a model when its download, started or seen here, has ended.
 *
 * @returns A function to call when a download has been started: it may end before it is seen.
 */
function useRunWhenDone(
  download: ModelDownload | undefined,
  here: LocalModel | undefined,
  canRun: boolean,
  run: () => void,
): () => void {
  const [isAwaited, setAwaited] = useState(false);
  useEffect(() => {
    if (download !== undefined && download.state !== "failed") setAwaited(true);
    if (!isAwaited || here === undefined || download !== undefined) return;
    setAwaited(false);
    if (canRun) run();
  }, [download?.state, here?.path, isAwaited]);
  return () => setAwaited(true);
}

function isOffer({ repo, role, quantization }: LocalModel, offer: Offer): boolean {
  return repo === offer.repo && role === "model" && quantization === offer.quantization;
}

function getShare({ received_bytes, total_bytes }: ModelDownload): number | null {
  return total_bytes > 0 ? received_bytes / total_bytes : null;
}

/**
 * A service for compose.yaml that runs the smallest model that fits. PARLOR_DISCOVER_HOSTS there has its name.
 *
 * @see https://github.com/ggml-org/llama.cpp/blob/master/docs/docker.md
 */
function ComposeLine({ offer: { repo, quantization }, level }: { offer: Offer; level: 2 | 3 | 4 }) {
  const t = texts.quickModel;
  const Heading = `h${level}` as const;
  const line = `  llama: { image: "ghcr.io/ggml-org/llama.cpp:server", restart: unless-stopped, ` +
    `volumes: ["./models:/root/.cache"], command: "-hf ${repo}:${quantization} --host 0.0.0.0" }`;
  return (
    <div class="quick-model">
      <Heading>{t.composeTitle}</Heading>
      <p class="muted">{t.compose}</p>
      <p class="secret">
        <code>{line}</code>
        <CopyButton text={line} />
      </p>
    </div>
  );
}

/** One line for the chosen system, ready to copy. */
function Install({ onCheck }: { onCheck: () => void }) {
  const t = texts.quickModel;
  const [system, setSystem] = useState<keyof typeof INSTALL>(guessSystem);
  return (
    <CommandChoice
      legend={t.install}
      choices={INSTALL}
      current={system}
      onSelect={setSystem}
    >
      <Button onClick={onCheck}>{t.check}</Button>
    </CommandChoice>
  );
}

function guessSystem(): keyof typeof INSTALL {
  const { platform } = globalThis.navigator;
  return /Mac/.test(platform) ? "macOS" : /Win/.test(platform) ? "Windows" : "Linux";
}

/** One command of several, with a button that copies it. */
export function CommandChoice<T extends string>(
  { legend, choices, current, onSelect, children }: {
    legend: string;
    choices: Readonly<Record<T, string>>;
    current: T;
    onSelect: (choice: T) => void;
    children?: preact.ComponentChildren;
  },
) {
  return (
    <fieldset class="command-choice">
      <legend>{legend}</legend>
      <div class="actions-row">
        {(Object.keys(choices) as T[]).map((choice) => (
          <label key={choice} class="command-option">
            <input type="radio" checked={choice === current} onChange={() => onSelect(choice)} />
            <span>{choice}</span>
          </label>
        ))}
      </div>
      <p class="secret">
        <code>{choices[current]}</code>
        <CopyButton text={choices[current]} />
      </p>
      {children}
    </fieldset>
  );
}
