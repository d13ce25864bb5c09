/** Extracts Outlook items (MSG): messages, appointments and contacts. */
import type { FieldsData } from "@kenjiuno/msgreader";
import * as msgReader from "@kenjiuno/msgreader";
import { decompressRTF } from "@kenjiuno/decompressrtf";
import { decode } from "./encoding.ts";
import { ExtractionFault, type ExtractionInput, type PageSink, type TextBlock, toSections } from "./extraction.ts";
import { convertHtml, findMetaCharset, noteLosses } from "./html_text.ts";
import { decodePart } from "./plain_text.ts";
import { convertRtf } from "./rtf.ts";

// It's a CommonJS module, whose exports are its default export too.
const { default: MsgReader } = ("MsgReader" in msgReader ? msgReader : msgReader.default) as unknown as {
  default: new (bytes: ArrayBuffer) => {
    parserConfig: { includeRawProps?: boolean };
    getFileData(): FieldsData;
  };
};

/** Fields of appointments and contacts, with the names that mail programs have for them. */
const FIELDS: readonly [string, keyof FieldsData][] = [
  ["Start", "apptStartWhole"],
  ["End", "apptEndWhole"],
  ["Location", "apptLocation"],
  ["Company", "companyName"],
  ["Department", "departmentName"],
  ["Job title", "title"],
  ["Email", "email1EmailAddress"],
  ["Phone", "businessTelephoneNumber"],
  ["Home phone", "homeTelephoneNumber"],
  ["Mobile", "mobileTelephoneNumber"],
  ["Fax", "businessFaxNumber"],
  ["Address", "postalAddress"],
  ["Website", "businessHomePage"],
];

/**
 * Extracts the header and the text of an item. Its text is that without formatting if there is one.
 *
 * @throws {ExtractionFault} `encrypted`, `damaged`
 * @see [MS-OXMSG] and [MS-OXCMSG]
 */
export async function extractOutlookMessage({ bytes, languages }: ExtractionInput, sink: PageSink): Promise<void> {
  const reader = new MsgReader(bytes.buffer);
  reader.parserConfig = { includeRawProps: true };
  const item = reader.getFileData();
  if (item.error) throw new ExtractionFault("damaged", `Can't read the file: ${item.error.slice(0, 200)}`);
  const type = item.messageClass ?? "";
  if (/^IPM\.Note\.(SMIME$|rpmsg)/i.test(type)) {
    throw new ExtractionFault("encrypted", "Can't read the message: it's encrypted");
  }
  const read = createTextReader(item, languages, sink);
  const list = (kind: string) =>
    (item.recipients ?? []).filter(({ recipType }) => recipType === kind)
      .map(({ name, email, smtpAddress }) => formatAddress(read(name), smtpAddress ?? email)).join(", ");
  const header = [
    ["Subject", read(item.subject)],
    ["From", formatAddress(read(item.senderName), item.senderSmtpAddress ?? item.senderEmail)],
    ["To", list("to")],
    ["Cc", list("cc")],
    ["Date", toDate(item.clientSubmitTime ?? item.messageDeliveryTime)],
    ...FIELDS.map(([name, key]) => {
      const value = item[key];
      if (typeof value !== "string") return [name, ""];
      return [name, /Whole$/.test(key) ? toDate(value) : read(value).replace(/\s*[\r\n]+\s*/g, ", ")];
    }),
  ].filter(([, value]) => value !== "").map(([name, value]) => `${name}: ${value}`).join("\n");
  const body = read(item.body);
  const isPlain = body.trim() !== "";
  const blocks = isPlain ? toBlocks(body) : readFormatted(item, sink);
  for (const { fileName, name, attachMimeTag, pidContentId, innerMsgContentFields } of item.attachments ?? []) {
    const example = fileName ?? name ?? innerMsgContentFields?.subject ?? attachMimeTag ?? "attachment";
    // The images of formatted text are already counted by their tags.
    const isImage = /^image\//.test(attachMimeTag ?? "") && pidContentId !== undefined;
    if (!isImage || isPlain) sink.note(isImage ? "image" : "embedded", { example: read(example) });
  }
  sink.begin({ unit: "section", total: 0 });
  for (const section of toSections([{ text: header }, ...blocks])) await sink.add(section);
}

function toBlocks(text: string): TextBlock[] {
  return text.replaceAll("\r\n", "\n").split(/\n\s*\n/).map((text) => ({ text: text.trim() }));
}

function formatAddress(name: string, address = ""): string {
  // Addresses inside of an organization are paths of its directory.
  if (!address.includes("@") || address === name) return name || address;
  return name === "" ? address : `${name} <${address}>`;
}

/** Converts a time to ISO 8601; `""` if there is none. */
function toDate(text = ""): string {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? text : time.toISOString();
}

/** Returns the text of a message that has it only as HTML or RTF. */
function readFormatted({ bodyHtml, html, compressedRtf }: FieldsData, sink: PageSink): TextBlock[] {
  const source = bodyHtml ?? (html && decodePart(html, { declared: [findMetaCharset(html)] }));
  if (source) {
    const page = convertHtml(source);
    noteLosses(page, sink);
    return page.blocks;
  }
  if (compressedRtf === undefined) return [];
  const rtf = convertRtf(new Uint8Array(decompressRTF(Array.from(compressedRtf))), sink);
  if (rtf.html) noteLosses(rtf.html, sink);
  return rtf.blocks;
}

/**
 * Returns a function that reads a text. Old messages store their texts in a code page, whose bytes the library returns
 * as characters.
 */
function createTextReader(
  { rawProps = [], subject = "", body = "" }: FieldsData,
  languages: readonly string[] | undefined,
  sink: PageSink,
): (text: string | undefined) => string {
  const isWide = rawProps.some(({ propertyTag = "" }) => /001F$/i.test(propertyTag));
  const sample = `${subject}\n${body}`;
  if (isWide || /^[\0-\x7f]*$/.test(sample) || !/^[\0-\xff]*$/.test(sample)) return (text = "") => text;
  const { encoding, found } = decode(toBytes(sample), { languages });
  sink.note(found === "unsure" ? "encoding_unsure" : "encoding", { example: encoding });
  return (text = "") => {
    return /^[\0-\xff]*$/.test(text) ? new TextDecoder(encoding).decode(toBytes(text)) : text;
  };
}

function toBytes(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}
