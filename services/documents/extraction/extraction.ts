/**
 * Extraction of text, for both sides of the sandbox: document types, limits, messages, and plain text. Text without
 * pages is divided into sections of about one page: at headings, or else between paragraphs or lines.
 */
import type { DocumentErrorCode, DocumentLedgerKind, PageUnit } from "../document.ts";
import type { LedgerEntry } from "../../json/ledger.ts";
import { getOwn } from "../../json/type_guards.ts";
import { findWideEncoding } from "./text_encodings.ts";

/** Limits of one document. */
export interface ExtractionLimits {
  /** Maximum number of bytes after decompression, for all entries of an archive together. */
  inflatedBytes: number;
  pages: number;
  /** Maximum number of UTF-16 units of the whole text. */
  chars: number;
}

/** The limits of every document. */
export const EXTRACTION_LIMITS: ExtractionLimits = {
  inflatedBytes: 512 * 1024 * 1024,
  pages: 5_000,
  chars: 64 * 1024 * 1024,
};

/** A file to read. */
export interface ExtractionInput {
  bytes: Uint8Array<ArrayBuffer>;
  name: string;
  /** From `sniffDocument`. */
  contentType: string;
  limits: ExtractionLimits;
  /** URL of a link, to determine its title. */
  url?: string;
  /** Charset that the server of a link named. */
  charset?: string;
  /** Encoding that the user chose. */
  encoding?: string;
  /** Languages of the user, to guess an encoding. */
  languages?: readonly string[];
  /** Page number, from 1. If set, its images are extracted instead of the text. */
  imagePage?: number;
}

/** Receives pages as they're extracted. */
export interface PageSink {
  /** Sets what the text is divided into, and the title if the file has one. */
  begin(about: { unit: PageUnit; total: number; title?: string }): void;
  /** Adds a page. Waits while earlier pages are being stored. @throws {ExtractionFault} `too_large` */
  add(text: string): Promise<void>;
  /** Adds to the ledger. @param found Their number, by default 1, and the name or place of one. */
  note(kind: DocumentLedgerKind, found?: { count?: number; example?: string }): void;
  /** Sets the encoding of the file. */
  setEncoding(encoding: string): void;
}

/** Thrown if a document can't be read. The message is shown to the owner. */
export class ExtractionFault extends Error {
  /** @param pages Number of pages of a file without text, if it has pages. */
  constructor(readonly code: DocumentErrorCode, message: string, readonly pages = 0) {
    super(message);
  }
}

/** A job of the sandbox. It calls `read` for the pieces of the file, `begin`, `part` and `pages`. */
export type ExtractionOrder = { sizeBytes: number } & Omit<ExtractionInput, "bytes">;

/** The result of a job. */
export interface ExtractionResponse {
  fault?: { code: DocumentErrorCode; message: string; pages: number };
  ledger: LedgerEntry<DocumentLedgerKind>[];
  /** Encoding of a text file. */
  encoding?: string;
}

/** A paragraph, list item or table row. */
export interface TextBlock {
  text: string;
  /** 1 to 6 for a heading. */
  heading?: number;
  /** Always starts a section: a chapter's file. */
  isChapter?: boolean;
}

/** Maximum length of an address in the text. Longer ones have little besides IDs for statistics. */
const MAX_ADDRESS = 300;

/**
 * Adds the address of a link to its text: `the shop (https://shop.example)`. One that can't be added is in the ledger.
 * Places in the file, and addresses relative to it, mean nothing elsewhere and are left out.
 */
export function formatLink(text: string, address: string, sink: Pick<PageSink, "note">): string {
  const clean = address.trim();
  if (!/^(https?|ftp|mailto|tel):./i.test(clean)) return text;
  const shown = clean.replace(/^\w+:(\/\/)?(www\.)?/i, "").replace(/\/$/, "");
  if (text.includes(shown)) return text;
  if (text.trim() === "" || clean.length > MAX_ADDRESS || /\s/.test(clean)) {
    sink.note("link", { example: clean });
    return text;
  }
  const end = text.trimEnd();
  return `${end} (${clean})${text.slice(end.length)}`;
}

/** Maximum length of a section of several blocks, in UTF-16 units. */
const SECTION_LENGTH = 3_000;
/** Minimum length of a section before a heading starts a new one, so that a page of headings is one section. */
const MIN_SECTION_LENGTH = 600;
/** Headings below this level don't start a section. */
const MAX_HEADING = 3;

