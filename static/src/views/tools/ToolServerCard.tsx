/** One MCP server: its state, its tools with their permissions, and what can be done with it. */
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { toolServersApi } from "../../api/tools.ts";
import type { ServerTool, ToolServer } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { Field } from "../../components/forms/Field.tsx";
import { Switch } from "../../components/forms/inputs.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ToolServerForm } from "./ToolServerForm.tsx";

const PERMISSIONS = ["ask", "allow", "deny"] as const;

/** @param onChange Called after each change. */
export function ToolServerCard({ server, onChange }: { server: ToolServer; onChange: () => void }) {
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
