/** What helps after a failed reply: a key, another model, a shorter prompt, or waiting for the server. */
import { useEffect, useState } from "preact/hooks";
import { asApiError } from "../../../api/client.ts";
import type { UpstreamFailure } from "../../../api/types.ts";
import { Button, LinkButton } from "../../../components/Button.tsx";
import { ApiKeyField } from "../../../components/forms/ApiKeyField.tsx";
import { Select } from "../../../components/forms/Select.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { chooseCure, isAddressSuspect } from "../../../state/chat/reply_failure.ts";
import { isSameModelName } from "../../../state/connections/connection_state.ts";
import { waitForServer } from "../../../state/connections/server_wait.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { OverflowCure } from "./OverflowCure.tsx";
import { PullCure } from "./PullCure.tsx";

/** Props of every cure. */
export interface CureProps {
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

/** The cure for the kind of failure; nothing if Retry is all there is. */
export function FailureCure(props: CureProps) {
  const { upstream, onRetry } = props;
  const { kind, connection_id } = upstream;
  const { connections } = useStore();
  const connection = connections.items.value.find(({ id }) => id === connection_id);
  const cure = chooseCure(kind);
  return (
    <>
      {cure === "key" && <KeyCure {...props} />}
      {cure === "model" && (
        <>
          {connection?.kind === "ollama" && upstream.model !== "" && (
            <PullCure connection={connection} model={upstream.model} onRetry={onRetry} />
          )}
          <ModelCure {...props} />
        </>
      )}
      {cure === "overflow" && props.messageId !== undefined && (
        <OverflowCure chat={props.chat} messageId={props.messageId} onRetry={props.onRetry} />
      )}
      {cure === "wait" && props.canRetryAlone && Date.now() - props.failedAtMs < FRESH_MS && <WaitCure {...props} />}
      {isAddressSuspect(kind) && (
        <div class="actions-row">
          <LinkButton href={`/settings/connections/${encodeURIComponent(connection_id)}`}>
            {texts.cures.edit}
          </LinkButton>
        </div>
      )}
    </>
  );
}

/** The field for the key, right where it was missed. */
function KeyCure({ upstream, onRetry }: CureProps) {
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
      class="cure"
      autocomplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <ApiKeyField
        id="cure-key"
        standing={{ stored: undefined, address: connection.base_url, typed: key }}
        hint={texts.cures.keyHint(connection.name)}
        onInput={setKey}
      />
      {problem && <p class="field-error" role="alert">{problem}</p>}
      <div class="actions-row">
        <Button type="submit" kind="primary" isBusy={isBusy} isDisabled={key.trim() === ""}>
          {texts.cures.saveKey}
        </Button>
      </div>
    </form>
  );
}

/** The models that the connection does have. */
function ModelCure({ chat, upstream, onRetry }: CureProps) {
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
  const models = check.verdict.models.filter((model) => !isSameModelName(model, upstream.model, connection.kind));
  if (models.length === 0) return <p>{texts.cures.noModels(connection.name)}</p>;
  const model = chosen ?? models[0]!;
  const use = () => {
    store.device.rememberModel({ connectionId: connection.id, model });
    chat.change({ model }).then(onRetry, (thrown) => store.report(thrown));
  };
  return (
    <div class="cure">
      <Select
        label={texts.cures.model}
        value={model}
        options={models.map((name) => ({ value: name, name }))}
        onChange={setChosen}
      />
      <div class="actions-row">
        <Button kind="primary" onClick={use}>{texts.cures.useModel}</Button>
      </div>
    </div>
  );
}

/** Retries when the server works again. */
function WaitCure({ chat, upstream, messageId, onRetry }: CureProps) {
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
    <div class="cure">
      <p role="status">{texts.cures.waiting(upstream.connection_name)}</p>
      <div class="actions-row">
        <Button kind="quiet" onClick={() => setWaiting(false)}>{texts.cures.stopWaiting}</Button>
      </div>
    </div>
  );
}