/** Divides blocks into sections. Never yields an empty one. */
export function* toSections(blocks: Iterable<TextBlock>, separator = "\n\n"): Generator<string> {
  let section: string[] = [];
  let length = 0;
  for (const { text: whole, heading, isChapter } of blocks) {
    for (const text of splitLong(whole)) {
      const startsHere = isChapter || (heading !== undefined && heading <= MAX_HEADING && length >= MIN_SECTION_LENGTH);
      if (length > 0 && (startsHere || length + text.length > SECTION_LENGTH)) {
        yield section.join(separator);
        section = [];
        length = 0;
      }
      if (text.trim() === "") {
        if (length > 0 && separator === "\n") section.push(text);
        continue;
      }
      section.push(text);
      length += text.length + separator.length;
    }
  }
  if (length > 0) yield section.join(separator).trimEnd();
}

/** Splits a text that is longer than a section, between words if possible. */
export function* splitLong(text: string): Generator<string> {
  let at = 0;
  while (text.length - at > SECTION_LENGTH) {
    const piece = text.slice(at, at + SECTION_LENGTH);
    const space = Math.max(piece.lastIndexOf("\n"), piece.lastIndexOf(" "));
    let end = space > SECTION_LENGTH / 2 ? space + 1 : SECTION_LENGTH;
    if ((text.charCodeAt(at + end) & 0xfc00) === 0xdc00) end--; // Inside a surrogate pair
    yield text.slice(at, at + end);
    at += end;
  }
  yield text.slice(at);
}

/** Types of documents. */
export type DocumentType =
  | "application/pdf"
  | "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
  | "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
  | "application/vnd.openxmlformats-officedocument.presentationml.presentation"
  | "application/vnd.oasis.opendocument.text"
  | "application/vnd.oasis.opendocument.spreadsheet"
  | "application/vnd.oasis.opendocument.presentation"
  | "application/rtf"
  | "application/epub+zip"
  | "text/html"
  | "message/rfc822"
  | "application/vnd.ms-outlook"
  | "multipart/related"
  | "application/x-ipynb+json"
  | "application/x-subrip"
  | "text/vtt"
  | "text/markdown"
  | "text/csv"
  | "text/plain";

/** Types of Office files. */
const OFFICE_TYPES: Record<string, DocumentType> = {
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation",
};

/** Names of the same formats as templates, shows, and with macros. */
const OFFICE_ENDINGS: Record<string, string> = {
  ...{ docx: "docx", docm: "docx", dotx: "docx", dotm: "docx" },
  ...{ xlsx: "xlsx", xlsm: "xlsx", xltx: "xlsx", xltm: "xlsx" },
  ...{ pptx: "pptx", pptm: "pptx", ppsx: "pptx", ppsm: "pptx", potx: "pptx", potm: "pptx" },
};

/** Folders of parts of Office files. */
const OFFICE_FOLDERS: Record<string, string> = { "word/": "docx", "xl/": "xlsx", "ppt/": "pptx" };

const OPEN_DOCUMENT = /application\/vnd\.oasis\.opendocument\.(text|spreadsheet|presentation)/;
const OPEN_DOCUMENT_ENDINGS: Record<string, DocumentType> = {
  odt: "application/vnd.oasis.opendocument.text",
  ods: "application/vnd.oasis.opendocument.spreadsheet",
  odp: "application/vnd.oasis.opendocument.presentation",
  ott: "application/vnd.oasis.opendocument.text",
  ots: "application/vnd.oasis.opendocument.spreadsheet",
  otp: "application/vnd.oasis.opendocument.presentation",
};

/** Number of bytes needed to recognize a file. */
export const DOCUMENT_HEAD_BYTES = 4096;

/** The start of a ZIP file that isn't empty. */
const ZIP = [0x50, 0x4b, 0x03, 0x04];
/** OLE2, the container of old Office files and of encrypted new ones ([MS-CFB], section 2.2). */
const OLE2 = [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1];

