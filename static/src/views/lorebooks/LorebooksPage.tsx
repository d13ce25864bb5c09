/** The lorebooks: the list, or the editor of one with its test. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type LorebookApi, lorebookApi, type LorebookDraft, type VersionedDocument } from "../../api/documents.ts";
import type {
  ActivatedEntry,
  Lorebook,
  LorebookEntry,
  LorebookItem,
  LorebookTest,
  LorebookTestRequest,
  MissedEntry,
  Settings,
} from "../../api/types.ts";
import { Drafted, DraftedPart, useFormDraft } from "../../components/forms/Drafted.tsx";
import { ItemLedger } from "../../components/Ledger.tsx";
import { Tabs } from "../../components/Tabs.tsx";
import type { MenuItem } from "../../components/overlays/Menu.tsx";
import { newId } from "../../state/app/ids.ts";
import { ChatSelect, DocumentList, DocumentsPage } from "../documents/DocumentsPage.tsx";
import { type StoredVersion, VersionedEditor } from "../../state/documents/versioned_editor.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { EditorFrame } from "../documents/EditorFrame.tsx";
import { LorebookFields } from "./LorebookFields.tsx";
import { type ApiError, asApiError } from "../../api/client.ts";
import { Button } from "../../components/Button.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { NumberInput, Select, Switch } from "../../components/forms/inputs.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import type { ComponentChildren } from "preact";
import { VirtualList } from "../../components/lists/VirtualList.tsx";
import {
  EMPTY_ENTRY,
  getEntryTitle,
  getOwnTitle,
  type IndexedEntry,
  searchEntries,
} from "../../state/documents/lorebook_entries.ts";
import { EntryForm } from "./EntryForm.tsx";

/** `item` is the id of the lorebook to edit. */
export function LorebooksPage({ item }: { item: string | undefined }) {
  return item === undefined ? <Overview /> : <LorebookPage key={item} id={item} />;
}

function Overview() {
  const store = useStore();
  const [list] = useState(() => new DocumentList(store, lorebookApi(store.api.client), "lorebook"));
  const t = texts.lorebooks;
  const create = async () => {
    const id = newId();
    await list.api.save(id, { name: t.newName, book: { extensions: {}, entries: [] } });
    return id;
  };
  const menuOf = ({ id, name }: LorebookItem): (MenuItem | "line")[] => [
    { label: t.exportTavern, icon: "export", href: list.api.exportPath(id, "sillytavern") },
    { label: t.exportV3, icon: "export", href: list.api.exportPath(id, "lorebook_v3") },
    "line",
    {
      label: t.remove,
      icon: "trash",
      isDanger: true,
      onSelect: () => list.remove(id, { done: t.removed(name), undo: texts.undo }),
    },
  ];
  return (
    <>
      <DocumentsPage
        list={list}
        address={LOREBOOKS}
        labels={t}
        empty={{ title: t.empty, text: t.emptyText }}
        textOf={(item) => [t.entryCount(item.entry_count), t.scopes[item.scope]].join(" · ")}
        badgesOf={({ enabled, error }) => enabled || error ? [] : [t.off]}
        menuOf={menuOf}
        create={create}
      />
      <LoreSettings />
    </>
  );
}

