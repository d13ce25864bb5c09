/** Lists of documents with versions, which the pages of lorebooks and presets share, and the chats they apply to. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { Menu, type MenuItem } from "../../components/overlays/Menu.tsx";
import { LatestRead } from "../../state/app/latest_read.ts";
import { type Store, useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import type { ChangeEvent, ConversationHead, ConversationPatch } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { DocumentApi } from "../../api/documents.ts";
import { Select, Switch } from "../../components/forms/inputs.tsx";
import { useSavedValue } from "../hooks.tsx";
import { nameChat } from "../shell/chat_name.ts";

/** The labels of such a list. */
interface DocumentLabels {
  title: string;
  intro: string;
  add: string;
  import: string;
  importFailed: string;
  loadFailed: string;
  unreadable: string;
  more: (name: string) => string;
}

/** A listed document. */
interface ListedDocument {
  id: string;
  name: string;
  error?: { code: string };
}

/** The page. `address` is its path, with documents below it. */
export function DocumentsPage<Item extends ListedDocument, Whole extends Item>(
  { list, address, labels, empty, textOf, badgesOf, menuOf, create }: {
    list: DocumentList<Item, Whole>;
    address: string;
    labels: DocumentLabels;
    /** Presets are never empty: one is built in. */
    empty?: { title: string; text: string };
    textOf: (item: Item) => string;
    badgesOf: (item: Item) => string[];
    menuOf: (item: Item) => (MenuItem | "line")[];
    /** Creates a document and returns its id. @throws {ApiError} */
    create: () => Promise<string>;
  },
) {
  const store = useStore();
  useEffect(() => {
    void list.refresh();
    return store.listen((event) => list.onChange(event));
  }, []);
  const open = (id: string) => store.router.go(`${address}/${encodeURIComponent(id)}`);
  const add = () => create().then(open, (thrown) => store.report(thrown));
  const items = list.shown.value;
  const error = list.error.value;
  const importError = list.importError.value;
  const ways = (
    <div class="actions-row">
      <Button icon="plus" kind="primary" onClick={() => void add()}>{labels.add}</Button>
      <FileButton
        label={labels.import}
        isBusy={list.isImporting.value}
        onFile={async (file) => {
          const imported = await list.import(file);
          if (imported) open(imported.id);
        }}
      />
    </div>
  );
  return (
    <section>
      <h2>{labels.title}</h2>
      <p class="muted">{labels.intro}</p>
      {items?.length !== 0 && ways}
      {importError && <ErrorNote title={labels.importFailed} error={importError} />}
      {error && <ErrorNote title={labels.loadFailed} error={error} onRetry={() => void list.refresh()} />}
      {items === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      {items?.length === 0 && (
        <EmptyState level={3} title={empty?.title ?? labels.title} text={empty?.text}>{ways}</EmptyState>
      )}
      {items !== undefined && items.length > 0 && (
        <List label={labels.title}>
          {items.map((item) => (
            <ListRow
              key={item.id}
              href={item.error ? undefined : `${address}/${encodeURIComponent(item.id)}`}
              title={<span class="clamped">{item.name || item.id}</span>}
              text={item.error ? <span class="list-error">{labels.unreadable}</span> : textOf(item)}
              end={
                <>
                  {badgesOf(item).map((badge) => <span key={badge} class="badge">{badge}</span>)}
                  <Menu label={labels.more(item.name || item.id)} items={menuOf(item)} />
                </>
              }
            />
          ))}
        </List>
      )}
    </section>
  );
}

function FileButton(
  { label, isBusy, onFile }: { label: string; isBusy: boolean; onFile: (file: File) => Promise<void> },
) {
  const chooser = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button icon="import" isBusy={isBusy} onClick={() => chooser.current?.click()}>{label}</Button>
      <input
        ref={chooser}
        type="file"
        hidden
        accept=".json,application/json"
        onChange={(event) => {
          const [file] = event.currentTarget.files ?? [];
          event.currentTarget.value = "";
          if (file) void onFile(file);
        }}
      />
    </>
  );
}

