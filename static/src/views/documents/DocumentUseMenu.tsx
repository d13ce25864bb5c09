/** The choice of what to send of a document (matching parts, all of it, or some pages), and its one-line description. */
import { useState } from "preact/hooks";
import type { DocumentUse, StoredDocument } from "../../api/types.ts";
import { Icon } from "../../components/Icon.tsx";
import { Menu } from "../../components/overlays/Menu.tsx";
import { showPageList } from "../../state/chat/attachments.ts";
import { texts } from "../../texts/texts.ts";
import { EncodingDialog, useReadAgain } from "./DocumentLedger.tsx";
import { DocumentReader } from "./DocumentReader.tsx";
import { formatNumber } from "../../texts/format.ts";

/** The menu for one document. */
type ChosenUse = Pick<DocumentUse, "use" | "pages">;

/** The button shows the choice. Pages are chosen in the reader. */
export function DocumentUseMenu(
  { document, use, onChange, onReadAgain }: {
    document: StoredDocument;
    use: ChosenUse;
    onChange: (use: ChosenUse) => void;
    /** Called when the document is read again. */
    onReadAgain?: () => void;
  },
) {
  const { id, name, pages: count, unit, encoding } = document;
  const [isChoosing, setChoosing] = useState(false);
  const [isDecoding, setDecoding] = useState(false);
  const readAgain = useReadAgain(document, onReadAgain);
  const t = texts.documents;
  const kind = use.use ?? "auto";
  const shown = kind === "pages"
    ? t.sendsPages[unit](showPageList(use.pages ?? ""))
    : kind === "whole"
    ? t.sendsAll
    : t.auto;
  return (
    <>
      <Menu
        class="document-use"
        label={t.useOf(name, shown)}
        items={[
          { label: t.auto, hint: t.autoHint, isChecked: kind === "auto", onSelect: () => onChange({ use: "auto" }) },
          { label: t.sendAll, isChecked: kind === "whole", onSelect: () => onChange({ use: "whole" }) },
          { label: t.choosePages[unit], isChecked: kind === "pages", onSelect: () => setChoosing(true) },
          "line",
          { label: t.readAgain, hint: t.readAgainHint, onSelect: () => void readAgain() },
          ...(encoding === undefined ? [] : [{ label: t.chooseEncoding, onSelect: () => setDecoding(true) }]),
        ]}
      >
        <span>{shown}</span>
        <Icon name="below" />
      </Menu>
      {isChoosing && (
        <DocumentReader
          id={id}
          name={name}
          choice={{
            count,
            unit,
            pages: kind === "pages" ? use.pages ?? "" : "",
            onChoose: (pages) => onChange(pages === "" ? { use: "auto" } : { use: "pages", pages }),
          }}
          onClose={() => setChoosing(false)}
        />
      )}
      {isDecoding && <EncodingDialog document={document} onStart={onReadAgain} onClose={() => setDecoding(false)} />}
    </>
  );
}

/**
 * Returns type, pages and tokens of a document, or why it can't be read. Undefined during its upload.
 *
 * @param sent The whole document in the next prompt: its tokens are counted for the model.
 */
export function describeDocument(document: StoredDocument | undefined, sent?: { tokens: number }): string {
  const t = texts.documents;
  if (document === undefined) return t.uploading;
  if (document.state === "extracting") return t.reading;
  if (document.state === "failed") {
    const code = document.error?.code ?? "";
    // Only pages can be scans.
    return code === "no_text" && document.unit !== "page" ? t.noText : getError(code, document.error?.message ?? "");
  }
  const { pages, unit, tokens } = { ...document, ...sent && { tokens: sent.tokens } };
  return [getType(document.content_type), t[unit](pages), t.tokens(formatNumber(tokens))].join(" · ");
}

function getType(contentType: string): string {
  const known: Record<string, string> = {
    "application/pdf": "PDF",
    "application/epub+zip": "EPUB",
    "text/html": "HTML",
    "text/markdown": "Markdown",
    "text/csv": "CSV",
    "application/x-ipynb+json": "IPYNB",
    "message/rfc822": "EML",
    "multipart/related": "MHTML",
    "application/vnd.ms-outlook": "MSG",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "XLSX",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "PPTX",
    "application/vnd.oasis.opendocument.text": "ODT",
    "application/vnd.oasis.opendocument.spreadsheet": "ODS",
    "application/vnd.oasis.opendocument.presentation": "ODP",
    "application/rtf": "RTF",
    "application/x-subrip": "SRT",
    "text/vtt": "VTT",
    "text/plain": texts.documents.plainText,
  };
  return known[contentType] ?? "DOCX";
}

function getError(code: string, message: string): string {
  const { errors } = texts.documents;
  return Object.hasOwn(errors, code) ? errors[code as keyof typeof errors] : message;
}