/** What applies to all lorebooks. */
function LoreSettings() {
  const store = useStore();
  const settings = store.preferences.settings.value;
  const t = texts.lorebooks.all;
  if (!settings) return null;
  const change = (changes: Partial<Settings>) =>
    void store.preferences.change(changes).catch((thrown) => store.report(thrown));
  return (
    <section aria-labelledby="lore-settings">
      <h3 id="lore-settings">{t.title}</h3>
      <div class="form">
        <NumberInput
          id="lore-budget"
          label={t.percent}
          hint={t.percentHint}
          value={settings.lore_budget_percent}
          min={0}
          max={100}
          isRequired
          onChange={(value) => value !== undefined && change({ lore_budget_percent: value })}
        />
        <NumberInput
          id="lore-tokens"
          label={t.tokens}
          hint={t.tokensHint}
          value={settings.lore_budget_tokens ?? undefined}
          min={1}
          max={10_000_000}
          onChange={(value) => change({ lore_budget_tokens: value ?? null })}
        />
        <NumberInput
          id="lore-least"
          label={t.least}
          hint={t.leastHint}
          value={settings.lore_min_activations}
          min={0}
          max={1_000}
          isRequired
          onChange={(value) => value !== undefined && change({ lore_min_activations: value })}
        />
        {settings.lore_min_activations > 0 && (
          <NumberInput
            id="lore-least-depth"
            label={t.leastDepth}
            hint={t.leastDepthHint}
            value={settings.lore_min_activations_depth ?? undefined}
            min={1}
            max={1_000}
            onChange={(value) => change({ lore_min_activations_depth: value ?? null })}
          />
        )}
        <NumberInput
          id="lore-recursion"
          label={t.recursion}
          hint={t.recursionHint}
          value={settings.lore_max_recursion ?? undefined}
          min={0}
          max={100}
          onChange={(value) => change({ lore_max_recursion: value ?? null })}
        />
        <Select
          id="lore-order"
          label={t.order}
          hint={t.orderHint}
          value={settings.lore_order}
          options={(["character_first", "global_first", "evenly"] as const).map((value) => ({
            value,
            name: t.orders[value],
          }))}
          onChange={(lore_order) => change({ lore_order })}
        />
        <Switch
          id="lore-names"
          label={t.names}
          hint={t.namesHint}
          isOn={settings.lore_scans_names}
          onChange={(lore_scans_names) => change({ lore_scans_names })}
        />
      </div>
    </section>
  );
}

/** One lorebook in the editor. It is not saved without a name. */
class LorebookEditor extends VersionedEditor<Lorebook, LorebookDraft> {
  constructor(api: LorebookApi, id: string) {
    super({
      id,
      kind: "lorebook",
      read: async () => toStoredVersion(await api.read(id)),
      write: async (fields, version) => toStoredVersion(await api.save(id, fields, version)),
      isComplete: ({ name }) => name.trim() !== "",
    });
  }
}

function toStoredVersion({ document, version }: VersionedDocument<Lorebook>): StoredVersion<Lorebook, LorebookDraft> {
  const { name, enabled, scope, character_ids, persona_ids, book } = document;
  return { document, data: { name, enabled, scope, character_ids, persona_ids, book }, version };
}

/** Path of the list. */
const LOREBOOKS = "/settings/lorebooks";

/** Props of the editor's sections. */
export interface LorebookSectionProps {
  editor: LorebookEditor;
  api: LorebookApi;
}

const PARTS = { entries: EntryList, book: LorebookFields, trial: ActivationTest };
type Section = keyof typeof PARTS;

/** The page. */
function LorebookPage({ id }: { id: string }) {
  const store = useStore();
  const api = useMemo(() => lorebookApi(store.api.client), []);
  const editor = useMemo(() => new LorebookEditor(api, id), [id]);
  const [part, setPart] = useState<Section>("entries");
  const t = texts.lorebooks;
  const tabs = (Object.keys(PARTS) as Section[]).map((name) => ({ id: name, title: t.parts[name] }));
  const Shown = PARTS[part];
  return (
    <EditorFrame editor={editor} address={LOREBOOKS} labels={t}>
      <ItemLedger entries={editor.document.value?.ledger} />
      <Tabs label={t.label} tabs={tabs} current={part} onSelect={setPart}>
        <Shown key={part} editor={editor} api={api} />
      </Tabs>
    </EditorFrame>
  );
}

/**
 * Tests which entries of the edited lorebook would be activated by a text, a chat, or both. What is scanned, and the
 * result.
 */
