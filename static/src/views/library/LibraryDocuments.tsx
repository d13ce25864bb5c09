/** All documents: name, kind, size, and the chats that use them. */
import { useEffect, useRef, useState } from "preact/hooks";
import { libraryApi } from "../../api/library.ts";
import type { LibraryDocument } from "../../api/types.ts";
import { downloadFile } from "../../components/ApiFile.tsx";
import { Button, LinkButton } from "../../components/Button.tsx";
import { useFormDraft } from "../../components/forms/Drafted.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { Menu } from "../../components/overlays/Menu.tsx";
import { readDocumentAgain } from "../../state/chat/attachments.ts";
import { useStore } from "../../state/store.ts";
import { formatTime } from "../../texts/format.ts";
import { bytes } from "../../texts/quantities.ts";
import { texts } from "../../texts/texts.ts";
import { DocumentReader } from "../documents/DocumentReader.tsx";
import { describeDocument } from "../documents/DocumentUseMenu.tsx";
import { useResource } from "../hooks.tsx";
import { FormDialog } from "../shell/ChatDialogs.tsx";
import { ChatLink } from "./ChatLink.tsx";

/** Documents shown at first, and added by "Show more". */
const PAGE = 50;
/** Pause in typing before the search, in milliseconds. */
const SEARCH_AFTER_MS = 200;
/** Chats shown of a document; the others follow on request. */
const CHATS_SHOWN = 3;
/** Longest name that the server accepts. */
const MAX_NAME = 200;

/** The list, newest first, with a search by name. */
export function LibraryDocuments() {
  const store = useStore();
  const t = texts.library;
  const api = libraryApi(store.api.client);
  const wanted = useRef({ words: "", count: PAGE });
  const [words, setWords] = useState("");
  const [removed, setRemoved] = useState<ReadonlySet<string>>(new Set());
  const [opened, setOpened] = useState<LibraryDocument>();
  const [renamed, setRenamed] = useState<LibraryDocument>();
  const { value, error, isBusy, again } = useResource(
    () => api.listDocuments(wanted.current),
    "document",
    "conversation",
  );
  useEffect(() => {
    if (words === wanted.current.words) return;
    const timer = setTimeout(() => {
      wanted.current = { words, count: PAGE };
      void again();
    }, SEARCH_AFTER_MS);
    return () => clearTimeout(timer);
  }, [words]);
  const showMore = () => {
    wanted.current = { ...wanted.current, count: wanted.current.count + PAGE };
    void again();
  };
  const hide = (id: string, isHidden: boolean) =>
    setRemoved((before) => new Set(isHidden ? [...before, id] : [...before].filter((each) => each !== id)));
  const remove = ({ id, name }: LibraryDocument) => {
    hide(id, true);
    store.toasts.offerUndo(
      texts.documents.deleted(name),
      texts.undo,
      () => hide(id, false),
      (isLeaving) =>
        void api.deleteDocument(id, { keepalive: isLeaving }).catch((thrown) => {
          hide(id, false);
          store.report(thrown);
        }),
    );
  };
  const shown = value?.items.filter(({ id }) => !removed.has(id));
  const isFiltered = words.trim() !== "";
  return (
    <section aria-label={texts.documents.title}>
      {(isFiltered || value?.items.length !== 0) && (
        <div class="library-filter">
          <TextField label={t.searchDocuments} type="search" value={words} onInput={setWords} />
        </div>
      )}
      {error && <ErrorNote title={texts.documents.listFailed} error={error} onRetry={() => void again()} />}
      {value === undefined && !error && <p class="muted" role="status">{texts.loading}</p>}
      {shown?.length === 0 && isFiltered && <p role="status">{t.noMatch}</p>}
      {shown?.length === 0 && !isFiltered && (
        <EmptyState title={t.noDocuments} text={texts.documents.none}>
          <LinkButton href="/new" kind="primary">{texts.nav.newChat}</LinkButton>
        </EmptyState>
      )}
      {shown !== undefined && shown.length > 0 && (
        <ul class="list" aria-label={texts.documents.title}>
          {shown.map((document) => (
            <DocumentRow
              key={document.id}
              document={document}
              onOpen={() => setOpened(document)}
              onRename={() => setRenamed(document)}
              onRemove={() => remove(document)}
            />
          ))}
        </ul>
      )}
      {value?.hasMore && <Button isBusy={isBusy} onClick={showMore}>{texts.gallery.more}</Button>}
      {opened && <DocumentReader id={opened.id} name={opened.name} onClose={() => setOpened(undefined)} />}
      {renamed && (
        <RenameDialog
          document={renamed}
          onSave={(name) => api.renameDocument(renamed.id, name).then(again, (thrown) => store.report(thrown))}
          onClose={() => setRenamed(undefined)}
        />
      )}
    </section>
  );
}

