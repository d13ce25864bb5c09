/** Reads large lorebooks in the sandbox: files, and bodies of requests. */
import type { JsonObject } from "../json/type_guards.ts";
import { serveSandbox } from "../platform/sandbox/child.ts";
import { runBodyJob, runDocumentJob, summarizeBody } from "../platform/sandbox/document_job.ts";
import {
  BOOK_BODY_FIELDS,
  type BookBody,
  type ParsedLorebook,
  parseLorebook,
  parseLorebookFile,
} from "./lorebook_file.ts";

await serveSandbox("lorebook_child", {
  run: (value, [bytes]) => {
    const kind = value as BookBody | undefined;
    if (kind === undefined) return runDocumentJob("lorebook", () => toDocument(parseLorebookFile(bytes!)));
    return runBodyJob("lorebook", bytes!, {
      summarize: (json) => summarizeBody(json, BOOK_BODY_FIELDS[kind]),
      read(json) {
        // A body to save may be the book itself. One to test may name a stored book.
        const book = json.book ?? (kind === "saved" ? json : undefined);
        return book === undefined ? { document: {}, value: {} } : toDocument(parseLorebook(book));
      },
    });
  },
});

function toDocument({ book, name }: ParsedLorebook) {
  return { document: book as JsonObject, value: { name, hasBook: true } };
}