function ActivationTest({ editor, api }: LorebookSectionProps) {
  const [text, setText] = useState("");
  const [chatId, setChatId] = useState("");
  const draft = useFormDraft(`lorebook_test:${editor.id}`);
  const [found, setFound] = useState<LorebookTest>();
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const t = texts.lorebooks.trial;
  const run = async (event: Event) => {
    event.preventDefault();
    const abort = running.current = new AbortController();
    const { name, book } = editor.data.peek()!;
    setBusy(true);
    setError(undefined);
    try {
      const scanned = {
        ...(chatId !== "" && { conversation_id: chatId }),
        ...(text !== "" && { text }),
      } satisfies LorebookTestRequest;
      setFound(await api.try({ book: { ...book, name }, ...scanned }, abort.signal));
    } catch (thrown) {
      if (abort.signal.aborted) return;
      setFound(undefined);
      setError(asApiError(thrown));
    }
    setBusy(false);
  };
  return (
    <>
      <form class="form" onSubmit={run}>
        <p class="hint">{t.intro}</p>
        <Drafted draft={draft}>
          <TextField label={t.text} rows={5} value={text} onInput={setText} />
        </Drafted>
        <ChatSelect label={t.chat} none={t.noChat} value={chatId} onChange={setChatId} />
        <div class="actions-row">
          <Button type="submit" kind="primary" isBusy={isBusy} isDisabled={text === "" && chatId === ""}>
            {t.run}
          </Button>
        </div>
      </form>
      {error && <ErrorNote title={t.failed} error={error} />}
      {found && <TestResults found={found} />}
    </>
  );
}

function TestResults({ found: { entries, dropped, tokens } }: { found: LorebookTest }) {
  const t = texts.lorebooks.trial;
  const summary = entries.length === 0 ? t.nothing : [t.fired(entries.length), t.tokens(tokens)].join(" · ");
  return (
    <div class="trial-found">
      <p role="status" class="trial-summary">{summary}</p>
      {entries.length > 0 && (
        <List label={t.fired(entries.length)}>
          {entries.map((entry) => <ListRow key={entry.entry_id} title={entry.entry_name} text={formatReason(entry)} />)}
        </List>
      )}
      {dropped.length > 0 && (
        <>
          <h3>{t.dropped}</h3>
          <List label={t.dropped}>
            {dropped.map((entry, index) => (
              <ListRow key={index} title={entry.entry_name} text={formatMissReason(entry)} />
            ))}
          </List>
        </>
      )}
    </div>
  );
}

function formatReason({ reason, position, depth, tokens, probability }: ActivatedEntry): string {
  const t = texts.lorebooks.trial;
  const positions = { ...texts.editor.entry.positions, ...texts.lorebooks.entry.places };
  const positionName = positions[position as keyof typeof positions] ?? position;
  return [
    reason.kind === "key" && reason.key !== undefined
      ? t.byKey(reason.key)
      : [t.reasons[reason.kind], reason.key && t.byKey(reason.key)].filter(Boolean).join(", "),
    depth === undefined ? positionName : `${positionName} (${texts.presets.order.depth(depth)})`,
    t.tokens(tokens),
    probability !== undefined && probability < 100 && t.percent(probability),
  ].filter(Boolean).join(" · ");
}

function formatMissReason({ reason, key }: MissedEntry): string {
  const t = texts.lorebooks.trial;
  const text = t.misses[reason as keyof typeof t.misses] ?? reason;
  return [text, key !== undefined && t.byKey(key)].filter(Boolean).join(" · ");
}

/** Height of a row in px: two lines of text. */
const ROW_PX = 60;
/** Most rows in view. */
const ROWS = 9;

/**
 * The entries of a lorebook, possibly thousands, or the form of the open one in their place.
 */
