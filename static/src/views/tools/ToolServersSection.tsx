/** MCP servers: the list with states, adding one by hand or by JSON. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { toolServersApi } from "../../api/tools.ts";
import type { ServerTool, ToolServer, ToolServerImport } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { VisibleLines, VisibleText } from "../../components/content/VisibleText.tsx";
import { Field, TextField } from "../../components/forms/Field.tsx";
import { ServerForm } from "../../components/forms/ServerForm.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { toVisibleText } from "../../texts/visible_text.ts";
import { SaveFailure, ToolServerForm } from "./ToolServerForm.tsx";
import { Switch } from "../../components/forms/inputs.tsx";
import { useFormRequests, useResource, useSavedValue } from "../hooks.tsx";

/** Loads the servers itself, and again when one changes. */
export function ToolServersSection() {
  const store = useStore();
  const t = texts.toolServers;
  const { value: servers, error, again } = useResource(() => toolServersApi(store.api.client).list(), "tool_server");
  const [adding, setAdding] = useState<"form" | "json">();
  const [hiddenIds, setHiddenIds] = useState<ReadonlySet<string>>(new Set());
  const openers = useOpener(adding !== undefined);
  const close = () => setAdding(undefined);
  const hide = (id: string, isHidden: boolean) =>
    setHiddenIds((before) => new Set(isHidden ? [...before, id] : [...before].filter((each) => each !== id)));
  /** Its key can't be restored, so a server is deleted only when the offer to undo ends. */
  const remove = ({ id, name }: ToolServer) => {
    hide(id, true);
    store.toasts.offerUndo(t.removed(toVisibleText(name)), texts.undo, () => hide(id, false), (isLeaving) => {
      toolServersApi(store.api.client).remove(id, { keepalive: isLeaving })
        .then(again, (thrown) => {
          hide(id, false);
          store.report(thrown);
        });
    });
  };
  const shown = servers?.filter(({ id }) => !hiddenIds.has(id));
  return (
    <section class="settings-part" aria-labelledby="tool-servers">
      <h3 id="tool-servers" tabIndex={-1}>{t.title}</h3>
      <p class="muted">{t.intro}</p>
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={again} />}
      {!servers && !error && <p class="muted" role="status">{texts.loading}</p>}
      {shown?.length === 0 && !adding && <p>{t.none}</p>}
      {shown && shown.length > 0 && (
        <ul class="cards">
          {shown.map((server) => (
            <ToolServerCard
              key={server.id}
              server={server}
              onChange={again}
              onRemove={() => remove(server)}
            />
          ))}
        </ul>
      )}
      {adding === "form" && (
        <ToolServerForm
          server={undefined}
          takenIds={servers?.map(({ id }) => id) ?? []}
          onClose={close}
          onSaved={again}
        />
      )}
      {adding === "json" && <PasteForm onClose={close} onAdded={again} />}
      {!adding && (
        <div ref={openers} class="actions-row">
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
  const [rejections, setRejections] = useState(0);
  const { busy, failure, run } = useFormRequests<"add">();
  const [result, setResult] = useState<ToolServerImport>();
  const add = async () => {
    const json = parseObject(text);
    if (json === undefined) {
      setInvalid(t.notJson);
      return setRejections(rejections + 1);
    }
    setInvalid(undefined);
    await run("add", async () => {
      const done = await toolServersApi(store.api.client).importList(json);
      onAdded();
      store.toasts.show(t.added(done.servers.length));
      if (done.skipped.length === 0) return onClose();
      setResult(done);
    });
  };
  return (
    <ServerForm hasFocus rejections={rejections} onSubmit={add}>
      <TextField
        id="tool-server-json"
        label={t.json}
        hint={t.jsonHint}
        error={invalid}
        rows={8}
        isMono
        isSecret
        value={text}
        onInput={setText}
      />
      {failure && <SaveFailure error={failure.error} />}
      {result && (
        <Notice tone="warning" title={t.skipped}>
          {result.skipped.map(({ name, reason }) => (
            <span key={name} class="tool-line">
              <VisibleText text={name} />: {reason}
            </span>
          ))}
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

/** Returns undefined if the text isn't a JSON object. */
function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === "object" && !Array.isArray(json) ? json as Record<string, unknown> ?? undefined : undefined;
  } catch {
    return undefined;
  }
}

/** Returns a ref for the element that a form replaces. Its first button gets the focus when the form closes. */
function useOpener(isOpen: boolean) {
  const opener = useRef<HTMLDivElement>(null);
  const wasOpen = useRef(false);
  useEffect(() => {
    if (wasOpen.current && !isOpen) opener.current?.querySelector("button")?.focus();
    wasOpen.current = isOpen;
  }, [isOpen]);
  return opener;
}

const PERMISSIONS = ["ask", "allow", "deny"] as const;

/**
 * One MCP server: its state, its tools with their permissions, and actions.
 *
 * @param onChange Called after each change.
 */
function ToolServerCard(
  { server, onChange, onRemove }: { server: ToolServer; onChange: () => Promise<void>; onRemove: () => void },
) {
  const store = useStore();
  const t = texts.toolServers;
  const api = toolServersApi(store.api.client);
  const [busy, setBusy] = useState<"test" | "sign_in" | "switch">();
  const [failure, setFailure] = useState<ApiError>();
  const [isEditing, setEditing] = useState(false);
  const opener = useOpener(isEditing);
  const run = async (kind: NonNullable<typeof busy>, work: () => Promise<unknown>) => {
    setBusy(kind);
    setFailure(undefined);
    try {
      await work();
      void onChange();
    } catch (thrown) {
      setFailure(asApiError(thrown));
    }
    setBusy(undefined);
  };
  const of = (action: string) => `${action}: ${toVisibleText(server.name)}`;
  const [signInPage, setSignInPage] = useState<string>();
  const signIn = () =>
    run("sign_in", async () => {
      const page = await api.startSignIn(server.id);
      // Another site is shown first: its address decides whom the password is given to.
      if (server.url !== undefined && new URL(page).origin === new URL(server.url).origin) location.assign(page);
      else setSignInPage(page);
    });
  const address = server.transport === "stdio" ? [server.command, ...server.args ?? []].join(" ") : server.url;
  const needsSignIn = server.state === "needs_auth";
  return (
    <li class="card tool-server">
      <div class="card-head">
        <h4>
          <VisibleText text={server.name} />
        </h4>
        <span class="badge" role="status">{t.states[server.state]}</span>
      </div>
      <p class="muted facts mono">
        <VisibleText text={address ?? ""} isStrict />
      </p>
      {server.unreadable && <Notice tone="warning">{t.unreadable}</Notice>}
      {server.error && !failure && (
        <Notice tone="warning" title={needsSignIn ? t.states.needs_auth : t.notReady}>
          {server.error.code === "programs_not_allowed" ? t.programsHow : <VisibleText text={server.error.message} />}
        </Notice>
      )}
      {failure && <ErrorNote title={t.actionFailed} error={failure} />}
      {needsSignIn && signInPage !== undefined && <SignInPage page={signInPage} />}
      {!server.unreadable && (
        <Switch
          label={t.enabled}
          isOn={server.enabled && server.state !== "held"}
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
        {!isEditing && (
          <span ref={opener}>
            <Button label={of(t.edit)} onClick={() => setEditing(true)}>{t.edit}</Button>
          </span>
        )}
        {server.signed_in && (
          <Button
            kind="quiet"
            label={of(t.signOut)}
            onClick={() => void run("sign_in", () => api.signOut(server.id))}
          >
            {t.signOut}
          </Button>
        )}
        <Button kind="quiet" label={of(t.remove)} onClick={onRemove}>{t.remove}</Button>
      </div>
    </li>
  );
}

/** Asks before the page opens where the owner signs in. Its address has no query, and international names as `xn--…`. */
function SignInPage({ page }: { page: string }) {
  const t = texts.toolServers;
  const { origin, pathname } = new URL(page);
  return (
    <Notice
      tone="info"
      title={t.signInAt}
      actions={<a class="button primary" href={page} rel="noreferrer">{t.signInContinue}</a>}
    >
      <span class="mono">
        <VisibleText text={origin + pathname} isStrict />
      </span>
    </Notice>
  );
}

function ToolRow({ serverId, tool, onChange }: {
  serverId: string;
  tool: ServerTool;
  onChange: () => Promise<void>;
}) {
  const { api: { client } } = useStore();
  const t = texts.toolServers;
  const claims = [tool.hints.read_only && t.readOnly, tool.hints.destructive && t.destructive].filter(Boolean);
  const [permission, setPermission] = useSavedValue(tool.permission, async (chosen) => {
    await toolServersApi(client).setPermission(serverId, tool.name, chosen);
    await onChange();
  });
  return (
    <li class="tool-row">
      <Field label={toVisibleText(tool.title ? `${tool.title} (${tool.name})` : tool.name, { isStrict: true })}>
        {(_, id) => (
          <select
            id={id}
            value={permission}
            onChange={(event) => setPermission(event.currentTarget.value as ServerTool["permission"])}
          >
            {PERMISSIONS.map((value) => <option key={value} value={value}>{t.permissions[value]}</option>)}
          </select>
        )}
      </Field>
      {tool.description !== "" && (
        <div class="tool-description">
          <VisibleLines text={tool.description} isStrict />
        </div>
      )}
      {claims.length > 0 && <p class="hint">{t.claims(claims.join(", "))}</p>}
      <details>
        <summary>{t.schema}</summary>
        <pre tabIndex={0}><VisibleLines text={JSON.stringify(tool.input_schema, null, 2)} isStrict /></pre>
      </details>
    </li>
  );
}
