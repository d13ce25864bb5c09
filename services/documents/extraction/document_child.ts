/** Reads documents other than PDF in the sandbox. */
import { serveSandbox } from "../../platform/sandbox/child.ts";
import type { DocumentType, ExtractionOrder } from "./extraction.ts";
import { extractDocx } from "./docx.ts";
import { type Extractor, runExtraction } from "./extraction_job.ts";
import { extractEpub, extractHtml } from "./html_text.ts";
import { extractMail } from "./mail.ts";
import { extractNotebook } from "./notebook.ts";
import { extractOpenDocument } from "./open_document.ts";
import { extractOutlookMessage } from "./outlook_message.ts";
import { extractText } from "./plain_text.ts";
import { extractPptx } from "./pptx.ts";
import { extractRtf } from "./rtf.ts";
import { extractSubtitles } from "./subtitles.ts";
import { extractXlsx } from "./xlsx.ts";

function chooseExtractor(contentType: DocumentType | string): Extractor {
  switch (contentType) {
    case "application/epub+zip":
      return extractEpub;
    case "text/html":
      return extractHtml;
    case "message/rfc822":
    case "multipart/related":
      return extractMail;
    case "application/vnd.ms-outlook":
      return extractOutlookMessage;
    case "application/x-ipynb+json":
      return extractNotebook;
    case "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":
      return extractXlsx;
    case "application/vnd.openxmlformats-officedocument.presentationml.presentation":
      return extractPptx;
    case "application/vnd.oasis.opendocument.text":
    case "application/vnd.oasis.opendocument.spreadsheet":
    case "application/vnd.oasis.opendocument.presentation":
      return extractOpenDocument;
    case "application/rtf":
      return extractRtf;
    case "application/x-subrip":
    case "text/vtt":
      return extractSubtitles;
    case "text/plain":
    case "text/markdown":
    case "text/csv":
      return extractText;
    default:
      return extractDocx;
  }
}

await serveSandbox("document_child", {
  run(value, _bytes, host) {
    const order = value as ExtractionOrder;
    return runExtraction(order, host, chooseExtractor(order.contentType));
  },
});
