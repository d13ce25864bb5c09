/** Reads large presets in the sandbox: files, and bodies of requests. */
import { serveSandbox } from "../platform/sandbox/child.ts";
import { runBodyJob, runDocumentJob } from "../platform/sandbox/document_job.ts";
import { parsePresetFile, readPresetBody } from "./sillytavern.ts";

await serveSandbox("preset_child", {
  run: (value, [bytes]) => {
    if (value === "body") {
      return runBodyJob("preset", bytes!, { read: (json) => ({ document: readPresetBody(json), value: {} }) });
    }
    return runDocumentJob("preset", () => {
      const { preset, name } = parsePresetFile(bytes!);
      return { document: { ...preset }, value: { name } };
    });
  },
});
