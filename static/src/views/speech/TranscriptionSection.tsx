/** The transcription server: address, key, model, language, a test, and the search for running ones. */
import { useState } from "preact/hooks";
import { transcriptionApi } from "../../api/speech.ts";
import type { TranscriptionConfig, TranscriptionConfigPatch, TranscriptionTest } from "../../api/types.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button } from "../../components/Button.tsx";
import { ApiKeyField } from "../../components/forms/ApiKeyField.tsx";
import { AddressField } from "../../components/forms/AddressField.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { ServerForm } from "../../components/forms/ServerForm.tsx";
import { Switch } from "../../components/forms/inputs.tsx";
import { Icon } from "../../components/Icon.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { hasBrowserRecognition } from "../../speech/browser_dictation.ts";
import { useStore } from "../../state/store.ts";
import { formatNumber } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { useFormRequests, useFormTest, useResource } from "../hooks.tsx";

/** Loads its settings itself. */
export function TranscriptionSection() {
  const store = useStore();
  const t = texts.talk.settings;
  const [api] = useState(() => transcriptionApi(store.api.client));
  const { value: config, error, again, set } = useResource(() => api.getConfig(), "transcription");
  const { usesBrowserRecognition } = store.device;
  const settings = store.preferences.settings.value;
  return (
    <>
      <h3>{t.title}</h3>
      <p class="muted">{t.intro}</p>
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={again} />}
      {config && <TranscriptionServerForm config={config} onChange={set} />}
      <div class="form">
        {settings && (
          <Switch
            id="keep-recordings"
            label={t.keep}
            hint={t.keepHint}
            isOn={settings.keep_recordings}
            onChange={(keep_recordings) =>
              void store.preferences.change({ keep_recordings }).catch((thrown) => store.report(thrown))}
          />
        )}
        {hasBrowserRecognition() && (
          <Switch
            label={t.browser}
            hint={t.browserHint}
            isOn={usesBrowserRecognition.value}
            onChange={(isOn) => usesBrowserRecognition.value = isOn}
          />
        )}
      </div>
    </>
  );
}

function TranscriptionServerForm(
  { config, onChange }: { config: TranscriptionConfig; onChange: (config: TranscriptionConfig) => void },
) {
  const store = useStore();
  const t = texts.talk.settings;
  const [api] = useState(() => transcriptionApi(store.api.client));
  const [typed, setTyped] = useState<TranscriptionConfigPatch>({});
  const [key, setKey] = useState("");
  const { busy, failure, run } = useFormRequests<"save" | "test">();
  const { result, ...formTest } = useFormTest<TranscriptionTest>();
  const search = store.connections.discovery.value;
  const found = search.kind === "done" ? search.found.transcription : undefined;
  const fields = { ...config, ...typed };
  const changes = { ...typed, ...(key === "" ? {} : { api_key: key }) } satisfies TranscriptionConfigPatch;
  const set = (change: TranscriptionConfigPatch) => {
    setTyped((before) => ({ ...before, ...change }));
    formTest.forget();
  };
  const save = () =>
    run("save", async () => {
      onChange(await api.changeConfig(changes));
      draft.clear();
      // What was typed meanwhile stays.
      setTyped((now) => now === typed ? {} : now);
      setKey((now) => now === key ? "" : now);
      store.toasts.show(t.saved);
    });
  const clearKey = () =>
    run("save", async () => {
      onChange(await api.changeConfig({ api_key: null }));
      formTest.forget();
      store.toasts.show(texts.form.keyCleared);
    });
  const address = fields.base_url ?? "";
  const draft = useFormDraft("transcription");
  return (
    <ServerForm onSubmit={save}>
      <Drafted draft={draft}>
        <AddressField
          id="transcription-url"
          label={t.url}
          hint={t.urlHint}
          value={address}
          onInput={(base_url) => set({ base_url })}
        />
        {found && (
          found.length === 0
            ? <p class="muted" role="status">{t.noneFound}</p>
            : (
              <ul class="found-servers" aria-label={t.found}>
                {found.map((server) => (
                  <li key={server.base_url}>
                    <Button onClick={() => set({ base_url: server.base_url, model: server.models[0] ?? "" })}>
                      {t.use(server.software, server.base_url)}
                    </Button>
                  </li>
                ))}
              </ul>
            )
        )}
        <ApiKeyField
          id="transcription-key"
          keyState={{ stored: config, address, typed: key }}
          hint={texts.voice.keyHint}
          onInput={(typedKey) => {
            setKey(typedKey);
            formTest.forget();
          }}
          onClear={clearKey}
        />
        <TextField
          id="transcription-model"
          isMono
          label={t.model}
          hint={t.modelHint}
          list={result?.models ?? []}
          value={fields.model ?? ""}
          onInput={(model) => set({ model })}
        />
        <TextField
          id="transcription-language"
          label={t.language}
          hint={t.languageHint}
          value={fields.language ?? ""}
          maxLength={20}
          onInput={(language) => set({ language })}
        />
      </Drafted>
      {result && <TestResult result={result} />}
      {search.kind === "failed" && <ErrorNote title={t.failures.search} error={search.error} />}
      {failure && <ErrorNote title={t.failures[failure.name]} error={failure.error} />}
      <div class="actions-row">
        <Button type="submit" kind="primary" isBusy={busy === "save"}>{t.save}</Button>
        <Button
          isBusy={busy === "test"}
          isDisabled={address.trim() === ""}
          onClick={() => void run("test", () => formTest.run(() => api.test(changes)))}
        >
          {t.test}
        </Button>
        <Button
          icon="search"
          isBusy={search.kind === "searching"}
          onClick={() => void store.connections.discover()}
        >
          {t.search}
        </Button>
      </div>
    </ServerForm>
  );
}

function TestResult({ result }: { result: TranscriptionTest }) {
  const t = texts.talk.settings;
  if (result.error !== undefined) return <Notice tone="danger" title={t.bad}>{result.error}</Notice>;
  return (
    <div class="test-result good" role="status">
      <p class="test-result-title">
        <Icon name="check" />
        <strong>{t.good}</strong>
      </p>
      <ul>
        <li>{t.latency(formatNumber(result.latency_ms))}</li>
        {result.models.length > 0 && <li>{result.models.join(", ")}</li>}
      </ul>
    </div>
  );
}
