/** Reads large lorebook files in the sandbox. */
import type { JsonObject } from "../json/type_guards.ts";
import { serveSandbox } from "../platform/sandbox/child.ts";
import { runDocumentJob } from "../platform/sandbox/document_job.ts";
import { parseLorebookFile } from "./lorebook_file.ts";

await serveSandbox("lorebook_child", {
  run: (_, [bytes]) =>
    runDocumentJob("lorebook", () => {
      const { book, name } = parseLorebookFile(bytes!);
      return { document: book as JsonObject, value: { name } };
    }),
});
