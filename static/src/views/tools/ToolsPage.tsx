/** Settings of tools: servers, web search, and the list of all calls. */
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, LinkButton } from "../../components/Button.tsx";
import { texts } from "../../texts/texts.ts";
import { ToolServersSection } from "./ToolServersSection.tsx";
import { useRef, useState } from "preact/hooks";
import { type ListedToolCall, toolsApi } from "../../api/tools.ts";
import { EmptyState, ErrorNote, Notice } from "../../components/Notice.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { useStore } from "../../state/store.ts";
import { formatNumber, formatTime } from "../../texts/format.ts";
import type { WebTools, WebToolsPatch, WebToolsTest } from "../../api/types.ts";
import { AddressField } from "../../components/forms/AddressField.tsx";
import { ServerForm } from "../../components/forms/ServerForm.tsx";
import { Select, Switch } from "../../components/forms/inputs.tsx";
import { useFormRequests, useFormTest, useResource, useSavedValue } from "../hooks.tsx";

/** Path of the list of all calls. */
const CALLS_PATH = "/settings/tools/calls";

/** The page, or the list of all calls. */
export function ToolsPage({ item }: { item: string | undefined }) {
  const t = texts.toolCalls;
  if (item === "calls") return <ToolCallList />;
  return (
    <section class="settings-parts">
      <h2>{texts.toolsPage.title}</h2>
      <ToolServersSection />
      <WebToolsSection />
      <section class="settings-part" aria-labelledby="tool-calls">
        <h3 id="tool-calls" tabIndex={-1}>{t.list}</h3>
        <p class="muted">{t.listHint}</p>
        <div class="actions-row">
          <LinkButton href={CALLS_PATH}>{t.showList}</LinkButton>
        </div>
      </section>
    </section>
  );
}

/**
 * Every call that a model made: tool, arguments, who decided, how long it took. Newest first, page by page. Loads its
 * pages itself.
 */
