/** MCP servers: the list with states, adding one by hand or by JSON. */
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { toolServersApi } from "../../api/tools.ts";
import type { ServerTool, ToolServer, ToolServerImport } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { Field, TextField } from "../../components/forms/Field.tsx";
import { ServerForm } from "../../components/forms/ServerForm.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { SaveFailure, ToolServerForm } from "./ToolServerForm.tsx";
import { Switch } from "../../components/forms/inputs.tsx";
import { useFormRequests } from "../hooks.tsx";

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
  const { busy, failure, run } = useFormRequests<"add">();
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
    await run("add", async () => {
      const done = await toolServersApi(store.api.client).importList(json as Record<string, unknown>);
      onAdded();
      store.toasts.show(t.added(done.servers.length));
      if (done.skipped.length === 0) return onClose();
      setResult(done);
    });
  };
  return (
    <ServerForm onSubmit={add}>
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
      {failure && <SaveFailure error={failure.error} />}
      {result && (
        <Notice tone="warning" title={t.skipped}>
          {result.skipped.map(({ name, reason }) => <span key={name} class="tool-line">{name}: {reason}</span>)}
        </Notice>
      )}
      <div class="actions-row">
        <Button type="submit" kind="primary" isBusy={busy === "add"} isDisabled={text.trim() === ""}>
          {t.addServers}
        </Button>
        <Button kind="quiet" onClick={onClose}>{result ? t.close : t.cancel}</Button>
      </div>
    </ServerForm>
  );
}

const PERMISSIONS = ["ask", "allow", "deny"] as const;

/**
 * One MCP server: its state, its tools with their permissions, and what can be done with it.
 *
 * @param onChange Called after each change.
 */
function ToolServerCard({ server, onChange }: { server: ToolServer; onChange: () => void }) {
  const store = useStore();
  const t = texts.toolServers;
  const api = toolServersApi(store.api.client);
  const [busy, setBusy] = useState<"test" | "sign_in" | "switch" | "remove">();
  const [failure, setFailure] = useState<ApiError>();
  const [isEditing, setEditing] = useState(false);
  const run = async (kind: NonNullable<typeof busy>, work: () => Promise<unknown>) => {
    setBusy(kind);
    setFailure(undefined);
    try {
      await work();
      onChange();
    } catch (thrown) {
      setFailure(asApiError(thrown));
    }
    setBusy(undefined);
  };
  const of = (action: string) => `${action}: ${server.name}`;
  const remove = () => {
    if (confirm(t.removeQuestion(server.name))) void run("remove", () => api.remove(server.id));
  };
  const signIn = () => run("sign_in", async () => location.assign(await api.startSignIn(server.id)));
  const address = server.transport === "stdio" ? [server.command, ...server.args ?? []].join(" ") : server.url;
  const needsSignIn = server.state === "needs_auth";
  return (
    <li class="card tool-server">
      <div class="card-head">
        <h4>{server.name}</h4>
        <span class="badge" role="status">{t.states[server.state]}</span>
      </div>
      <p class="muted facts mono">{address}</p>
      {server.unreadable && <Notice tone="warning">{t.unreadable}</Notice>}
      {server.error && !failure && (
        <Notice tone="warning" title={needsSignIn ? t.states.needs_auth : t.notReady}>
          {server.error.code === "programs_not_allowed" ? t.programsHow : server.error.message}
        </Notice>
      )}
      {failure && <ErrorNote title={t.actionFailed} error={failure} />}
      {!server.unreadable && (
        <Switch
          label={t.enabled}
          isOn={server.enabled}
          isDisabled={busy !== undefined}
          onChange={(enabled) => void run("switch", () => api.put(server.id, { enabled }))}
        />
      )}
      {server.tools.length > 0 && (
        <details class="tool-list">
          <summary>{t.tools(server.tools.length)}</summary>
          <ul>
            {server.tools.map((tool) => (
              <ToolRow key={tool.name} serverId={server.id} tool={tool} onChange={onChange} />
            ))}
          </ul>
        </details>
      )}
      {isEditing && (
        <ToolServerForm
          server={server}
          takenIds={[]}
          onClose={() => setEditing(false)}
          onSaved={onChange}
        />
      )}
      <div class="actions-row">
        {needsSignIn && (
          <Button
            kind="primary"
            label={of(t.signIn)}
            isBusy={busy === "sign_in"}
            onClick={() => void signIn()}
          >
            {t.signIn}
          </Button>
        )}
        {!server.unreadable && (
          <Button
            label={of(t.test)}
            isBusy={busy === "test"}
            onClick={() => void run("test", () => api.test(server.id))}
          >
            {t.test}
          </Button>
        )}
        {!isEditing && <Button label={of(t.edit)} onClick={() => setEditing(true)}>{t.edit}</Button>}
        {server.signed_in && (
          <Button
            kind="quiet"
            label={of(t.signOut)}
            onClick={() => void run("sign_in", () => api.signOut(server.id))}
          >
            {t.signOut}
          </Button>
        )}
        <Button kind="quiet" label={of(t.remove)} isBusy={busy === "remove"} onClick={remove}>{t.remove}</Button>
      </div>
    </li>
  );
}

function ToolRow({ serverId, tool, onChange }: { serverId: string; tool: ServerTool; onChange: () => void }) {
  const store = useStore();
  const t = texts.toolServers;
  const claims = [tool.hints.read_only && t.readOnly, tool.hints.destructive && t.destructive].filter(Boolean);
  const setPermission = (permission: ServerTool["permission"]) => {
    toolServersApi(store.api.client).setPermission(serverId, tool.name, permission)
      .then(onChange, (thrown) => store.report(thrown));
  };
  return (
    <li class="tool-row">
      <Field label={tool.title ? `${tool.title} (${tool.name})` : tool.name}>
        {(_, id) => (
          <select
            id={id}
            value={tool.permission}
            onChange={(event) => setPermission(event.currentTarget.value as ServerTool["permission"])}
          >
            {PERMISSIONS.map((value) => <option key={value} value={value}>{t.permissions[value]}</option>)}
          </select>
        )}
      </Field>
      {tool.description !== "" && <p class="tool-description">{tool.description}</p>}
      {claims.length > 0 && <p class="hint">{t.claims(claims.join(", "))}</p>}
      <details>
        <summary>{t.schema}</summary>
        <pre tabIndex={0}>{JSON.stringify(tool.input_schema, null, 2)}</pre>
      </details>
    </li>
  );
}
