/** Reads documents other than PDF in the sandbox. */
import { serveSandbox } from "../../platform/sandbox/child.ts";
import type { DocumentType, ExtractionOrder } from "./extraction.ts";
import { extractDocx } from "./docx.ts";
import { type Extractor, runExtraction } from "./extraction_job.ts";
import { extractEpub, extractHtml } from "./html_text.ts";
import { extractMail } from "./mail.ts";
import { extractNotebook } from "./notebook.ts";
import { extractText } from "./plain_text.ts";

function chooseExtractor(contentType: DocumentType | string): Extractor {
  switch (contentType) {
    case "application/epub+zip":
      return extractEpub;
    case "text/html":
      return extractHtml;
    case "message/rfc822":
    case "multipart/related":
      return extractMail;
    case "application/x-ipynb+json":
      return extractNotebook;
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
