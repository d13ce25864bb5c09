/** Reads large preset files in the sandbox. */
import { serveSandbox } from "../platform/sandbox/child.ts";
import { runDocumentJob } from "../platform/sandbox/document_job.ts";
import { parsePresetFile } from "./sillytavern.ts";

await serveSandbox("preset_child", {
  run: (_, [bytes]) =>
    runDocumentJob("preset", () => {
      const { preset, name } = parsePresetFile(bytes!);
      return { document: { ...preset }, value: { name } };
    }),
});
