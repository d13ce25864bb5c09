/** `/api/image`: image backends, generated images, and ComfyUI workflows. */
import type { Services } from "../services/services.ts";
import { type AppContext, getClientSignal } from "../middleware/env.ts";
import { AppError } from "../services/errors.ts";
import { detectBackendAt, detectBackends } from "../services/image_generation/backend.ts";
import type { ImageJobs } from "../services/image_generation/image_jobs.ts";
import { toDataUrl } from "../services/attachments/images/image_header.ts";
import { createErrorBody } from "./errors.ts";
import { formatEtag, parsePrecondition } from "./http/etag.ts";
import { createEventStream, EVENT_STREAM_HEADERS, type FrameSource } from "./http/event_stream.ts";
import { passRawResponse } from "./http/raw_response.ts";
import { createRouter } from "./http/router.ts";
import * as schema from "./schemas/images.ts";
import { toVersionJson } from "./schemas/versions.ts";

/** Routes of images. `discover` probes hosts from the configuration, never hosts that a client chooses. */
export function imageRoutes(services: Services) {
  return createRouter()
    .openapi(schema.listBackendsRoute, async (c) => {
      const { profiles } = await services.imageGeneration();
      return c.json(profiles.list().map(schema.toBackendJson), 200);
    })
    .openapi(schema.putBackendRoute, async (c) => {
      const { profiles } = await services.imageGeneration();
      const expected = parsePrecondition(c.req.valid("header"));
      const { profile, isNew } = await profiles.put(schema.toBackendInput(c.req.valid("json")), {
        expectedVersion: expected,
      });
      c.header("ETag", formatEtag(profile.version));
      return isNew ? c.json(schema.toBackendJson(profile), 201) : c.json(schema.toBackendJson(profile), 200);
    })
    .openapi(schema.deleteBackendRoute, async (c) => {
      const { profiles } = await services.imageGeneration();
      await profiles.remove(c.req.valid("param").id, parsePrecondition(c.req.valid("header")));
      return c.body(null, 204);
    })
    .openapi(schema.activateBackendRoute, async (c) => {
      const { profiles } = await services.imageGeneration();
      return c.json(schema.toBackendJson(await profiles.activate(c.req.valid("param").id)), 200);
    })
    .openapi(schema.testBackendRoute, async (c) => {
      const { generator } = await services.imageGeneration();
      const result = await generator.test(schema.toBackendInput(c.req.valid("json")), getClientSignal(c));
      return c.json(schema.toBackendTestJson(result), 200);
    })
    .openapi(schema.discoverBackendsRoute, async (c) => {
      const found = await detectBackends({ hosts: services.config.discoverHosts, ownListeners: services.ownListeners });
      return c.json(found.map(schema.toDiscoveredBackendJson), 200);
    })
    .openapi(schema.detectBackendRoute, async (c) => {
      const { kind, hint, isReachable } = await detectBackendAt(c.req.valid("json").base_url, {
        ownListeners: services.ownListeners,
      });
      return c.json({ reachable: isReachable, kind, hint }, 200);
    })
    .openapi(schema.checkpointsRoute, async (c) => {
      const { generator } = await services.imageGeneration();
      return c.json(await generator.listCheckpoints(c.req.valid("param").id, getClientSignal(c)), 200);
    })
    .openapi(schema.generateRoute, async (c) => {
      const { imageJobs } = await services.imageGeneration();
      const job = await imageJobs.start(schema.toImageJobRequest(c.req.valid("json")));
      c.header("X-Parlor-Job-Id", job.id);
      if (!/\btext\/event-stream\b/i.test(c.req.header("accept") ?? "")) {
        return c.json(await rejectOnStop(c, imageJobs.waitForResult(job.id)), 200);
      }
      return passRawResponse(
        c.body(createEventStream(streamProgress(c, imageJobs, job.id)), 200, EVENT_STREAM_HEADERS),
      );
    })
    .openapi(schema.galleryRoute, async (c) => {
      const { gallery } = await services.imageGeneration();
      const { cursor: before, attachment: name, q: words, conversation_id: conversationId, limit } = c.req.valid(
        "query",
      );
      const { items, nextCursor } = await gallery.list({ before, name, words, conversationId, limit });
      return c.json({ items: items.map(schema.toGalleryJson), next_cursor: nextCursor ?? null }, 200);
    })
    .openapi(schema.thumbnailRoute, async (c) => {
      const { gallery } = await services.imageGeneration();
      const jpeg = await gallery.readThumbnail(c.req.valid("param").id);
      return passRawResponse(c.body(jpeg, 200, { "Content-Type": "image/jpeg" }));
    })
    .openapi(schema.deleteImageRoute, async (c) => {
      const { gallery } = await services.imageGeneration();
      await gallery.remove(c.req.valid("param").id);
      return c.body(null, 204);
    })
    .openapi(schema.workflowsRoute, async (c) => {
      const { workflows } = await services.imageGeneration();
      return c.json((await workflows.list()).map(schema.toWorkflowJson), 200);
    })
    .openapi(schema.workflowRoute, async (c) => {
      const { workflows } = await services.imageGeneration();
      const { workflow, version } = await workflows.get(c.req.valid("param").id);
      c.header("ETag", formatEtag(version));
      return c.json(workflow, 200);
    })
    .openapi(schema.putWorkflowRoute, async (c) => {
      const { workflows } = await services.imageGeneration();
      const expected = parsePrecondition(c.req.valid("header"));
      const saved = await workflows.put(c.req.valid("param").id, c.req.valid("json"), expected);
      c.header("ETag", formatEtag(saved.version));
      return saved.isNew ? c.json(saved.workflow, 201) : c.json(saved.workflow, 200);
    })
    .openapi(schema.workflowVersionsRoute, async (c) => {
      const { workflows } = await services.imageGeneration();
      return c.json((await workflows.listVersions(c.req.valid("param").id)).map(toVersionJson), 200);
    })
    .openapi(schema.workflowVersionRoute, async (c) => {
      const { workflows } = await services.imageGeneration();
      const { id, n } = c.req.valid("param");
      return c.json(await workflows.getVersion(id, n), 200);
    })
    .openapi(schema.restoreWorkflowVersionRoute, async (c) => {
      const { workflows } = await services.imageGeneration();
      const { id, n } = c.req.valid("param");
      const expected = parsePrecondition(c.req.valid("header"));
      const { workflow, version } = await workflows.restoreVersion(id, n, expected);
      c.header("ETag", formatEtag(version));
      return c.json(workflow, 200);
    })
    .openapi(schema.deleteWorkflowRoute, async (c) => {
      const { workflows } = await services.imageGeneration();
      await workflows.remove(c.req.valid("param").id, parsePrecondition(c.req.valid("header")));
      return c.body(null, 204);
    });
}

