/** Recognizes the type of a document by its first bytes, and by its name where the bytes are plain text. */
import { getOwn } from "../../json/type_guards.ts";

/** Types of documents. */
export type DocumentType =
  | "application/pdf"
  | "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
  | "application/epub+zip"
  | "text/html"
  | "text/markdown"
  | "text/csv"
  | "text/plain";

/** Type of a DOCX file. */
const DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/** Bytes needed to recognize a file. */
export const DOCUMENT_HEAD_BYTES = 4096;

/** The start of a ZIP file that isn't empty. */
const ZIP = [0x50, 0x4b, 0x03, 0x04];
/** OLE2, the container of old Office files and of encrypted new ones ([MS-CFB], section 2.2). */
const OLE2 = [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1];

const TEXT_ENDINGS: Record<string, DocumentType> = {
  html: "text/html",
  htm: "text/html",
  xhtml: "text/html",
  md: "text/markdown",
  markdown: "text/markdown",
  csv: "text/csv",
  tsv: "text/csv",
};

/**
 * Recognizes a document.
 *
 * @param head Its first bytes, `DOCUMENT_HEAD_BYTES` or all.
 * @param name Its file name, or the path of a link.
 * @param declared `Content-Type` of a link.
 * @returns `undefined` for files without text that could be read: images, audio, programs, other archives.
 */
export function sniffDocument(head: Uint8Array, name: string, declared = ""): DocumentType | undefined {
  const ending = /\.([a-z0-9]{1,10})$/i.exec(name)?.[1]?.toLowerCase() ?? "";
  const ascii = new TextDecoder("latin1").decode(head);
  // Adobe's viewers accept the mark anywhere in the first 1024 bytes (ISO 32000-1, annex H, note 13).
  if (ascii.slice(0, 1024).includes("%PDF-")) return "application/pdf";
  if (startsWith(head, ZIP)) {
    if (ascii.includes("mimetypeapplication/epub+zip") || ending === "epub") return "application/epub+zip";
    return ending === "docx" || ascii.includes("word/") || declared.startsWith(DOCX) ? DOCX : undefined;
  }
  if (startsWith(head, OLE2)) return ending === "docx" ? DOCX : undefined;
  if (!looksLikeText(head)) return undefined;
  if (/^text\/html\b|^application\/xhtml\+xml\b/i.test(declared)) return "text/html";
  const byName = getOwn(TEXT_ENDINGS, ending);
  if (byName !== undefined) return byName;
  const start = ascii.replace(/^\u00ef\u00bb\u00bf/, "").trimStart().slice(0, 200);
  return ending === "" && /^(<!--[^]*?-->\s*)?(<!doctype html|<html)\b/i.test(start) ? "text/html" : "text/plain";
}

/** Reports whether a file is an encrypted DOCX. */
export function isOle2(bytes: Uint8Array): boolean {
  return startsWith(bytes, OLE2);
}

function startsWith(bytes: Uint8Array, mark: readonly number[]): boolean {
  return mark.every((byte, n) => bytes[n] === byte);
}

/** Text has no control characters besides white space, except in UTF-16. */
function looksLikeText(head: Uint8Array): boolean {
  if (head.length === 0 || hasUtf16Mark(head)) return true;
  if (String.fromCharCode(...head.subarray(0, 5)) === "{\\rtf") return false;
  return !head.some((byte) => byte < 9 || (byte > 13 && byte < 32 && byte !== 27) || byte === 127);
}

/** Reports whether text starts with the mark of UTF-16. */
export function hasUtf16Mark(bytes: Uint8Array): boolean {
  return (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
}
