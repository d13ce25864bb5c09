/** Remedies for a failed reply: a key, another model, a shorter prompt, or waiting for the server. */
import { useEffect, useRef, useState } from "preact/hooks";
import { asApiError } from "../../../api/client.ts";
import type { Connection, Job, UpstreamFailure } from "../../../api/types.ts";
import { Button, LinkButton } from "../../../components/Button.tsx";
import { ApiKeyField } from "../../../components/forms/ApiKeyField.tsx";
import { Select } from "../../../components/forms/inputs.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { chooseRemedy, isAddressSuspect } from "../../../state/chat/reply_failure.ts";
import { findModelPull, isSameModelName, isUnfinished } from "../../../state/connections/connection_state.ts";
import { findShorterPrompt, summarizeLeftOut, waitForServer } from "../../../state/chat/failure_remedies.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { formatNumber } from "../../../texts/format.ts";
import { startModelPull } from "../../../api/models.ts";
import { Progress } from "../../../components/Progress.tsx";
import { formatProgress } from "../../../texts/quantities.ts";

/** Props of every remedy. */
interface RemedyProps {
  chat: OpenChat;
  upstream: UpstreamFailure;
  /** The failed reply; undefined if the request was refused and nothing is stored. */
  messageId?: string;
  /** When it failed, by this page's clock. */
  failedAtMs: number;
  /** Whether a retry may start by itself. */
  canRetryAlone: boolean;
  onRetry: () => void;
}

/** A failure older than this is not retried by itself: the user has moved on. In milliseconds. */
const FRESH_MS = 15 * 60_000;

/** The remedy for the kind of failure; nothing if Retry is the only one. */
export function FailureRemedy(props: RemedyProps) {
  const { upstream, onRetry } = props;
  const { kind, connection_id } = upstream;
  const { connections } = useStore();
  const connection = connections.items.value.find(({ id }) => id === connection_id);
  const remedy = chooseRemedy(kind);
  return (
    <>
      {remedy === "key" && <KeyRemedy {...props} />}
      {remedy === "model" && (
        <>
          {connection?.kind === "ollama" && upstream.model !== "" && (
            <PullRemedy connection={connection} model={upstream.model} onRetry={onRetry} />
          )}
          <ModelRemedy {...props} />
        </>
      )}
      {remedy === "overflow" && props.messageId !== undefined && (
        <OverflowRemedy chat={props.chat} messageId={props.messageId} onRetry={props.onRetry} />
      )}
      {remedy === "wait" && props.canRetryAlone && Date.now() - props.failedAtMs < FRESH_MS && (
        <WaitRemedy
          {...props}
        />
      )}
      {isAddressSuspect(kind) && (
        <div class="actions-row">
          <LinkButton href={`/settings/connections/${encodeURIComponent(connection_id)}`}>
            {texts.remedies.edit}
          </LinkButton>
        </div>
      )}
    </>
  );
}

/** A field for the missing key. */
function KeyRemedy({ upstream, onRetry }: RemedyProps) {
  const { connections } = useStore();
  const [key, setKey] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const connection = connections.items.value.find(({ id }) => id === upstream.connection_id);
  if (!connection) return null;
  const save = async () => {
    if (key.trim() === "") return;
    setBusy(true);
    try {
      await connections.save({ id: connection.id, api_key: key.trim() });
      onRetry();
    } catch (thrown) {
      setProblem(asApiError(thrown).message);
    }
    setBusy(false);
  };
  return (
    <form
      class="remedy"
      autocomplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <ApiKeyField
        id="remedy-key"
        keyState={{ stored: undefined, address: connection.base_url, typed: key }}
        hint={texts.remedies.keyHint(connection.name)}
        onInput={setKey}
      />
      {problem && <p class="field-error" role="alert">{problem}</p>}
      <div class="actions-row">
        <Button type="submit" kind="primary" isBusy={isBusy} isDisabled={key.trim() === ""}>
          {texts.remedies.saveKey}
        </Button>
      </div>
    </form>
  );
}

/** The models that the connection has. */
function ModelRemedy({ chat, upstream, onRetry }: RemedyProps) {
  const store = useStore();
  const { connections } = store;
  const connection = connections.items.value.find(({ id }) => id === upstream.connection_id);
  const check = connections.checks.value.get(upstream.connection_id);
  const [chosen, setChosen] = useState<string>();
  useEffect(() => {
    if (connection) void connections.check(connection);
  }, [connection?.id]);
  if (!connection || check?.kind === "failed") return null;
  if (check?.kind !== "done") return <p role="status">{texts.loading}</p>;
  const models = check.result.models.filter((model) => !isSameModelName(model, upstream.model, connection.kind));
  if (models.length === 0) return <p>{texts.remedies.noModels(connection.name)}</p>;
  const model = chosen ?? models[0]!;
  const use = () => {
    store.device.rememberModel({ connectionId: connection.id, model });
    chat.change({ model }).then(onRetry, (thrown) => store.report(thrown));
  };
  return (
    <div class="remedy">
      <Select
        label={texts.remedies.model}
        value={model}
        options={models.map((name) => ({ value: name, name }))}
        onChange={setChosen}
      />
      <div class="actions-row">
        <Button kind="primary" onClick={use}>{texts.remedies.useModel}</Button>
      </div>
    </div>
  );
}

