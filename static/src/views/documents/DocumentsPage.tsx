/** The list of one kind of documents: create, import, and actions. */
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { List, ListRow } from "../../components/lists/List.tsx";
import { Menu, type MenuItem } from "../../components/overlays/Menu.tsx";
import type { DocumentList } from "../../state/documents/document_list.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** The labels of such a list. */
export interface DocumentLabels {
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
export interface ListedDocument {
  id: string;
  name: string;
  error?: { code: string };
}

/** The page. `address` is its path, with documents below it. */
export function DocumentsPage<Item extends ListedDocument, Whole extends Item>(
  { list, address, words, empty, textOf, badgesOf, menuOf, create }: {
    list: DocumentList<Item, Whole>;
    address: string;
    words: DocumentLabels;
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
      <Button icon="plus" kind="primary" onClick={() => void add()}>{words.add}</Button>
      <FileButton
        label={words.import}
        isBusy={list.isImporting.value}
        onFile={async (file) => {
          const taken = await list.import(file);
          if (taken) open(taken.id);
        }}
      />
    </div>
  );
  return (
    <section>
      <h2>{words.title}</h2>
      <p class="muted">{words.intro}</p>
      {items?.length !== 0 && ways}
      {importError && <ErrorNote title={words.importFailed} error={importError} />}
      {error && <ErrorNote title={words.loadFailed} error={error} onRetry={() => void list.refresh()} />}
      {items === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      {items?.length === 0 && (
        <EmptyState level={3} title={empty?.title ?? words.title} text={empty?.text}>{ways}</EmptyState>
      )}
      {items !== undefined && items.length > 0 && (
        <List label={words.title}>
          {items.map((item) => (
            <ListRow
              key={item.id}
              href={item.error ? undefined : `${address}/${encodeURIComponent(item.id)}`}
              title={<span class="clamped">{item.name || item.id}</span>}
              text={item.error ? <span class="list-error">{words.unreadable}</span> : textOf(item)}
              end={
                <>
                  {badgesOf(item).map((badge) => <span key={badge} class="badge">{badge}</span>)}
                  <Menu label={words.more(item.name || item.id)} items={menuOf(item)} />
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
      <Button icon="down" isBusy={isBusy} onClick={() => chooser.current?.click()}>{label}</Button>
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