function ToolCallList() {
  const store = useStore();
  const t = texts.toolCalls;
  /** How many pages are shown. */
  const pages = useRef(1);
  const { value, error, isBusy, again } = useResource(
    () => readCalls(toolsApi(store.api.client), pages.current),
    ...["conversation", "trash"],
  );
  const calls = value?.calls;
  const showMore = () => {
    pages.current++;
    again();
  };
  return (
    <section>
      <h2>{t.list}</h2>
      <p class="muted">{t.listHint}</p>
      {error && <ErrorNote title={t.listFailed} error={error} onRetry={again} />}
      {calls === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      {calls?.length === 0 && (
        <EmptyState level={3} title={t.none}>
          <LinkButton href="/settings/tools" kind="primary">{texts.toolsPage.title}</LinkButton>
        </EmptyState>
      )}
      {calls && calls.length > 0 && (
        <List label={t.list}>
          {calls.map((listed) => <CallRow key={`${listed.message_id} ${listed.call.id}`} listed={listed} />)}
        </List>
      )}
      {value?.hasMore && (
        <div class="actions-row">
          <Button kind="quiet" isBusy={isBusy} onClick={showMore}>{t.more}</Button>
        </div>
      )}
    </section>
  );
}

/** Reads the newest pages of the list. */
async function readCalls(
  api: ReturnType<typeof toolsApi>,
  pages: number,
): Promise<{ calls: ListedToolCall[]; hasMore: boolean }> {
  const calls: ListedToolCall[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pages && (page === 0 || cursor !== undefined); page++) {
    const { items, next_cursor: next } = await api.listCalls(cursor);
    calls.push(...items);
    cursor = next ?? undefined;
  }
  return { calls, hasMore: cursor !== undefined };
}

function CallRow({ listed }: { listed: ListedToolCall }) {
  const t = texts.toolCalls;
  const { call, conversation_id, message_id, decided_at: decidedAt, duration_ms: durationMs } = listed;
  const who = listed.decided_by ?? call.decided_by;
  const facts = [
    call.server_name,
    call.state && t.states[call.state],
    who && t.by(Object.hasOwn(t.deciders, who) ? t.deciders[who as keyof typeof t.deciders] : who),
    decidedAt && formatTime(decidedAt, new Date()),
    typeof durationMs === "number" && t.seconds(formatNumber(Math.max(0.1, Math.round(durationMs / 100) / 10))),
  ];
  return (
    <ListRow
      title={call.tool_name ?? call.name}
      text={
        <>
          {facts.filter(Boolean).join(" · ")}
          <code class="call-arguments">{call.arguments}</code>
        </>
      }
      href={`/c/${encodeURIComponent(conversation_id)}#${encodeURIComponent(message_id)}`}
    />
  );
}

/**
 * Web search and page reading: the SearXNG server, both tools, their permissions, a test. Loads its settings itself.
 */
function WebToolsSection() {
  const store = useStore();
  const t = texts.webTools;
  const { value: web, error, again, set } = useResource(() => toolsApi(store.api.client).getWeb(), "web_tools");
  return (
    <section class="settings-part" aria-labelledby="web-tools">
      <h3 id="web-tools" tabIndex={-1}>{t.title}</h3>
      <p class="muted">{t.intro}</p>
      {error && <ErrorNote title={t.loadFailed} error={error} onRetry={again} />}
      {!web && !error && <p class="muted" role="status">{texts.loading}</p>}
      {web && <WebForm web={web} onChange={set} />}
    </section>
  );
}

function WebForm({ web, onChange }: { web: WebTools; onChange: (web: WebTools) => void }) {
  const store = useStore();
  const t = texts.webTools;
  const api = toolsApi(store.api.client);
  const [typed, setTyped] = useState<string>();
  const { busy, failure, run } = useFormRequests<"save" | "test">();
  const { result, ...formTest } = useFormTest<WebToolsTest>();
  const address = typed ?? web.search_url ?? "";
  const draft = useFormDraft("web_search");
  const change = async (changes: WebToolsPatch) => onChange(await api.changeWeb(changes));
  const save = () =>
    run("save", async () => {
      await change({ search_url: address.trim() === "" ? null : address.trim() });
      draft.clear();
      setTyped((now) => now === typed ? undefined : now); // what was typed meanwhile stays
      store.toasts.show(t.saved);
    });
  const [isSearchOn, setSearch] = useSavedValue(web.search, (search) => change({ search }));
  const [isReadingOn, setReading] = useSavedValue(web.read_page, (read_page) => change({ read_page }));
  return (
    <ServerForm onSubmit={save}>
      <Drafted draft={draft}>
        <AddressField
          id="search-url"
          label={t.url}
          hint={t.urlHint}
          value={address}
          onInput={(text) => {
            setTyped(text);
            formTest.forget();
          }}
        />
      </Drafted>
      {web.held && <Notice tone="info">{t.held}</Notice>}
      {failure && <ErrorNote title={failure.name === "test" ? t.fails : t.saveFailed} error={failure.error} />}
      {result && (result.working
        ? <p role="status">{t.works(formatNumber(result.results))}</p>
        : <Notice tone="danger" title={t.fails}>{result.error}</Notice>)}
      <div class="actions-row">
        <Button type="submit" kind="primary" isBusy={busy === "save"} isDisabled={typed === undefined}>{t.save}</Button>
        <Button
          isBusy={busy === "test"}
          isDisabled={address.trim() === ""}
          onClick={() => void run("test", () => formTest.run(() => api.testWeb(address.trim())))}
        >
          {t.test}
        </Button>
      </div>
      <Switch
        id="web-search"
        label={t.search}
        hint={t.searchHint}
        isOn={isSearchOn}
        isDisabled={web.search_url === null}
        onChange={setSearch}
      />
      <Switch
        id="read-pages"
        label={t.read}
        hint={t.readHint}
        isOn={isReadingOn}
        onChange={setReading}
      />
      {web.tools.filter(({ enabled }) => enabled).map((tool) => (
        <WebPermission key={tool.name} tool={tool} onChange={onChange} />
      ))}
    </ServerForm>
  );
}

function WebPermission({ tool, onChange }: { tool: WebTools["tools"][number]; onChange: (web: WebTools) => void }) {
  const { api: { client } } = useStore();
  const t = texts.webTools;
  const [permission, setPermission] = useSavedValue(tool.permission, async (chosen) => {
    await toolsApi(client).setWebPermission(tool.name, chosen);
    onChange(await toolsApi(client).getWeb());
  });
  return (
    <Select
      label={t.permission(tool.name)}
      value={permission}
      options={(["ask", "allow", "deny"] as const).map((value) => ({ value, name: t.permissions[value] }))}
      onChange={setPermission}
    />
  );
}
