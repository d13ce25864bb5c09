/** Adds or edits an MCP server: a program of the server's machine, or an address. */
import { useState } from "preact/hooks";
import type { ApiError } from "../../api/client.ts";
import { toolServersApi } from "../../api/tools.ts";
import type { ToolServer, ToolServerBody } from "../../api/types.ts";
import { CancelButton, Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button } from "../../components/Button.tsx";
import { AddressField } from "../../components/forms/AddressField.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { ServerForm } from "../../components/forms/ServerForm.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { useFormRequests } from "../hooks.tsx";

/** @param takenIds Ids that a new server can't have. */
export function ToolServerForm(
  { server, takenIds, onClose, onSaved }: {
    server: ToolServer | undefined;
    takenIds: readonly string[];
    onClose: () => void;
    onSaved: () => void;
  },
) {
  const store = useStore();
  const t = texts.toolServers;
  const [transport, setTransport] = useState<ToolServer["transport"]>(server?.transport ?? "http");
  const [name, setName] = useState(server?.name ?? "");
  const [url, setUrl] = useState(server?.url ?? "");
  const [headers, setHeaders] = useState("");
  const [clientId, setClientId] = useState(server?.client_id ?? "");
  const [clientSecret, setClientSecret] = useState("");
  const [trustedOrigins, setTrustedOrigins] = useState((server?.trusted_origins ?? []).join("\n"));
  const [command, setCommand] = useState(server?.command ?? "");
  const [args, setArgs] = useState((server?.args ?? []).join("\n"));
  const [env, setEnv] = useState("");
  const [invalid, setInvalid] = useState<{ field: "headers" | "env"; message: string }>();
  const [rejections, setRejections] = useState(0);
  const { busy, failure, run } = useFormRequests<"save">();
  const isProgram = transport === "stdio";
  const draft = useFormDraft(`tool_server:${server?.id ?? "new"}`);
  const save = async () => {
    const values = isProgram ? parseValues(env, "=") : parseValues(headers, ":");
    const field = isProgram ? "env" : "headers";
    if (values === undefined) {
      setInvalid({ field, message: isProgram ? t.envInvalid : t.headersInvalid });
      return setRejections(rejections + 1);
    }
    setInvalid(undefined);
    const body: ToolServerBody = isProgram ? { name, transport, command, args: splitLines(args), env: values } : {
      name,
      transport,
      url,
      headers: values,
      client_id: clientId.trim() === "" ? null : clientId,
      ...(clientSecret !== "" && { client_secret: clientSecret }),
      trusted_origins: splitLines(trustedOrigins),
    };
    await run("save", async () => {
      await toolServersApi(store.api.client).put(server?.id ?? toServerId(name || url || command, takenIds), body);
      draft.clear();
      store.toasts.show(t.saved);
      onSaved();
      onClose();
    });
  };
  const names = isProgram ? server?.env_names ?? [] : server?.header_names ?? [];
  const storedHint = names.length === 0 ? "" : ` ${t.stored(names.join(", "))}`;
  return (
    <ServerForm label={server ? t.edit : t.add} hasFocus rejections={rejections} onSubmit={save}>
      <Drafted draft={draft}>
        <Select
          label={t.kind}
          value={transport}
          options={[{ value: "http", name: t.kinds.http }, { value: "stdio", name: t.kinds.stdio }]}
          hint={isProgram ? t.programsHow : undefined}
          onChange={setTransport}
        />
        <TextField label={t.name} value={name} maxLength={200} onInput={setName} />
        {isProgram
          ? (
            <>
              <TextField label={t.command} hint={t.commandHint} isMono value={command} onInput={setCommand} />
              <TextField label={t.args} hint={t.argsHint} isMono rows={3} value={args} onInput={setArgs} />
              <TextField
                label={t.env}
                hint={t.envHint + storedHint}
                error={invalid?.field === "env" ? invalid.message : undefined}
                isMono
                rows={3}
                isSecret
                value={env}
                onInput={setEnv}
              />
            </>
          )
          : (
            <>
              <AddressField
                label={t.url}
                hint={t.urlHint}
                value={url}
                onInput={setUrl}
              />
              <TextField
                label={t.headers}
                hint={t.headersHint + storedHint}
                error={invalid?.field === "headers" ? invalid.message : undefined}
                isMono
                rows={2}
                isSecret
                value={headers}
                onInput={setHeaders}
              />
              <details class="form-more">
                <summary>{t.ownClient}</summary>
                <TextField label={t.clientId} hint={t.clientIdHint} isMono value={clientId} onInput={setClientId} />
                <TextField
                  label={t.clientSecret}
                  hint={server?.has_client_secret ? t.secretStored : undefined}
                  type="password"
                  autocomplete="new-password"
                  value={clientSecret}
                  onInput={setClientSecret}
                />
              </details>
              <details class="form-more">
                <summary>{t.otherOrigins}</summary>
                <TextField
                  label={t.trustedOrigins}
                  hint={t.trustedOriginsHint}
                  isMono
                  rows={2}
                  value={trustedOrigins}
                  onInput={setTrustedOrigins}
                />
              </details>
            </>
          )}
      </Drafted>
      {failure && <SaveFailure error={failure.error} />}
      <div class="actions-row">
        <Button type="submit" kind="primary" isBusy={busy === "save"}>{t.save}</Button>
        <CancelButton draft={draft} onCancel={onClose} />
      </div>
    </ServerForm>
  );
}

/** Splits a text into lines that aren't empty: arguments, one a line. */
function splitLines(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
}

/**
 * Parses lines of a name and a value. A name without a value removes it.
 *
 * @param separator `"="` for variables, `":"` for headers.
 * @returns `undefined` if a line has no name or no separator.
 */
function parseValues(text: string, separator: "=" | ":"): Record<string, string | null> | undefined {
  const values: Record<string, string | null> = {};
  for (const line of splitLines(text)) {
    const at = line.indexOf(separator);
    const name = line.slice(0, Math.max(at, 0)).trim();
    if (name === "") return undefined;
    const value = line.slice(at + 1).trim();
    values[name] = value === "" ? null : value;
  }
  return values;
}

/** Makes an id of a name, with a number if it is taken. `web` is the id of the built-in tools. */
function toServerId(name: string, usedIds: readonly string[]): string {
  const base = name.toLowerCase().replace(/^https?:\/\//, "").replace(/[^a-z0-9_]+/g, "-").replace(/^-+|-+$/g, "")
    .slice(0, 40) || "server";
  const used = new Set([...usedIds, "web", "import"]);
  for (let n = 1;; n++) {
    const id = n === 1 ? base : `${base}-${n}`;
    if (!used.has(id)) return id;
  }
}

/** For a program that isn't allowed, how to allow it. */
export function SaveFailure({ error }: { error: ApiError }) {
  const t = texts.toolServers;
  if (error.code === "programs_not_allowed") {
    return <Notice tone="warning" title={t.programsOff}>{t.programsHow}</Notice>;
  }
  return <ErrorNote title={t.saveFailed} error={error} />;
}