/** The documents of one kind. */
export class DocumentList<Item extends { id: string }, Whole extends Item> {
  readonly items = signal<Item[] | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  /** Why the last import failed. */
  readonly importError = signal<ApiError | undefined>(undefined);
  readonly isImporting = signal(false);
  readonly shown = computed(() => this.items.value?.filter(({ id }) => !this.#hiddenIds.value.has(id)));
  readonly api: DocumentApi<Item, Whole>;
  readonly #kind: string;
  readonly #store: Store;
  readonly #hiddenIds = signal<ReadonlySet<string>>(new Set());
  readonly #reads = new LatestRead();

  /** @param kind Of the change events. */
  constructor(store: Store, api: DocumentApi<Item, Whole>, kind: string) {
    this.#store = store;
    this.api = api;
    this.#kind = kind;
  }

  /** Loads the list. A failure keeps what is shown. */
  async refresh(): Promise<void> {
    try {
      await this.#reads.run(() => this.api.list(), (items) => this.items.value = items);
      this.error.value = undefined;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
    }
  }

  /** Handles an event; `undefined` if some may have been missed. */
  onChange(event: ChangeEvent | undefined): void {
    if (event === undefined || event.kind === this.#kind) void this.refresh();
  }

  /** Imports a file; undefined on failure, with the reason in `importError`. */
  async import(file: File): Promise<Whole | undefined> {
    this.isImporting.value = true;
    this.importError.value = undefined;
    try {
      return await this.api.import(file);
    } catch (thrown) {
      this.importError.value = asApiError(thrown);
      return undefined;
    } finally {
      this.isImporting.value = false;
    }
  }

  /** Hides a document at once and moves it to the trash when the offer to undo ends. */
  remove(id: string, texts: { done: string; undo: string }): void {
    this.#hide(id, true);
    this.#store.toasts.offerUndo(texts.done, texts.undo, () => this.#hide(id, false), (isLeaving) => {
      this.api.remove(id, { keepalive: isLeaving })
        .then(() => this.refresh())
        .catch((thrown) => this.#store.report(thrown))
        .finally(() => this.#hide(id, false));
    });
  }

  #hide(id: string, isHidden: boolean): void {
    const ids = new Set(this.#hiddenIds.peek());
    if (isHidden) ids.add(id);
    else ids.delete(id);
    this.#hiddenIds.value = ids;
  }
}

/** A select of chats. */
export function ChatSelect(
  { label, none, value, onChange }: { label: string; none: string; value: string; onChange: (id: string) => void },
) {
  const { chats, people } = useStore();
  const shown = chats.shown.value;
  useEffect(() => people.loadListItems(shown.flatMap((chat) => chat.character_ids)), [shown]);
  const options = [
    { value: "", name: none },
    ...shown.map((chat) => ({ value: chat.id, name: nameChat(people, chat).full })),
  ];
  return <Select label={label} value={value} options={options} onChange={onChange} />;
}

interface ChatLinkProps {
  linkLabel: string;
  isLinked: (chat: ConversationHead) => boolean;
  changesFor: (chat: ConversationHead, isOn: boolean) => ConversationPatch;
}

/** The chat, and a switch once it is selected. */
export function ChatPicker({ label, none, failed, ...link }: ChatLinkProps & {
  label: string;
  none: string;
  failed: string;
}) {
  const store = useStore();
  const [id, setId] = useState("");
  const [chat, setChat] = useState<ConversationHead>();
  const [error, setError] = useState<ApiError>();
  const read = () => {
    setChat(undefined);
    setError(undefined);
    if (id === "") return;
    let isWanted = true;
    store.api.getHead(id).then(
      (head) => isWanted && setChat(head),
      (thrown) => isWanted && setError(asApiError(thrown)),
    );
    return () => void (isWanted = false);
  };
  useEffect(read, [id]);
  return (
    <div class="chat-link">
      <ChatSelect label={label} none={none} value={id} onChange={setId} />
      {error && <ErrorNote title={failed} error={error} onRetry={read} />}
      {chat && (
        <ChatLink
          key={chat.id}
          chat={chat}
          onChange={(changed) => setChat((shown) => shown?.id === changed.id ? changed : shown)}
          {...link}
        />
      )}
    </div>
  );
}

function ChatLink({ chat, linkLabel, isLinked, changesFor, onChange }: ChatLinkProps & {
  chat: ConversationHead;
  onChange: (chat: ConversationHead) => void;
}) {
  const { api } = useStore();
  const [isOn, setOn] = useSavedValue(
    isLinked(chat),
    async (isOn) => onChange(await api.changeConversation(chat.id, changesFor(chat, isOn))),
  );
  return <Switch label={linkLabel} isOn={isOn} onChange={setOn} />;
}
