/** `/api/voices`: the library of voice samples. */
import type { VoiceImports } from "../services/speech/voice_import.ts";
import type { VoiceSamples } from "../services/speech/voice_samples.ts";
import { etag, preconditionOf } from "./http/etag.ts";
import { readUpload } from "./http/multipart.ts";
import { fileAnswer } from "./http/ranged_file.ts";
import { newRouter, schemaError } from "./http/router.ts";
import * as schema from "./schemas/speech.ts";
import { toVersionJson } from "./schemas/versions.ts";

/** What a browser may do with a file of a stranger's: play it. */
const PLAY_ONLY = { "Content-Security-Policy": "sandbox; default-src 'none'", "Content-Disposition": "attachment" };

/** Routes of voice samples. */
export function voiceRoutes(samples: VoiceSamples, imports: VoiceImports) {
  return newRouter()
    .openapi(schema.listSamplesRoute, (c) => c.json(samples.list().map(schema.toVoiceSampleJson), 200))
    .openapi(schema.uploadSampleRoute, async (c) => {
      const form = await readUpload(c, "audio");
      const name = checked(schema.SampleName, "name", form.text("name"));
      const description = checked(schema.SampleDescription, "description", form.text("description") ?? "");
      return c.json(schema.toVoiceSampleJson(await samples.add({ name, description, audio: form.file })), 201);
    })
    .openapi(schema.importSampleRoute, async (c) => {
      const { jobId, sample } = await imports.start(schema.toVoiceImportRequest(c.req.valid("json")));
      c.header("X-Parlor-Job-Id", jobId);
      return c.json(schema.toVoiceSampleJson(await sample), 201);
    })
    .openapi(schema.getSampleRoute, (c) => {
      const sample = samples.get(c.req.valid("param").id);
      c.header("ETag", etag(samples.versionOf(sample)));
      return c.json(schema.toVoiceSampleJson(sample), 200);
    })
    .openapi(schema.patchSampleRoute, async (c) => {
      const { name, description } = c.req.valid("json");
      const changes = { name, description: description === null ? "" : description };
      const sample = await samples.change(c.req.valid("param").id, changes);
      c.header("ETag", etag(samples.versionOf(sample)));
      return c.json(schema.toVoiceSampleJson(sample), 200);
    })
    .openapi(schema.sampleVersionsRoute, async (c) => {
      return c.json((await samples.versions(c.req.valid("param").id)).map(toVersionJson), 200);
    })
    .openapi(schema.sampleVersionRoute, async (c) => {
      const { id, n } = c.req.valid("param");
      return c.json(await samples.version(id, n), 200);
    })
    .openapi(schema.restoreSampleVersionRoute, async (c) => {
      const { id, n } = c.req.valid("param");
      const sample = await samples.restoreVersion(id, n, preconditionOf(c.req.valid("header")));
      c.header("ETag", etag(samples.versionOf(sample)));
      return c.json(schema.toVoiceSampleJson(sample), 200);
    })
    .openapi(schema.deleteSampleRoute, async (c) => {
      await samples.remove(c.req.valid("param").id);
      return c.body(null, 204);
    })
    .openapi(schema.sampleAudioRoute, async (c) => {
      const { sample, file } = await samples.open(c.req.valid("param").id);
      return await fileAnswer(file, {
        sizeBytes: sample.sizeBytes,
        version: `${sample.createdAtMs.toString(36)}-${sample.sizeBytes.toString(36)}`,
        asked: c.req.valid("header"),
        headers: { "Content-Type": sample.contentType, ...PLAY_ONLY },
      });
    });
}

/** Checks a part of a form as the router checks a body. */
function checked(
  field: typeof schema.SampleName | typeof schema.SampleDescription,
  name: string,
  value: string | undefined,
): string {
  const parsed = field.safeParse(value);
  if (parsed.success) return parsed.data;
  throw schemaError("form", parsed.error.issues.map((issue) => ({ ...issue, path: [name, ...issue.path] })));
}
