/** MCP servers: the list with states, adding one by hand or by JSON. */
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { toolServersApi } from "../../api/tools.ts";
import type { ToolServer, ToolServerImport } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { SaveFailure, ToolServerForm } from "./ToolServerForm.tsx";
import { ToolServerCard } from "./ToolServerCard.tsx";

/** Loads the servers itself, and again when one changes. */
export function ToolServersSection() {
  const store = useStore();
  const t = texts.toolServers;
  const [servers, setServers] = useState<ToolServer[]>();
  const [error, setError] = useState<ApiError>();
  const [adding, setAdding] = useState<"form" | "json">();
  const load = () => {
    toolServersApi(store.api.client).list().then((list) => {
      setServers(list);
      setError(undefined);
    }, (thrown) => setError(asApiError(thrown)));
  };
  useEffect(() => {
    load();
    return store.listen((event) => (event === undefined || event.kind === "tool_server") && load());
  }, []);
  const close = () => setAdding(undefined);
  return (
    <section class="privacy-part" aria-labelledby="tool-servers">
      <h3 id="tool-servers" tabIndex={-1}>{t.title}</h3>
      <p class="muted">{t.intro}</p>
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={load} />}
      {!servers && !error && <p class="muted" role="status">{texts.loading}</p>}
      {servers?.length === 0 && !adding && <p>{t.none}</p>}
      {servers && servers.length > 0 && (
        <ul class="cards">
          {servers.map((server) => <ToolServerCard key={server.id} server={server} onChange={load} />)}
        </ul>
      )}
      {adding === "form" && (
        <ToolServerForm
          server={undefined}
          takenIds={servers?.map(({ id }) => id) ?? []}
          onClose={close}
          onSaved={load}
        />
      )}
      {adding === "json" && <PasteForm onClose={close} onAdded={load} />}
      {!adding && (
        <div class="actions-row">
          <Button kind="primary" icon="plus" onClick={() => setAdding("form")}>{t.add}</Button>
          <Button onClick={() => setAdding("json")}>{t.paste}</Button>
        </div>
      )}
    </section>
  );
}

function PasteForm({ onClose, onAdded }: { onClose: () => void; onAdded: () => void }) {
  const store = useStore();
  const t = texts.toolServers;
  const [text, setText] = useState("");
  const [invalid, setInvalid] = useState<string>();
  const [failure, setFailure] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const [result, setResult] = useState<ToolServerImport>();
  const add = async () => {
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      return setInvalid(t.notJson);
    }
    if (typeof json !== "object" || json === null || Array.isArray(json)) return setInvalid(t.notJson);
    setInvalid(undefined);
    setFailure(undefined);
    setBusy(true);
    try {
      const done = await toolServersApi(store.api.client).importList(json as Record<string, unknown>);
      onAdded();
      store.toasts.show(t.added(done.servers.length));
      if (done.skipped.length === 0) return onClose();
      setResult(done);
    } catch (thrown) {
      setFailure(asApiError(thrown));
    }
    setBusy(false);
  };
  return (
    <form
      class="form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void add();
      }}
    >
      <TextField
        id="tool-server-json"
        label={t.json}
        hint={t.jsonHint}
        error={invalid}
        rows={8}
        isMono
        value={text}
        onInput={setText}
      />
      {failure && <SaveFailure error={failure} />}
      {result && (
        <Notice tone="warning" title={t.skipped}>
          {result.skipped.map(({ name, reason }) => <span key={name} class="tool-line">{name}: {reason}</span>)}
        </Notice>
      )}
      <div class="actions-row">
        <Button type="submit" kind="primary" isBusy={isBusy} isDisabled={text.trim() === ""}>{t.addServers}</Button>
        <Button kind="quiet" onClick={onClose}>{result ? t.close : t.cancel}</Button>
      </div>
    </form>
  );
}
