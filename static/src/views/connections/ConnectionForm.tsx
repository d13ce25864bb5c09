/** The form of a connection, with Test and Save. */
import { useState } from "preact/hooks";
import type { Connection, ConnectionKind, ConnectionTest } from "../../api/types.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, LinkButton } from "../../components/Button.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { ApiKeyField } from "../../components/forms/ApiKeyField.tsx";
import { AddressField } from "../../components/forms/AddressField.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { ServerForm } from "../../components/forms/ServerForm.tsx";
import { Select, Switch } from "../../components/forms/inputs.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatNumber } from "../../texts/format.ts";
import { Icon } from "../../components/Icon.tsx";
import {
  type ConnectionFields,
  findProblems,
  isValid,
  toConnectionFields,
  toConnectionInput,
} from "./connection_fields.ts";
import { RareFields } from "./RareFields.tsx";
import { useFormRequests, useFormTest } from "../hooks.tsx";

const KINDS: readonly ConnectionKind[] = ["openai", "openai-responses", "ollama", "anthropic"];

/** Requests that the form's buttons start. */
type Attempt = "test" | "save" | "use";

/**
 * The form of a new or a saved connection.
 *
 * @param props.onSaved By default the list of connections opens.
 * @param props.listAddress Where Cancel leads.
 */
export function ConnectionForm(
  { connection, onSaved, listAddress = "/settings/connections" }: {
    connection: Connection | undefined;
    onSaved?: () => void;
    listAddress?: string;
  },
) {
  const store = useStore();
  const t = texts.form;
  const [fields, setFields] = useState(() => toConnectionFields(connection));
  const [rejections, setRejections] = useState(0);
  const { busy, failure, run } = useFormRequests<Attempt>();
  const { result, ...formTest } = useFormTest<ConnectionTest>();
  const problems = findProblems(fields, connection);
  const preset = findPreset(fields);
  const draft = useFormDraft(`connection:${connection?.id ?? "new"}`);
  const set = (changes: Partial<ConnectionFields>) => {
    setFields((before) => ({ ...before, ...changes }));
    // The test was of another server or key; model and context size do not affect it.
    if (["baseUrl", "kind", "apiKey", "headers", "server"].some((name) => name in changes)) formTest.forget();
  };

  const attempt = (name: Attempt, request: () => Promise<void>) => {
    if (!isValid(problems)) return setRejections(rejections + 1);
    formTest.forget();
    void run(name, request);
  };
  const test = () =>
    attempt("test", () => formTest.run(() => store.connections.test(toConnectionInput(fields, connection))));
  const save = (isToUse: boolean) =>
    attempt(isToUse ? "use" : "save", async () => {
      const saved = await store.connections.save(toConnectionInput(fields, connection));
      draft.clear();
      if (isToUse) await store.connections.activate(saved.id);
      store.toasts.show(isToUse ? texts.connections.activated(saved.name) : texts.connections.saved);
      if (onSaved) onSaved();
      else store.router.go(listAddress);
    });
  /** Only of the saved connection: other changes have their own buttons. */
  const clearKey = (saved: Connection) =>
    run("save", async () => {
      await store.connections.clearKey(saved.id);
      formTest.forget();
      store.toasts.show(t.keyCleared);
    });
  const isChecked = rejections > 0;
  const refusal = result && findRefusal(result);

  return (
    <ServerForm rejections={rejections} onSubmit={() => save(false)}>
      <Drafted draft={draft}>
        {!connection && <Presets current={preset} onChoose={(chosen) => set(applyPreset(fields, chosen))} />}
        <AddressField
          id="url"
          label={t.url}
          hint={fields.kind === "ollama" ? t.urlHintOllama : t.urlHint}
          error={isChecked && problems.isUrlBad ? t.urlBad : refusal?.field === "url" ? refusal.text : undefined}
          isRequired
          value={fields.baseUrl}
          onInput={(baseUrl) => set({ baseUrl })}
        />
        <Select
          id="kind"
          label={t.kind}
          value={fields.kind}
          options={KINDS.map((value) => ({ value, name: texts.connections.kinds[value] }))}
          onChange={(kind) => set({ kind })}
        />
        <TextField id="name" label={t.name} maxLength={200} value={fields.name} onInput={(name) => set({ name })} />
        <ApiKeyField
          keyState={{ stored: connection, address: fields.baseUrl, typed: fields.apiKey }}
          hint={preset?.needsKey ? t.keyNeeded : t.keyHint}
          error={refusal?.field === "key" ? refusal.text : undefined}
          onInput={(apiKey) => set({ apiKey })}
          onClear={connection && (() => void clearKey(connection))}
        />
        <TextField
          id="model"
          label={t.model}
          hint={result && result.models.length > 0 ? t.modelOffered(result.models.length) : t.modelHint}
          list={result?.models ?? []}
          isMono
          value={fields.model}
          onInput={(model) => set({ model })}
        />
        <TextField
          id="context"
          inputMode="numeric"
          label={fields.kind === "ollama" ? t.contextOllama : t.context}
          hint={fields.kind === "ollama"
            ? t.contextHintOllama
            : result?.context_size
            ? t.contextKnown(formatNumber(result.context_size))
            : t.contextHint}
          error={isChecked && problems.isContextBad ? t.contextBad : undefined}
          value={fields.contextSize}
          onInput={(contextSize) => set({ contextSize })}
        />
        {fields.kind === "openai-responses" && (
          <Switch
            id="background"
            label={t.background}
            hint={t.backgroundHint}
            isOn={fields.background}
            onChange={(background) => set({ background })}
          />
        )}
        <RareFields fields={fields} stored={connection} problems={isChecked ? problems : undefined} onChange={set} />
      </Drafted>
      {result && <ConnectionTestResult result={result} isErrorAtField={refusal !== undefined} />}
      {failure && <ErrorNote title={failure.name === "test" ? t.testFailed : t.saveFailed} error={failure.error} />}
      <div class="actions-row">
        <Button type="submit" kind={connection?.active ? "primary" : "plain"} isBusy={busy === "save"}>{t.save}</Button>
        {!connection?.active && (
          <Button kind="primary" isBusy={busy === "use"} onClick={() => save(true)}>{t.saveAndUse}</Button>
        )}
        <Button isBusy={busy === "test"} onClick={test}>
          {busy === "test" ? texts.connections.testing : texts.connections.test}
        </Button>
        <LinkButton href={listAddress} kind="quiet" onClick={() => draft.clear()}>{texts.cancel}</LinkButton>
      </div>
    </ServerForm>
  );
}

