/** What a document is, in words. */
import type { StoredDocument } from "../../api/types.ts";
import { formatNumber } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";

/** Returns type, pages and tokens of a document, or why it can't be read. Undefined during its upload. */
export function describeDocument(document: StoredDocument | undefined): string {
  const t = texts.documents;
  if (document === undefined) return t.uploading;
  if (document.state === "extracting") return t.reading;
  if (document.state === "failed") return getError(document.error?.code ?? "", document.error?.message ?? "");
  const { pages, unit, tokens } = document;
  return [getType(document.content_type), t[unit](pages), t.tokens(formatNumber(tokens))].join(" · ");
}

function getType(contentType: string): string {
  const known: Record<string, string> = {
    "application/pdf": "PDF",
    "application/epub+zip": "EPUB",
    "text/html": "HTML",
    "text/markdown": "Markdown",
    "text/csv": "CSV",
    "text/plain": texts.documents.plainText,
  };
  return known[contentType] ?? "DOCX";
}

function getError(code: string, message: string): string {
  const { errors } = texts.documents;
  return Object.hasOwn(errors, code) ? errors[code as keyof typeof errors] : message;
}
