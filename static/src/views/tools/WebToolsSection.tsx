/** Web search and page reading: the SearXNG server, both tools, their permissions, a test. */
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { toolsApi } from "../../api/tools.ts";
import type { WebTools, WebToolsPatch, WebToolsTest } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select } from "../../components/forms/Select.tsx";
import { Switch } from "../../components/forms/Switch.tsx";
import { ErrorNote, Notice } from "../../components/Notice.tsx";
import { useStore } from "../../state/store.ts";
import { formatNumber } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";

/** Loads its settings itself. */
export function WebToolsSection() {
  const store = useStore();
  const t = texts.webTools;
  const [web, setWeb] = useState<WebTools>();
  const [error, setError] = useState<ApiError>();
  const load = () => {
    setError(undefined);
    toolsApi(store.api.client).getWeb().then(setWeb, (thrown) => setError(asApiError(thrown)));
  };
  useEffect(() => {
    load();
    return store.listen((event) => (event === undefined || event.kind === "web_tools") && load());
  }, []);
  return (
    <section class="privacy-part" aria-labelledby="web-tools">
      <h3 id="web-tools" tabIndex={-1}>{t.title}</h3>
      <p class="muted">{t.intro}</p>
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={load} />}
      {!web && !error && <p class="muted" role="status">{texts.loading}</p>}
      {web && <WebForm web={web} onChange={setWeb} />}
    </section>
  );
}

function WebForm({ web, onChange }: { web: WebTools; onChange: (web: WebTools) => void }) {
  const store = useStore();
  const t = texts.webTools;
  const api = toolsApi(store.api.client);
  const [typed, setTyped] = useState<string>();
  const [busy, setBusy] = useState<"save" | "test">();
  const [failure, setFailure] = useState<ApiError>();
  const [verdict, setVerdict] = useState<WebToolsTest>();
  const address = typed ?? web.search_url ?? "";
  const run = async (kind: "save" | "test", work: () => Promise<void>) => {
    setBusy(kind);
    setFailure(undefined);
    try {
      await work();
    } catch (thrown) {
      setFailure(asApiError(thrown));
    }
    setBusy(undefined);
  };
  const change = async (changes: WebToolsPatch) => onChange(await api.changeWeb(changes));
  const save = () =>
    run("save", async () => {
      await change({ search_url: address.trim() === "" ? null : address.trim() });
      setTyped(undefined);
      store.toasts.show(t.saved);
    });
  const setNow = (changes: WebToolsPatch) => void change(changes).catch((thrown) => store.report(thrown));
  const setPermission = (name: string, permission: "ask" | "allow" | "deny") => {
    api.setWebPermission(name, permission).then(
      async () => onChange(await api.getWeb()),
    ).catch((thrown) => store.report(thrown));
  };
  return (
    <form
      class="form"
      noValidate
      autocomplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <TextField
        id="search-url"
        type="url"
        inputMode="url"
        label={t.url}
        hint={t.urlHint}
        value={address}
        onInput={(text) => {
          setTyped(text);
          setVerdict(undefined);
        }}
      />
      {failure && <ErrorNote title={t.saveFailed} error={failure} />}
      {verdict && (verdict.working
        ? <p role="status">{t.works(formatNumber(verdict.results))}</p>
        : <Notice tone="danger" title={t.fails}>{verdict.error}</Notice>)}
      <div class="actions-row">
        <Button type="submit" kind="primary" isBusy={busy === "save"} isDisabled={typed === undefined}>{t.save}</Button>
        <Button
          isBusy={busy === "test"}
          isDisabled={address.trim() === ""}
          onClick={() =>
            void run("test", async () => {
              setVerdict(undefined);
              setVerdict(await api.testWeb(address.trim()));
            })}
        >
          {t.test}
        </Button>
      </div>
      <Switch
        id="web-search"
        label={t.search}
        hint={t.searchHint}
        isOn={web.search}
        isDisabled={web.search_url === null}
        onChange={(search) => setNow({ search })}
      />
      <Switch
        id="read-pages"
        label={t.read}
        hint={t.readHint}
        isOn={web.read_page}
        onChange={(read_page) => setNow({ read_page })}
      />
      {web.tools.filter(({ enabled }) => enabled).map(({ name, permission }) => (
        <Select
          key={name}
          label={t.permission(name)}
          value={permission}
          options={(["ask", "allow", "deny"] as const).map((value) => ({ value, name: t.permissions[value] }))}
          onChange={(value) => setPermission(name, value)}
        />
      ))}
    </form>
  );
}
