/** The fields of a connection with Test, Save, and the key that goes in but never comes back. */
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { Connection, ConnectionKind, ConnectionVerdict } from "../../api/types.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { Field } from "../../components/Field.tsx";
import { Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { type ConnectionFields, fieldsOf, findProblems, inputOf, isKeyLeftBehind } from "./connection_fields.ts";
import { Verdict } from "./Verdict.tsx";

const KINDS: ConnectionKind[] = ["openai", "anthropic"];

type Busy = "test" | "save" | "use" | undefined;

/** The form of a new connection, or of a saved one. */
export function ConnectionForm({ connection }: { connection: Connection | undefined }) {
  const store = useStore();
  const t = texts.form;
  const [fields, setFields] = useState(() => fieldsOf(connection));
  const [isChecked, setChecked] = useState(false);
  const [busy, setBusy] = useState<Busy>();
  const [verdict, setVerdict] = useState<ConnectionVerdict>();
  const [failure, setFailure] = useState<{ title: string; error: ApiError }>();
  const problems = findProblems(fields);
  const set = (changes: Partial<ConnectionFields>) => {
    setFields({ ...fields, ...changes });
    setVerdict(undefined);
  };

  /** Runs one request at a time; its failure stands in the form and the fields stay. */
  const attempt = async (kind: Busy, title: string, work: () => Promise<void>) => {
    setChecked(true);
    if (problems.isUrlBad || problems.isContextBad) return;
    setBusy(kind);
    setFailure(undefined);
    setVerdict(undefined);
    try {
      await work();
    } catch (thrown) {
      setFailure({ title, error: asApiError(thrown) });
    }
    setBusy(undefined);
  };
  const test = () =>
    attempt("test", t.testFailed, async () => {
      setVerdict(await store.connections.test(inputOf(fields, connection?.id)));
    });
  const save = (isToUse: boolean) =>
    attempt(isToUse ? "use" : "save", t.saveFailed, async () => {
      const saved = await store.connections.save(inputOf(fields, connection?.id));
      if (isToUse) await store.connections.activate(saved.id);
      store.toasts.show(isToUse ? texts.connections.activated(saved.name) : texts.connections.saved);
      if (!store.isSetupCompleted.peek()) void store.completeSetup();
      store.router.go("/settings/connections");
    });
  const clearKey = () =>
    attempt("save", t.saveFailed, async () => {
      if (connection) await store.connections.clearKey(connection.id);
      store.toasts.show(t.keyCleared);
    });
  const text = (name: keyof ConnectionFields) => ({
    value: fields[name],
    onInput: (event: { currentTarget: HTMLInputElement }) => set({ [name]: event.currentTarget.value }),
  });

  return (
    <form
      class="form"
      noValidate
      autocomplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        void save(false);
      }}
    >
      <Field id="url" label={t.url} hint={t.urlHint} error={isChecked && problems.isUrlBad ? t.urlBad : undefined}>
        {(describedBy) => (
          <input
            id="url"
            type="url"
            inputMode="url"
            required
            spellcheck={false}
            aria-describedby={describedBy}
            aria-invalid={isChecked && problems.isUrlBad}
            {...text("baseUrl")}
          />
        )}
      </Field>
      <Field id="kind" label={t.kind}>
        {() => (
          <select
            id="kind"
            value={fields.kind}
            onChange={(e) => set({ kind: e.currentTarget.value as ConnectionKind })}
          >
            {KINDS.map((kind) => <option key={kind} value={kind}>{texts.connections.kinds[kind]}</option>)}
          </select>
        )}
      </Field>
      <Field id="name" label={t.name}>
        {() => <input id="name" type="text" maxLength={200} {...text("name")} />}
      </Field>
      <KeyField connection={connection} fields={fields} input={text("apiKey")} onClear={clearKey} />
      <Field id="model" label={t.model} hint={t.modelHint}>
        {(describedBy) => (
          <>
            <input
              id="model"
              type="text"
              list="model-list"
              spellcheck={false}
              aria-describedby={describedBy}
              {...text("model")}
            />
            <datalist id="model-list">{verdict?.models.map((id) => <option key={id} value={id} />)}</datalist>
          </>
        )}
      </Field>
      <Field
        id="context"
        label={t.context}
        hint={t.contextHint}
        error={isChecked && problems.isContextBad ? t.contextBad : undefined}
      >
        {(describedBy) => (
          <input
            id="context"
            type="text"
            inputMode="numeric"
            aria-describedby={describedBy}
            aria-invalid={isChecked && problems.isContextBad}
            {...text("contextSize")}
          />
        )}
      </Field>
      {verdict && <Verdict verdict={verdict} />}
      {failure && <Notice tone="danger" title={failure.title} error={failure.error} />}
      <div class="actions-row">
        <Button type="submit" kind={connection?.active ? "primary" : "plain"} isBusy={busy === "save"}>{t.save}</Button>
        {!connection?.active && (
          <Button kind="primary" isBusy={busy === "use"} onClick={() => save(true)}>{t.saveAndUse}</Button>
        )}
        <Button isBusy={busy === "test"} onClick={test}>
          {busy === "test" ? texts.connections.testing : texts.connections.test}
        </Button>
        <LinkButton href="/settings/connections" kind="quiet">{t.cancel}</LinkButton>
      </div>
    </form>
  );
}

function KeyField(
  { connection, fields, input, onClear }: {
    connection: Connection | undefined;
    fields: ConnectionFields;
    input: { value: string; onInput: (event: { currentTarget: HTMLInputElement }) => void };
    onClear: () => void;
  },
) {
  const t = texts.form;
  const isLeftBehind = isKeyLeftBehind(fields, connection);
  return (
    <>
      <Field id="key" label={t.key} hint={connection?.has_key && !isLeftBehind ? t.keySaved : t.keyHint}>
        {(describedBy) => (
          <input
            id="key"
            type="password"
            autocomplete="new-password"
            spellcheck={false}
            aria-describedby={describedBy}
            {...input}
          />
        )}
      </Field>
      {isLeftBehind && <Notice tone="warning">{t.keyMoved}</Notice>}
      {connection?.has_key && (
        <div>
          <Button onClick={onClear}>{t.keyClear}</Button>
        </div>
      )}
    </>
  );
}
