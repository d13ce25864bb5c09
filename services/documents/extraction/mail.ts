/** Extracts mail (EML) and saved pages (MHTML), which are MIME messages. */
import PostalMime from "postal-mime";
import { type ExtractionInput, type PageSink, type TextBlock, toSections } from "./extraction.ts";
import { convertHtml, noteLosses } from "./html_text.ts";

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
 * Extracts the header and the text of a message. Of a saved page, the page.
 *
 * @see RFC 5322, RFC 2045, and RFC 2557 (MHTML)
 */
export async function extractMail({ bytes, contentType }: ExtractionInput, sink: PageSink): Promise<void> {
  const mail = await PostalMime.parse(bytes, { maxNestingDepth: 100, maxHeadersSize: 1024 * 1024 });
  const isPage = contentType === "multipart/related";
  const header = [
    ["Subject", mail.subject ?? ""],
    ["From", formatAddresses(mail.from && [mail.from])],
    ["To", formatAddresses(mail.to)],
    ["Cc", formatAddresses(mail.cc)],
    ["Date", mail.date ?? ""],
  ].filter(([, value]) => value !== "").map(([name, value]) => `${name}: ${value}`).join("\n");
  const html = mail.html === undefined ? undefined : convertHtml(mail.html);
  const isHtml = html !== undefined && (isPage || !mail.text?.trim());
  if (isHtml) noteLosses(html, sink);
  for (const { filename, mimeType, related, disposition } of mail.attachments) {
    const name = filename ?? mimeType;
    // The images of an HTML text are already counted by their tags.
    if (/^image\//.test(mimeType) && (related || disposition === "inline")) {
      if (!isHtml) sink.note("image", { example: name });
    } else sink.note("embedded", { example: name });
  }
  const text: TextBlock[] = isHtml
    ? html.blocks
    : (mail.text ?? "").split(/\n{2,}/).map((text) => ({ text: text.trim() }));
  sink.begin({ unit: "section", total: 0, ...(html?.title && { title: html.title }) });
  for (const section of toSections([...(isPage ? [] : [{ text: header }]), ...text])) await sink.add(section);
}