/** Returns which field a failed test is about, and what it says there. */
function findRefusal(
  { reachable, authorized, error }: ConnectionTest,
): { field: "url" | "key"; text: string } | undefined {
  if (!reachable) return { field: "url", text: error ?? texts.connectionTest.unreachable };
  return authorized ? undefined : { field: "key", text: error ?? texts.connectionTest.unauthorized };
}

/** Suggestions that fill the form. */
function Presets(
  { current, onChoose }: { current: ConnectionPreset | undefined; onChoose: (preset: ConnectionPreset) => void },
) {
  return (
    <div role="group" aria-label={texts.form.presets} class="chips">
      {CONNECTION_PRESETS.map((preset) => (
        <button
          key={preset.name}
          type="button"
          class="chip"
          aria-pressed={preset === current}
          onClick={() => onChoose(preset)}
        >
          {preset.name}
        </button>
      ))}
    </div>
  );
}

/** One suggestion. Names of programs and services are the same in every language. */
interface ConnectionPreset {
  name: string;
  kind: ConnectionKind;
  baseUrl: string;
  needsKey: boolean;
}

/** Local programs at their default ports, then services. */
const CONNECTION_PRESETS: readonly ConnectionPreset[] = [
  { name: "Ollama", kind: "ollama", baseUrl: "http://127.0.0.1:11434", needsKey: false },
  { name: "LM Studio", kind: "openai", baseUrl: "http://127.0.0.1:1234/v1", needsKey: false },
  { name: "llama.cpp", kind: "openai", baseUrl: "http://127.0.0.1:8080/v1", needsKey: false },
  { name: "KoboldCpp", kind: "openai", baseUrl: "http://127.0.0.1:5001/v1", needsKey: false },
  { name: "vLLM", kind: "openai", baseUrl: "http://127.0.0.1:8000/v1", needsKey: false },
  { name: "OpenRouter", kind: "openai", baseUrl: "https://openrouter.ai/api/v1", needsKey: true },
  { name: "OpenAI", kind: "openai", baseUrl: "https://api.openai.com/v1", needsKey: true },
  { name: "Anthropic", kind: "anthropic", baseUrl: "https://api.anthropic.com", needsKey: true },
];