function DocumentRow(
  { document, onOpen, onRename, onRemove }: {
    document: LibraryDocument;
    onOpen: () => void;
    onRename: () => void;
    onRemove: () => void;
  },
) {
  const store = useStore();
  const t = texts.library;
  const [hasAll, setAll] = useState(false);
  const { id, size_bytes: size, conversations, url } = document;
  const name = document.name || texts.documents.untitled;
  const about = [describeDocument(document), size > 0 && bytes(size), formatTime(document.created_at, new Date())];
  const inside = (
    <span class="list-text">
      <span class="list-title">
        <span class="clamped">{name}</span>
      </span>
      <span class="list-more">{about.filter(Boolean).join(" · ")}</span>
    </span>
  );
  const hiddenCount = hasAll ? 0 : conversations.length - CHATS_SHOWN;
  return (
    <li class="list-row library-row">
      {document.state === "ready"
        ? <button type="button" class="list-main" onClick={onOpen}>{inside}</button>
        : <div class="list-main">{inside}</div>}
      <div class="list-end">
        <Menu
          label={t.menu(name)}
          items={[
            { label: texts.nav.rename, icon: "pencil", onSelect: onRename },
            {
              label: texts.documents.readAgain,
              icon: "restore",
              isDisabled: document.state === "extracting",
              onSelect: () => void readDocumentAgain(store.api.client, id).catch((thrown) => store.report(thrown)),
            },
            ...(size === 0 && url !== undefined ? [] : [{
              label: t.download,
              icon: "export" as const,
              onSelect: () => void downloadFile(store, `/api/documents/${encodeURIComponent(id)}/file`),
            }]),
            "line",
            { label: texts.nav.delete, icon: "trash", isDanger: true, onSelect: onRemove },
          ]}
        />
      </div>
      <div class="library-chats">
        {conversations.length === 0
          ? <span class="muted">{t.unused}</span>
          : conversations.slice(0, hasAll ? undefined : CHATS_SHOWN).map(({ id, title }) => (
            <ChatLink key={id} id={id} title={title} />
          ))}
        {hiddenCount > 0 && <Button kind="quiet" onClick={() => setAll(true)}>{t.moreChats(hiddenCount)}</Button>}
      </div>
    </li>
  );
}

function RenameDialog(
  { document, onSave, onClose }: {
    document: LibraryDocument;
    onSave: (name: string) => unknown;
    onClose: () => void;
  },
) {
  const [name, setName] = useState(document.name);
  const draft = useFormDraft(`document:${document.id}`);
  const save = () => {
    const trimmed = name.trim();
    if (trimmed !== "" && trimmed !== document.name) onSave(trimmed);
    onClose();
  };
  return (
    <FormDialog title={texts.library.rename} draft={draft} onClose={onClose} onSave={save}>
      <TextField label={texts.library.name} value={name} maxLength={MAX_NAME} hasFocus onInput={setName} />
    </FormDialog>
  );
}
