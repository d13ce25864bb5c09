/** Reads PDF files in the sandbox. */
import { loadCodec } from "../../attachments/images/image_codecs.ts";
import { serveSandbox } from "../../platform/sandbox/child.ts";
import type { ExtractionOrder } from "./extraction.ts";
import { runExtraction } from "./extraction_job.ts";
import { drawPageImages, extractPdf, loadPdfAssets } from "./pdf.ts";

await serveSandbox("pdf_child", {
  load: () => Promise.all([loadCodec("jpeg"), loadPdfAssets()]),
  run: (value, _bytes, host) =>
    runExtraction(
      value as ExtractionOrder,
      host,
      (input, sink) =>
        input.imagePage === undefined ? extractPdf(input, sink) : drawPageImages(input.bytes, input.imagePage),
    ),
});