/** Fills the form. A typed name stays; one from another suggestion is replaced. */
function applyPreset(fields: ConnectionFields, preset: ConnectionPreset): ConnectionFields {
  const isOwnName = fields.name.trim() !== "" && !CONNECTION_PRESETS.some(({ name }) => name === fields.name);
  return {
    ...fields,
    name: isOwnName ? fields.name : preset.name,
    kind: preset.kind,
    server: "",
    baseUrl: preset.baseUrl,
    model: "",
  };
}

/** Finds the suggestion that matches the form's address. */
function findPreset(fields: ConnectionFields): ConnectionPreset | undefined {
  return CONNECTION_PRESETS.find(({ baseUrl }) => baseUrl === fields.baseUrl);
}

/** Each result on its own line, by icon and word. @param props.isErrorAtField The error is shown at a field. */
export function ConnectionTestResult(
  { result, isErrorAtField = false }: { result: ConnectionTest; isErrorAtField?: boolean },
) {
  const t = texts.connectionTest;
  const isGood = result.reachable && result.authorized && result.error === undefined;
  const { reachable, authorized, models, context_size, software, speech } = result;
  return (
    <div class={isGood ? "test-result good" : "test-result bad"} role="status">
      <p class="test-result-title">
        <Icon name={isGood ? "check" : "warning"} />
        <strong>{isGood ? t.good : t.bad}</strong>
      </p>
      <ul>
        <li>{reachable ? `${t.reachable}, ${t.latency(Math.round(result.latency_ms))}` : t.unreachable}</li>
        {reachable && <li>{authorized ? t.authorized : t.unauthorized}</li>}
        {reachable && authorized && <li>{t.models(models.length)}</li>}
        {software !== undefined && <li>{software}</li>}
        {speech && <li>{texts.connections.onlySpeech}</li>}
        {context_size !== undefined && <li>{t.context(formatNumber(context_size))}</li>}
      </ul>
      {result.error && !isErrorAtField && <p>{result.error}</p>}
      {result.advice && <p class="advice">{result.advice}</p>}
      {result.contract && <ServerContract contract={result.contract} />}
    </div>
  );
}

/** What the server was found to do. Differences from others of its kind are marked. */
function ServerContract(
  { contract: { version = "", findings } }: { contract: NonNullable<ConnectionTest["contract"]> },
) {
  const t = texts.connectionTest;
  const format = ({ found, reason = "unclear" }: (typeof findings)[number]) =>
    found === undefined ? t.notAsked[reason] : typeof found === "number" ? formatNumber(found) : found ? t.yes : t.no;
  return (
    <details class="server-contract" open>
      <summary>{t.contract(version)}</summary>
      <dl>
        {findings.map((finding) => {
          const { item, found, expected } = finding;
          const differs = found !== undefined && expected !== undefined && found !== expected;
          return (
            <div key={item}>
              <dt>{t.items[item]}</dt>
              <dd class={found === undefined ? "muted" : undefined}>
                {format(finding)} {differs && <strong>({t.differs})</strong>}
              </dd>
            </div>
          );
        })}
      </dl>
    </details>
  );
}
