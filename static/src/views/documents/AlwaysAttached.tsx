/** Documents that are sent with every message of a chat, a character or a persona. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { DocumentUse, StoredDocument } from "../../api/types.ts";
import { Button, IconButton } from "../../components/Button.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { newId } from "../../state/app/ids.ts";
import { LatestRead } from "../../state/app/latest_read.ts";
import { ACCEPTED_DOCUMENTS, uploadDocument } from "../../state/chat/attachments.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { describeDocument, DocumentUseMenu } from "./DocumentUseMenu.tsx";
import { DocumentLedger, ReadAgainButton } from "./DocumentLedger.tsx";
import { DocumentReader } from "./DocumentReader.tsx";

/** Lists them; adds a new or an existing one. */
export function AlwaysAttached(
  { uses, hint, onChange }: {
    uses: readonly DocumentUse[];
    /** Which messages the documents are sent with. */
    hint: string;
    /** Gets a function, since another upload may end in the meantime. */
    onChange: (change: (uses: readonly DocumentUse[]) => DocumentUse[]) => void;
  },
) {
  const store = useStore();
  const picker = useRef<HTMLInputElement>(null);
  const [uploading, setUploading] = useState(0);
  const { documents, error, refresh } = useDocuments();
  const t = texts.documents;
  const add = (id: string) => onChange((before) => [...before.filter((use) => use.id !== id), { id, use: "auto" }]);
  const upload = async (files: readonly File[]) => {
    setUploading((count) => count + files.length);
    for (const file of files) {
      const id = newId();
      try {
        await uploadDocument(store.api.client, file, id);
        add(id);
      } catch (thrown) {
        if (asApiError(thrown).isQueued) add(id);
        store.report(thrown);
      }
      setUploading((count) => count - 1);
    }
    refresh();
  };
  const others = documents?.filter(({ id, state }) => state !== "failed" && uses.every((use) => use.id !== id)) ?? [];
  return (
    <div class="always-attached">
      <p class="hint">{hint}</p>
      {error && <ErrorNote title={t.listFailed} error={error} onRetry={refresh} />}
      {uses.length > 0 && (
        <ul class="document-row" aria-label={t.alwaysAttached}>
          {uses.map((use) => (
            <UsedDocument
              key={use.id}
              document={documents?.find(({ id }) => id === use.id)}
              isListed={documents !== undefined}
              use={use}
              onChange={(changed) =>
                onChange((before) => before.map((each) => each.id === use.id ? { id: use.id, ...changed } : each))}
              onRemove={() => onChange((before) => before.filter(({ id }) => id !== use.id))}
            />
          ))}
        </ul>
      )}
      <div class="actions-row">
        <Button icon="plus" isBusy={uploading > 0} onClick={() => picker.current?.click()}>{t.upload}</Button>
        <input
          ref={picker}
          type="file"
          hidden
          multiple
          accept={ACCEPTED_DOCUMENTS}
          onChange={(event) => {
            void upload([...event.currentTarget.files ?? []]);
            event.currentTarget.value = "";
          }}
        />
      </div>
      {others.length > 0 && (
        <Select
          label={t.addStored}
          value=""
          options={[{ value: "", name: t.choose }, ...others.map(({ id, name }) => ({ value: id, name }))]}
          onChange={(id) => id !== "" && add(id)}
        />
      )}
    </div>
  );
}

function UsedDocument(
  { document, isListed, use, onChange, onRemove }: {
    document: StoredDocument | undefined;
    isListed: boolean;
    use: DocumentUse;
    onChange: (use: Pick<DocumentUse, "use" | "pages">) => void;
    onRemove: () => void;
  },
) {
  const [isOpen, setOpen] = useState(false);
  const t = texts.documents;
  const name = document?.name ?? t.untitled;
  const isReady = document?.state === "ready";
  const isMissing = document === undefined && isListed;
  const state = document ? describeDocument(document) : isListed ? t.missing : texts.loading;
  return (
    <li class="document-chip" aria-busy={document?.state === "extracting"}>
      <button type="button" class="document-name" disabled={!isReady} onClick={() => setOpen(true)}>
        <span>{name}</span>
        <small class={isMissing || document?.state === "failed" ? "field-error" : "muted"} role="status">{state}</small>
      </button>
      {isReady && <DocumentUseMenu document={document} use={use} onChange={onChange} />}
      <IconButton icon="close" label={t.remove(name)} onClick={onRemove} />
      {document?.state === "failed" && <ReadAgainButton document={document} />}
      {document && <DocumentLedger document={document} />}
      {isOpen && <DocumentReader id={use.id} name={name} onClose={() => setOpen(false)} />}
    </li>
  );
}

/** All documents, loaded again when one changes. A failure keeps what is shown. */
export function useDocuments(): {
  documents: StoredDocument[] | undefined;
  error: ApiError | undefined;
  refresh: () => void;
} {
  const store = useStore();
  const [documents, setDocuments] = useState<StoredDocument[]>();
  const [error, setError] = useState<ApiError>();
  const [latest] = useState(() => new LatestRead());
  const read = async (): Promise<StoredDocument[]> =>
    await (await store.api.client.send("GET", "/api/documents")).json();
  const refresh = () => {
    latest.run(read, (found) => {
      setDocuments(found);
      setError(undefined);
    }).catch((thrown) => setError(asApiError(thrown)));
  };
  useEffect(() => {
    refresh();
    return store.listen((event) => {
      if (event === undefined || event.kind === "document") refresh();
    });
  }, []);
  return { documents, error, refresh };
}