function EntryList({ editor }: LorebookSectionProps) {
  const [opened, setOpened] = useState<number>();
  const [query, setQuery] = useState("");
  const { book } = editor.data.value!;
  const set = (entries: LorebookEntry[], step: string) => editor.set({ book: { ...book, entries } }, step);
  // Undo may have removed the open entry.
  const entry = opened === undefined ? undefined : book.entries[opened];
  if (opened === undefined || entry === undefined) {
    return (
      <EntryOverview
        entries={searchEntries(book, query)}
        isEmpty={book.entries.length === 0}
        query={query}
        onQuery={setQuery}
        onOpen={setOpened}
        onAdd={() => {
          setOpened(book.entries.length);
          set([...book.entries, { ...EMPTY_ENTRY, selective: false, use_regex: true }], "add");
        }}
      />
    );
  }
  const change = (changes: Partial<LorebookEntry>) =>
    set(
      book.entries.map((each, index) => index === opened ? { ...each, ...changes } : each),
      `${opened} ${Object.keys(changes).join()}`,
    );
  return (
    <OpenedEntry
      title={getEntryTitle(entry) || texts.editor.entryNth(opened + 1)}
      onBack={() => setOpened(undefined)}
    >
      <DraftedPart name={`entry ${opened}`}>
        <EntryForm
          key={opened}
          entry={entry}
          onChange={change}
          onRemove={() => {
            setOpened(undefined);
            set(book.entries.filter((_, index) => index !== opened), "remove");
          }}
        />
      </DraftedPart>
    </OpenedEntry>
  );
}

function OpenedEntry(
  { title, onBack, children }: { title: string; onBack: () => void; children: ComponentChildren },
) {
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => head.current?.focus(), []);
  return (
    <div class="form">
      <div class="entry-head">
        <Button icon="left" kind="quiet" onClick={onBack}>{texts.lorebooks.toEntries}</Button>
        <h3 ref={head} tabIndex={-1}>{title}</h3>
      </div>
      {children}
    </div>
  );
}

function EntryOverview(
  { entries, isEmpty, query, onQuery, onOpen, onAdd }: {
    entries: IndexedEntry[];
    isEmpty: boolean;
    query: string;
    onQuery: (query: string) => void;
    onOpen: (index: number) => void;
    onAdd: () => void;
  },
) {
  const t = texts.lorebooks;
  return (
    <div class="form">
      {isEmpty ? <p class="muted">{t.noEntries}</p> : (
        <>
          <TextField label={t.findEntry} type="search" value={query} onInput={onQuery} />
          <p class="muted" role="status">{entries.length === 0 ? t.noEntry : t.entryCount(entries.length)}</p>
        </>
      )}
      {entries.length > 0 && (
        <div class="entry-list" style={{ height: `${Math.min(entries.length, ROWS) * ROW_PX + 2}px` }}>
          <VirtualList
            items={entries}
            keyOf={({ index }) =>
              String(index)}
            heightOf={() =>
              ROW_PX}
            label={t.parts.entries}
          >
            {({ entry, index }) => <EntryRow entry={entry} index={index} onOpen={() => onOpen(index)} />}
          </VirtualList>
        </div>
      )}
      <div class="actions-row">
        <Button icon="plus" onClick={onAdd}>{texts.editor.addEntry}</Button>
      </div>
    </div>
  );
}

function EntryRow({ entry, index, onOpen }: { entry: LorebookEntry; index: number; onOpen: () => void }) {
  const t = texts.lorebooks;
  const title = getEntryTitle(entry) || texts.editor.entryNth(index + 1);
  // The title is the first of these.
  const [, more] = [getOwnTitle(entry), entry.keys.join(", "), entry.content].filter((part) => part !== "");
  return (
    <button type="button" class={entry.enabled ? "entry-row" : "entry-row is-off"} onClick={onOpen}>
      <span class="entry-text">
        <span class="entry-title">{title}</span>
        {more !== undefined && <span class="entry-more">{more}</span>}
      </span>
      {entry.constant === true && <span class="badge">{t.constantMark}</span>}
      {!entry.enabled && <span class="badge">{t.off}</span>}
    </button>
  );
}
