/** Extracts mail (EML) and saved pages (MHTML), which are MIME messages. */
import PostalMime from "postal-mime";
import { type ExtractionInput, type PageSink, type TextBlock, toSections } from "./extraction.ts";
import { convertHtml, countCharacters, noteLosses } from "./html_text.ts";
import { decode } from "./encoding.ts";
import { countMatches } from "./text_encodings.ts";

interface Address {
  name?: string;
  address?: string;
  group?: Address[];
}

function formatAddresses(addresses: readonly Address[] = []): string {
  return addresses.flatMap(({ name = "", address = "", group }): string[] => {
    if (group) return [`${name}: ${formatAddresses(group)}`];
    return [name === "" || name === address ? address : `${name} <${address}>`];
  }).filter((text) => text !== "").join(", ");
}

/**
 * Returns a message whose text is in UTF-8 if it has bytes beyond ASCII and names no encoding that is known, as old
 * programs write it.
 */
function withCharset(
  bytes: Uint8Array<ArrayBuffer>,
  languages: readonly string[] | undefined,
  sink: PageSink,
): Uint8Array<ArrayBuffer> {
  if (!bytes.some((byte) => byte > 127)) return bytes;
  const source = new TextDecoder("latin1").decode(bytes);
  const charsets = Array.from(source.matchAll(CHARSET), ([, name]) => name!);
  if (charsets.some(isEncoding)) return bytes;
  const { text, encoding, found } = decode(bytes, { languages });
  if (found === "unsure") sink.note("encoding_unsure", { example: encoding });
  else if (found === "guessed") sink.note("encoding", { example: encoding });
  return new TextEncoder().encode(text.replace(CHARSET, "charset=utf-8"));
}

const CHARSET = /\bcharset\s*=\s*"?([\w.:-]{2,40})"?/gi;

function isEncoding(label: string): boolean {
  try {
    return new TextDecoder(label) !== undefined;
  } catch {
    return false;
  }
}

/**
 * Extracts the header and the text of a message. Of a saved page, the page.
 *
 * @see RFC 5322, RFC 2045, and RFC 2557 (MHTML)
 */
export async function extractMail(
  { bytes, contentType, languages }: ExtractionInput,
  sink: PageSink,
): Promise<void> {
  const mail = await PostalMime.parse(withCharset(bytes, languages, sink), {
    maxNestingDepth: 100,
    maxHeadersSize: 1024 * 1024,
  });
  const isPage = contentType === "multipart/related";
  const header = [
    ["Subject", mail.subject ?? ""],
    ["From", formatAddresses(mail.from && [mail.from])],
    ["To", formatAddresses(mail.to)],
    ["Cc", formatAddresses(mail.cc)],
    ["Date", mail.date ?? ""],
  ].filter(([, value]) => value !== "").map(([name, value]) => `${name}: ${value}`).join("\n");
  const html = mail.html === undefined ? undefined : convertHtml(mail.html, { isPage });
  const plainLength = mail.text?.trim().length ?? 0;
  // Some programs write into the plain text only that there is another one.
  const isStub = html !== undefined && countCharacters(html) > 200 + 4 * plainLength;
  const isHtml = html !== undefined && (isPage || plainLength === 0 || isStub);
  const shown = `${mail.subject ?? ""}${isHtml ? mail.html : mail.text ?? ""}`;
  sink.note("undecodable", { count: countMatches(shown, /\ufffd/g) });
  if (isHtml) noteLosses(html, sink);
  for (const { filename, mimeType, related, disposition } of mail.attachments) {
    const name = filename ?? mimeType;
    // The images of an HTML text are already counted by their tags.
    if (/^image\//.test(mimeType) && (related || disposition === "inline")) {
      if (!isHtml) sink.note("image", { example: name });
    } else sink.note("embedded", { example: name });
  }
  let plain = mail.text ?? "";
  if (plainLength === 0 && html === undefined && mail.attachments.length === 0) {
    // Its parts can't be told apart.
    plain = /\r?\n\r?\n([^]*)/.exec(decode(bytes, { languages }).text)?.[1] ?? "";
    if (plain.trim() !== "") sink.note("missing", { example: "boundary" });
  }
  const text: TextBlock[] = isHtml ? html.blocks : plain.split(/\n{2,}/).map((text) => ({ text: text.trim() }));
  sink.begin({ unit: "section", total: 0, ...(html?.title && { title: html.title }) });
  for (const section of toSections([...(isPage ? [] : [{ text: header }]), ...text])) await sink.add(section);
}