const TEXT_ENDINGS: Record<string, DocumentType> = {
  html: "text/html",
  htm: "text/html",
  xhtml: "text/html",
  eml: "message/rfc822",
  mhtml: "multipart/related",
  mht: "multipart/related",
  ipynb: "application/x-ipynb+json",
  srt: "application/x-subrip",
  vtt: "text/vtt",
  fodt: "application/vnd.oasis.opendocument.text",
  fods: "application/vnd.oasis.opendocument.spreadsheet",
  fodp: "application/vnd.oasis.opendocument.presentation",
  md: "text/markdown",
  markdown: "text/markdown",
  csv: "text/csv",
  tsv: "text/csv",
};

/**
 * Recognizes a document by its first bytes, and by its name if they're plain text.
 *
 * @param head Its first `DOCUMENT_HEAD_BYTES` bytes, or all of them.
 * @param name Its file name, or the path of a link.
 * @param declared `Content-Type` of a link.
 * @returns `undefined` for files without extractable text: images, audio, programs, other archives.
 */
export function sniffDocument(head: Uint8Array, name: string, declared = ""): DocumentType | undefined {
  const ending = /\.([a-z0-9]{1,10})$/i.exec(name)?.[1]?.toLowerCase() ?? "";
  const ascii = new TextDecoder("latin1").decode(head);
  // Adobe's viewers accept the mark anywhere in the first 1024 bytes (ISO 32000-1, annex H, note 13).
  if (ascii.slice(0, 1024).includes("%PDF-")) return "application/pdf";
  if (startsWith(head, ZIP)) return sniffZip(ascii, ending, declared);
  // Encrypted Office files are in this container, too. Without its name, a message can be any old Office file.
  if (startsWith(head, OLE2)) {
    if (ending === "msg" || declared.startsWith("application/vnd.ms-outlook")) return "application/vnd.ms-outlook";
    return getOwn(OFFICE_TYPES, getOwn(OFFICE_ENDINGS, ending) ?? "");
  }
  if (/^(?:\u00ef\u00bb\u00bf)?\s*\{\\rtf/.test(ascii)) return "application/rtf";
  if (!isLikelyText(head)) return undefined;
  if (/^text\/html\b|^application\/xhtml\+xml\b/i.test(declared)) return "text/html";
  const byName = getOwn(TEXT_ENDINGS, ending);
  if (byName !== undefined) return byName;
  const start = ascii.replace(/^\u00ef\u00bb\u00bf/, "").trimStart().slice(0, 200);
  if (ending === "" && /^WEBVTT\s/.test(start)) return "text/vtt";
  return ending === "" && /^(<!--[^]*?-->\s*)?(<!doctype html|<html)\b/i.test(start) ? "text/html" : "text/plain";
}

function sniffZip(head: string, ending: string, declared: string): DocumentType | undefined {
  if (head.includes("mimetypeapplication/epub+zip") || ending === "epub") return "application/epub+zip";
  const open = OPEN_DOCUMENT.exec(head.slice(0, 200))?.[1];
  if (open !== undefined) return `application/vnd.oasis.opendocument.${open}` as DocumentType;
  const byName = getOwn(OFFICE_TYPES, getOwn(OFFICE_ENDINGS, ending) ?? "") ?? getOwn(OPEN_DOCUMENT_ENDINGS, ending);
  if (byName !== undefined) return byName;
  const declaredType = Object.values(OFFICE_TYPES).find((type) => declared.startsWith(type));
  const folder = Object.keys(OFFICE_FOLDERS).find((folder) => head.includes(folder));
  return declaredType ?? (folder === undefined ? undefined : OFFICE_TYPES[OFFICE_FOLDERS[folder]!]);
}

/** Reports whether a file is an encrypted Office file. */
export function isOle2(bytes: Uint8Array): boolean {
  return startsWith(bytes, OLE2);
}

function startsWith(bytes: Uint8Array, mark: readonly number[]): boolean {
  return mark.every((byte, n) => bytes[n] === byte);
}

/** Reports whether bytes look like text: no control characters besides white space, except in UTF-16. */
function isLikelyText(head: Uint8Array): boolean {
  if (head.length === 0 || hasUtf16Mark(head) || findWideEncoding(head) !== undefined) return true;
  return !head.some((byte) => byte < 9 || (byte > 13 && byte < 32 && byte !== 27) || byte === 127);
}

/** Reports whether text starts with a byte order mark of UTF-16. */
function hasUtf16Mark(bytes: Uint8Array): boolean {
  return (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);
}
