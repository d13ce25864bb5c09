/** What a document contains besides the text that was read, in one line; and reading it again. */
import { useState } from "preact/hooks";
import { TEXT_ENCODINGS } from "../../../../services/documents/extraction/text_encodings.ts";
import type { StoredDocument } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { readDocumentAgain } from "../../state/chat/attachments.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

type Entry = StoredDocument["ledger"][number];

/** Kinds that every page of the web has. They're shown with the others, never alone. */
const MINOR: readonly Entry["kind"][] = ["script"];

/** The line opens to the whole list. Renders nothing if all of the file is text. */
export function DocumentLedger({ document: { state, ledger } }: { document: StoredDocument }) {
  const t = texts.documents;
  const entries = ledger.filter(({ kind }) => !MINOR.includes(kind));
  const [first] = entries;
  if (first === undefined || state === "extracting") return null;
  if (entries.length === 1 && listExamples(first) === "") return <p class="document-ledger muted">{describe(first)}</p>;
  const others = entries.length - 1;
  return (
    <details class="document-ledger muted">
      <summary>{describe(first)}{others > 0 && ` ${t.ledgerMore(others)}`}</summary>
      <ul>
        {ledger.map((entry) => (
          <li key={entry.kind}>
            {describe(entry)}
            {listExamples(entry)}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** The example of an encoding is its name, which the description has. */
const ENCODING_KINDS: readonly Entry["kind"][] = ["encoding", "encoding_unsure"];

function listExamples({ kind, examples = [] }: Entry): string {
  return ENCODING_KINDS.includes(kind) || examples.length === 0 ? "" : `: ${examples.join(", ")}`;
}

function describe({ kind, count, examples }: Entry): string {
  const { ledger } = texts.documents;
  if (kind === "encoding" || kind === "encoding_unsure") return ledger[kind](nameEncoding(examples?.[0] ?? ""));
  return ledger[kind](count);
}

/** Names that differ from the standard's. */
const ENCODING_NAMES: Readonly<Record<string, string>> = {
  gb18030: "GBK (GB 18030)",
  shift_jis: "Shift-JIS",
  macintosh: "Mac Roman",
  "utf-16le": "UTF-16 LE",
  "utf-16be": "UTF-16 BE",
  big5: "Big5",
};

function nameEncoding(encoding: string): string {
  return ENCODING_NAMES[encoding] ?? encoding.toUpperCase().replace(/^WINDOWS/, "Windows");
}

/** Returns a function that has a document read again. @param onStart Called once the server has begun. */
export function useReadAgain(
  { id }: StoredDocument,
  onStart?: () => void,
): (encoding?: string) => Promise<void> {
  const store = useStore();
  return async (encoding) => {
    try {
      await readDocumentAgain(store.api.client, id, encoding);
      onStart?.();
    } catch (thrown) {
      store.report(thrown);
    }
  };
}

/** Has a document read again that couldn't be read. */
export function ReadAgainButton({ document, onStart }: { document: StoredDocument; onStart?: () => void }) {
  const readAgain = useReadAgain(document, onStart);
  return <Button kind="quiet" onClick={() => void readAgain()}>{texts.documents.readAgain}</Button>;
}

/** The choice of the encoding of a text file. */
export function EncodingDialog(
  { document, onStart, onClose }: { document: StoredDocument; onStart?: () => void; onClose: () => void },
) {
  const [encoding, setEncoding] = useState(document.encoding ?? "utf-8");
  const readAgain = useReadAgain(document, onStart);
  const t = texts.documents;
  return (
    <Dialog
      title={t.encoding}
      onClose={onClose}
      actions={
        <>
          <Button kind="quiet" onClick={onClose}>{texts.cancel}</Button>
          <Button
            kind="primary"
            onClick={() => {
              onClose();
              void readAgain(encoding);
            }}
          >
            {t.readAgain}
          </Button>
        </>
      }
    >
      <Select
        label={t.encoding}
        value={encoding}
        options={TEXT_ENCODINGS.map((value) => ({ value, name: nameEncoding(value) }))}
        onChange={setEncoding}
      />
    </Dialog>
  );
}