/** Retries when the server works again. */
function WaitRemedy({ chat, upstream, messageId, onRetry }: RemedyProps) {
  const { connections } = useStore();
  const [isWaiting, setWaiting] = useState(true);
  const retry = chat.replies.findAutoRetry(messageId);
  useEffect(() => {
    if (!isWaiting || !retry) return;
    return waitForServer(
      () => connections.probe(upstream.connection_id),
      () => {
        retry.count();
        onRetry();
      },
      retry.delayMs,
    );
  }, [isWaiting]);
  if (!isWaiting || !retry) return null;
  return (
    <div class="remedy">
      <p role="status">{texts.remedies.waiting(upstream.connection_name)}</p>
      <div class="actions-row">
        <Button kind="quiet" onClick={() => setWaiting(false)}>{texts.remedies.stopWaiting}</Button>
      </div>
    </div>
  );
}

/** Minimum length of a reply, in tokens. */
const SHORTEST_REPLY = 128;

/** Each option ends with a retry. */
function OverflowRemedy(
  { chat, messageId, onRetry }: { chat: OpenChat; messageId: string; onRetry: () => void },
) {
  const store = useStore();
  const [busy, setBusy] = useState<"summary" | "drop">();
  const [problem, setProblem] = useState<string>();
  const abort = useRef<AbortController>(undefined);
  useEffect(() => () => abort.current?.abort(), []);
  const t = texts.remedies;

  const shorten = async (kind: "summary" | "drop") => {
    const { signal } = abort.current = new AbortController();
    setBusy(kind);
    setProblem(undefined);
    try {
      const result = await findShorterPrompt(store.api, chat, messageId, signal);
      if (!result) setProblem(t.nothingToDrop);
      else if (kind === "summary" && !await summarizeLeftOut(store.api, chat, result, signal)) setProblem(t.noSummary);
      else {
        store.toasts.show(t.dropped(formatNumber(result.limit)));
        chat.replies.regenerate(messageId, { context_size: result.limit });
      }
    } catch (thrown) {
      if (!signal.aborted) setProblem(asApiError(thrown).message);
    }
    setBusy(undefined);
  };
  const limit = chat.options.value.params?.max_tokens;
  const shorter = typeof limit === "number" ? Math.floor(limit / 2) : 0;
  const limitReplies = () => {
    chat.changeParam("max_tokens", shorter).then(onRetry, (thrown) => store.report(thrown));
  };
  return (
    <div class="remedy">
      {busy === "summary" && <p role="status">{t.summarizing}</p>}
      {problem && <p class="field-error" role="alert">{problem}</p>}
      <div class="actions-row">
        <Button
          kind="primary"
          isBusy={busy === "summary"}
          isDisabled={busy === "drop"}
          onClick={() => shorten("summary")}
        >
          {t.summary}
        </Button>
        {busy === "summary"
          ? <Button kind="quiet" onClick={() => abort.current?.abort()}>{texts.cancel}</Button>
          : <Button isBusy={busy === "drop"} onClick={() => shorten("drop")}>{t.dropOldest}</Button>}
        {shorter >= SHORTEST_REPLY && busy === undefined && (
          <Button onClick={limitReplies}>{t.shorter(formatNumber(shorter))}</Button>
        )}
      </div>
    </div>
  );
}

/** Also shows a download that was started elsewhere. Only one that was started here is followed by a retry. */
function PullRemedy(
  { connection, model, onRetry }: { connection: Connection; model: string; onRetry: () => void },
) {
  const store = useStore();
  const { activity } = store;
  const [pull, setPull] = useState<Job>();
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    void activity.refresh();
  }, []);
  const listed = activity.jobs.value;
  const job = listed.find(({ id }) => id === pull?.id) ?? pull ?? findModelPull(listed, connection, model);
  const state = job?.state;
  useEffect(() => {
    if (pull === undefined || state === undefined || isUnfinished(state)) return;
    setPull(undefined);
    if (state === "done") onRetry();
    if (state === "failed") setProblem(job?.error?.message ?? texts.remedies.downloadFailed(model));
  }, [state, pull]);

  const start = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      setPull(await startModelPull(store.api.client, connection.id, model));
      await activity.refresh();
    } catch (thrown) {
      setProblem(asApiError(thrown).message);
    }
    setBusy(false);
  };
  const cancel = (id: string) => {
    setBusy(true);
    activity.cancel(id).catch((thrown) => store.report(thrown)).finally(() => setBusy(false));
  };
  const running = job !== undefined && isUnfinished(job.state) ? job : undefined;
  const { progress } = running ?? {};
  return (
    <div class="remedy">
      {problem && <p class="field-error" role="alert">{problem}</p>}
      {running && (
        <>
          <p role="status">
            {pull ? texts.remedies.downloadingThenRetry(model) : texts.remedies.downloading(model)}
          </p>
          <Progress
            label={texts.remedies.downloading(model)}
            value={progress?.total ? progress.done / progress.total : null}
            text={formatProgress(progress ?? null)}
          />
        </>
      )}
      <div class="actions-row">
        {!pull && (
          <Button kind="primary" isBusy={isBusy} onClick={() => void start()}>
            {running ? texts.remedies.retryWhenDownloaded : texts.remedies.download(model)}
          </Button>
        )}
        {running && (
          <Button
            kind="quiet"
            isBusy={isBusy && pull !== undefined}
            label={texts.activity.cancelJob(model)}
            onClick={() => cancel(running.id)}
          >
            {texts.cancel}
          </Button>
        )}
      </div>
    </div>
  );
}
