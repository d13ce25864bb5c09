/** What a document contains besides the text that was read, in one line; and reading it again. */
import { useState } from "preact/hooks";
import type { DocumentEncoding, StoredDocument } from "../../api/types.ts";
import { Button } from "../../components/Button.tsx";
import { Ledger, type LedgerLine } from "../../components/Ledger.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { readDocumentAgain } from "../../state/chat/attachments.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

type Entry = StoredDocument["ledger"][number];

/** Kinds that every page of the web has. They're shown with the others, never alone. */
const MINOR: readonly Entry["kind"][] = ["script"];

/** Renders nothing if all of the file is text. */
export function DocumentLedger({ document: { state, ledger } }: { document: StoredDocument }) {
  const [first, ...others] = ledger.filter(({ kind }) => !MINOR.includes(kind)).map(toLine);
  if (first === undefined || state === "extracting") return null;
  const lines = others.length === 0 && first.examples.length === 0 ? [first] : ledger.map(toLine);
  return <Ledger lines={lines} first={first} />;
}

/** The example of an encoding is its name, which the description has. */
const ENCODING_KINDS: readonly Entry["kind"][] = ["encoding", "encoding_unsure"];

function toLine(entry: Entry): LedgerLine {
  const { kind, examples = [] } = entry;
  return { kind, text: describe(entry), examples: ENCODING_KINDS.includes(kind) ? [] : examples };
}

function describe({ kind, count, examples }: Entry): string {
  const { ledger } = texts.documents;
  if (kind === "encoding" || kind === "encoding_unsure") return ledger[kind](nameEncoding(examples?.[0] ?? ""));
  return ledger[kind](count);
}

/** Encodings that can be chosen. */
const ENCODINGS: Readonly<Record<DocumentEncoding, string>> = {
  "utf-8": "UTF-8",
  "utf-16le": "UTF-16 LE",
  "utf-16be": "UTF-16 BE",
  "windows-1252": "Windows-1252",
  "windows-1250": "Windows-1250",
  "windows-1251": "Windows-1251",
  "windows-1253": "Windows-1253",
  "windows-1254": "Windows-1254",
  "windows-1255": "Windows-1255",
  "windows-1256": "Windows-1256",
  "windows-1257": "Windows-1257",
  "windows-874": "Windows-874",
  "iso-8859-2": "ISO-8859-2",
  "iso-8859-5": "ISO-8859-5",
  "koi8-u": "KOI8-U",
  ibm866: "IBM866",
  macintosh: "Mac Roman",
  shift_jis: "Shift-JIS",
  "euc-jp": "EUC-JP",
  "iso-2022-jp": "ISO-2022-JP",
  gb18030: "GBK (GB 18030)",
  big5: "Big5",
  "euc-kr": "EUC-KR",
};

function nameEncoding(encoding: string): string {
  return Object.hasOwn(ENCODINGS, encoding) ? ENCODINGS[encoding as DocumentEncoding] : encoding;
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
        options={Object.entries(ENCODINGS).map(([value, name]) => ({ value, name }))}
        onChange={setEncoding}
      />
    </Dialog>
  );
}