/** Rejects when the server shuts down, while the job continues after the next start. */
async function rejectOnStop<T>(c: AppContext, work: Promise<T>): Promise<T> {
  const { closing } = c.env;
  const stop = Promise.withResolvers<never>();
  const onStop = () =>
    stop.reject(
      new AppError("not_available", "Parlor is shutting down. The image will be generated after the next start"),
    );
  closing.addEventListener("abort", onStop, { once: true });
  if (closing.aborted) onStop();
  try {
    return await Promise.race([work, stop.promise]);
  } finally {
    closing.removeEventListener("abort", onStop);
    work.catch(() => {});
  }
}

/** Streams a job: its ID, its progress and its result. The job continues if the client disconnects. */
function streamProgress(c: AppContext, imageJobs: ImageJobs, jobId: string): FrameSource {
  const { requestId } = c.var;
  const steps = imageJobs.follow(jobId);
  const result = rejectOnStop(c, imageJobs.waitForResult(jobId)).then(
    (answer) => schema.toImageFrame("done", answer),
    (error) => schema.toImageFrame("error", createErrorBody(error, requestId)),
  );
  let state: "begin" | "progress" | "over" = "begin";
  return {
    async next() {
      if (state === "over") return undefined;
      if (state === "begin") {
        state = "progress";
        return schema.toImageFrame("job", { id: jobId });
      }
      const next = await Promise.race([steps.next(), result]);
      if (next instanceof Uint8Array || next.done) {
        state = "over";
        return next instanceof Uint8Array ? next : await result;
      }
      const { share: progress, step, steps: of, preview } = next.value;
      return schema.toImageFrame("progress", {
        progress,
        step,
        steps: of,
        preview: preview === undefined ? undefined : toDataUrl(preview),
      });
    },
    close: () => void steps.return(undefined),
  };
}
