/** Image backends, image generation and ComfyUI workflows. */
import { createRoute, z } from "@hono/zod-openapi";
import {
  BACKEND_KINDS,
  type BackendProfile,
  type BackendProfileInput,
  type ImageSettings,
} from "../../services/image_generation/backend_profiles.ts";
import { type GalleryImage, MAX_PROMPT_CHARS } from "../../services/image_generation/image_gallery.ts";
import type { WorkflowEntry } from "../../services/image_generation/comfyui/workflows.ts";
import type { DetectedBackend } from "../../services/image_generation/backend.ts";
import type { BackendTestResult } from "../../services/image_generation/image_generator.ts";
import type { ImageJobRequest } from "../../services/image_generation/image_jobs.ts";
import { createAttachmentUrl } from "../../services/attachments/attachment_rows.ts";
import {
  ApiKey,
  BINARY,
  ERRORS,
  eventStream,
  Id,
  IdParams,
  IfMatch,
  json,
  jsonBody,
  Time,
  Unreadable,
} from "./common.ts";
import { createRestoreVersionRoute, createVersionRoute, createVersionsRoute, VersionNumber } from "./versions.ts";

const Kind = z.enum(BACKEND_KINDS);
const Name = z.string().max(500);
const Prompt = z.string().max(MAX_PROMPT_CHARS);
const Pixels = z.number().int().min(16).max(8192);

/** Settings of image generation, with the same names in a profile's defaults and in a request. */
const Settings = z.object({
  negative_prompt: Prompt.nullish(),
  width: Pixels.nullish(),
  height: Pixels.nullish(),
  steps: z.number().int().min(1).max(1000).nullish(),
  cfg_scale: z.number().min(0).max(100).nullish(),
  sampler: Name.nullish(),
  scheduler: Name.nullish(),
  seed: z.number().int().min(-1).max(Number.MAX_SAFE_INTEGER).nullish().openapi({ description: "-1 for a random one" }),
});

const ProfileBody = z.object({
  id: Id.optional(),
  name: z.string().max(200).nullish(),
  kind: Kind.optional().openapi({ description: "Required for a new profile, as is base_url" }),
  base_url: z.string().min(1).max(2000).optional(),
  checkpoint: Name.nullish(),
  workflow_id: Id.nullish(),
  defaults: Settings.nullish(),
  api_key: ApiKey.nullish().openapi({
    description: "A bearer token, or user:password for A1111; if absent, the stored key is kept; null deletes it",
  }),
}).openapi("ImageProfileInput", {
  description: "For a saved backend, omitted fields keep their value; null clears a field",
});

const ProfileResponse = z.object({
  id: Id,
  name: z.string(),
  kind: Kind,
  base_url: z.string(),
  checkpoint: z.string().optional(),
  workflow_id: z.string().optional(),
  defaults: Settings,
  has_key: z.boolean(),
  active: z.boolean(),
  unreadable: z.boolean().optional(),
  created_at: Time,
  updated_at: Time,
}).openapi("ImageProfile");

const TestResult = z.object({ reachable: z.boolean(), error: z.string().optional() }).openapi("ImageVerdict");

/** A backend that was detected. */
export const FoundImages = z.object({
  kind: Kind,
  base_url: z.string(),
  hint: z.enum(["api_off", "login"]).optional().openapi({ description: "Why it can't be used in its current state" }),
}).openapi("FoundImageBackend");

const Detection = z.object({
  reachable: z.boolean().openapi({ description: "Whether anything responds at the address" }),
  kind: Kind.optional().openapi({ description: "Absent if the server is of neither kind" }),
  hint: FoundImages.shape.hint,
}).openapi("ImageBackendDetection");

const GenerateBody = Settings.extend({
  prompt: Prompt.refine((text) => text.trim() !== "", "a prompt is required"),
  checkpoint: Name.nullish(),
  workflow_id: Id.nullish(),
  profile_id: Id.nullish().openapi({ description: "ID of a backend to use instead of the active one" }),
  init_image: z.string().max(32 * 1024 * 1024).nullish().openapi({
    description: "Name of an attachment, or a data URL",
  }),
  character_id: Id.nullish(),
  conversation_id: Id.nullish(),
  message_id: Id.nullish().openapi({ description: "The image is attached to this message; by default the last one" }),
}).openapi("GenerateImage");

const Generated = z.object({
  images: z.array(z.object({
    name: z.string(),
    url: z.string(),
    width: z.number().int(),
    height: z.number().int(),
    seed: z.number(),
  })),
  profile_id: z.string(),
  took_ms: z.number(),
  message_id: z.string().optional(),
  warnings: z.array(z.string()).optional(),
}).openapi("GeneratedImages");

/** Converts what a client sent to the type of the service. */
export function toBackendInput(body: z.infer<typeof ProfileBody>): BackendProfileInput {
  const { id, name, kind, base_url: baseUrl, checkpoint, workflow_id: workflowId, api_key: apiKey } = body;
  const defaults = body.defaults === undefined ? undefined : toImageSettings(body.defaults ?? {});
  return { id, name, kind, baseUrl, checkpoint, workflowId, apiKey, defaults };
}

/** Converts a request for an image to the type of the service. */
export function toImageJobRequest(body: z.infer<typeof GenerateBody>): ImageJobRequest {
  return {
    ...toImageSettings(body),
    prompt: body.prompt,
    checkpoint: body.checkpoint ?? undefined,
    workflowId: body.workflow_id ?? undefined,
    profileId: body.profile_id ?? undefined,
    initImage: body.init_image ?? undefined,
    characterId: body.character_id ?? undefined,
    conversationId: body.conversation_id ?? undefined,
    messageId: body.message_id ?? undefined,
  };
}

function toImageSettings(settings: z.infer<typeof Settings>): ImageSettings {
  return {
    negativePrompt: settings.negative_prompt ?? undefined,
    widthPx: settings.width ?? undefined,
    heightPx: settings.height ?? undefined,
    steps: settings.steps ?? undefined,
    cfgScale: settings.cfg_scale ?? undefined,
    sampler: settings.sampler ?? undefined,
    scheduler: settings.scheduler ?? undefined,
    seed: settings.seed ?? undefined,
  };
}

function toSettingsJson(settings: ImageSettings): z.infer<typeof Settings> {
  return {
    negative_prompt: settings.negativePrompt,
    width: settings.widthPx,
    height: settings.heightPx,
    steps: settings.steps,
    cfg_scale: settings.cfgScale,
    sampler: settings.sampler,
    scheduler: settings.scheduler,
    seed: settings.seed,
  };
}

/** Converts a profile to its JSON form. */
export function toBackendJson(profile: BackendProfile): z.infer<typeof ProfileResponse> {
  const { id, name, kind, checkpoint, defaults } = profile;
  return {
    id,
    name,
    kind,
    checkpoint,
    base_url: profile.baseUrl,
    workflow_id: profile.workflowId,
    defaults: toSettingsJson(defaults),
    has_key: profile.hasKey,
    active: profile.isActive,
    unreadable: profile.isUnreadable,
    created_at: new Date(profile.createdAtMs).toISOString(),
    updated_at: new Date(profile.updatedAtMs).toISOString(),
  };
}

/** Converts a test result to its JSON form. */
export function toBackendTestJson({ isReachable, error }: BackendTestResult): z.infer<typeof TestResult> {
  return { reachable: isReachable, error };
}

/** Converts a found backend to its JSON form. */
export function toDiscoveredBackendJson({ kind, baseUrl, hint }: DetectedBackend): z.infer<typeof FoundImages> {
  return { kind, base_url: baseUrl, hint };
}

const path = "/api/image/connections";
const tags = ["Images"];

/** All profiles. */
export const listBackendsRoute = createRoute({
  method: "get",
  path,
  tags,
  summary: "List image backends, without their keys",
  responses: { 200: json(z.array(ProfileResponse), "The profiles, newest first"), ...ERRORS },
});

/** Create or update a profile. */
export const putBackendRoute = createRoute({
  method: "put",
  path,
  tags,
  summary: "Create or update an image backend",
  request: { headers: IfMatch, body: jsonBody(ProfileBody) },
  responses: { 200: json(ProfileResponse, "Saved"), 201: json(ProfileResponse, "Created"), ...ERRORS },
});

/** Delete a profile. */
export const deleteBackendRoute = createRoute({
  method: "delete",
  path: `${path}/{id}`,
  tags,
  summary: "Delete an image backend",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** Choose a profile. */
export const activateBackendRoute = createRoute({
  method: "post",
  path: `${path}/{id}/activate`,
  tags,
  summary: "Make an image backend the active one",
  request: { params: IdParams },
  responses: { 200: json(ProfileResponse, "The profile"), ...ERRORS },
});

/** Test a profile before it is saved. */
export const testBackendRoute = createRoute({
  method: "post",
  path: `${path}/test`,
  tags,
  summary:
    "Test whether an unsaved image backend can be used; with the ID of a saved one, its key is used for the same origin",
  request: { body: jsonBody(ProfileBody) },
  responses: { 200: json(TestResult, "The result of the test"), ...ERRORS },
});

/** Look for running backends. */
export const discoverBackendsRoute = createRoute({
  method: "post",
  path: "/api/image/discover",
  tags,
  summary: "Probe the configured hosts (this machine) for both kinds of image backends on ports 7860 and 8188",
  responses: { 200: json(z.array(FoundImages), "The backends found"), ...ERRORS },
});

/** Detect the kind of a server. */
export const detectBackendRoute = createRoute({
  method: "post",
  path: "/api/image/detect",
  tags,
  summary: "Detect the kind of the image server at a URL; no key is sent",
  request: { body: jsonBody(z.object({ base_url: z.string().min(1).max(2000) })) },
  responses: { 200: json(Detection, "The result of the detection"), ...ERRORS },
});

const Checkpoint = z.object({ name: z.string(), title: z.string() });

/** Checkpoints of a backend. */
export const checkpointsRoute = createRoute({
  method: "get",
  path: `${path}/{id}/checkpoints`,
  tags,
  summary: "List the checkpoints of a backend",
  request: { params: IdParams },
  responses: {
    200: json(z.array(Checkpoint), "The checkpoints as the server lists them"),
    ...ERRORS,
  },
});

/** Generate. */
export const generateRoute = createRoute({
  method: "post",
  path: "/api/image/generate",
  tags,
  summary: "Generate an image with the active backend; with Accept: text/event-stream, progress is streamed",
  request: { body: jsonBody(GenerateBody) },
  responses: {
    200: {
      description: "The stored images; as events: job {id}, progress {progress, step?, steps?, preview?}, then done " +
        "(the JSON response) or error. X-Parlor-Job-Id names the job, which continues if the client disconnects",
      content: { "application/json": { schema: Generated }, ...eventStream("JSON of the event") },
    },
    ...ERRORS,
  },
});

const Listed = z.object({
  id: Id,
  name: z.string().openapi({ description: "Name of the attachment" }),
  url: z.string(),
  width: z.number().int(),
  height: z.number().int(),
  size_bytes: z.number().int(),
  prompt: z.string(),
  settings: Settings.openapi({ description: "All settings that were sent, including the backend's defaults" }),
  checkpoint: z.string().optional(),
  workflow_id: z.string().optional(),
  profile_id: z.string().optional().openapi({ description: "Absent for a picture of a chat model" }),
  origin: z.literal("model").optional().openapi({
    description: "Present if a chat model returned the picture. `prompt` is then the message that it answers.",
  }),
  model: z.string().optional().openapi({ description: "The chat model" }),
  connection_id: z.string().optional().openapi({ description: "The connection of the chat model" }),
  init_image: z.string().optional(),
  character_id: z.string().optional(),
  conversation_id: z.string().optional().openapi({ description: "Absent if no message contains the image" }),
  message_id: z.string().optional(),
  created_at: Time,
  error: Unreadable.optional().openapi({ description: "Prompt and settings can't be decrypted and are empty" }),
}).openapi("GalleryImage");

/** Converts an image of the gallery to its JSON form. */
export function toGalleryJson(image: GalleryImage): z.infer<typeof Listed> {
  return {
    id: image.id,
    name: image.name,
    url: createAttachmentUrl(image.name),
    width: image.imageWidthPx,
    height: image.imageHeightPx,
    size_bytes: image.sizeBytes,
    prompt: image.prompt,
    settings: toSettingsJson(image),
    checkpoint: image.checkpoint,
    workflow_id: image.workflowId,
    profile_id: image.profileId,
    origin: image.chatModel && "model",
    model: image.chatModel?.model,
    connection_id: image.chatModel?.connectionId,
    init_image: image.initImage,
    character_id: image.characterId,
    conversation_id: image.conversationId,
    message_id: image.messageId,
    created_at: new Date(image.createdAtMs).toISOString(),
    error: image.isUnreadable && { code: "unreadable" },
  };
}

const galleryPath = "/api/image/gallery";

/** All generated images. */
export const galleryRoute = createRoute({
  method: "get",
  path: galleryPath,
  tags,
  summary: "List generated images with their prompts and settings, newest first",
  request: {
    query: z.object({
      cursor: Id.optional(),
      limit: z.coerce.number().int().min(1).max(200).default(50),
      attachment: z.string().max(128).optional().openapi({ description: "Only the image with this name" }),
      q: z.string().max(500).optional().openapi({ description: "Only images whose prompt has this text" }),
      conversation_id: Id.optional().openapi({ description: "Only the images of this chat" }),
    }),
  },
  responses: {
    200: json(
      z.object({ items: z.array(Listed), next_cursor: z.string().nullable() }).openapi("GalleryPage"),
      "A page, which may be shorter than the limit. Images of deleted chats are omitted",
    ),
    ...ERRORS,
  },
});

/** One, small. */
export const thumbnailRoute = createRoute({
  method: "get",
  path: `${galleryPath}/{id}/thumbnail`,
  tags,
  summary: "Get a small version of a generated image, at most 384 pixels wide and high",
  request: { params: IdParams },
  responses: {
    200: { description: "The image", content: { "image/jpeg": { schema: z.string().openapi(BINARY) } } },
    ...ERRORS,
  },
});

/** Delete one. */
export const deleteImageRoute = createRoute({
  method: "delete",
  path: `${galleryPath}/{id}`,
  tags,
  summary: "Delete a generated image and remove it from its message",
  request: { params: IdParams },
  responses: { 204: { description: "Deleted" }, ...ERRORS },
});

/** A generated image with its settings. */
export type GalleryImageJson = z.output<typeof Listed>;

const encoder = new TextEncoder();

/** Creates one event of an image's stream. */
export function toImageFrame(event: "job" | "progress" | "done" | "error", data: unknown): Uint8Array<ArrayBuffer> {
  return encoder.encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** An image backend; its key never leaves the server. */
export type ImageBackendJson = z.output<typeof ProfileResponse>;

/** An image backend to save or to test. */
export type ImageBackendInputJson = z.input<typeof ProfileBody>;

/** The result of a backend test. */
export type ImageBackendTestJson = z.output<typeof TestResult>;

/** An image backend that was detected. */
export type DetectedBackendJson = z.output<typeof FoundImages>;

/** The kind of server that responds at an address. */
export type BackendDetectionJson = z.output<typeof Detection>;

/** A checkpoint of a backend. */
export type CheckpointJson = z.output<typeof Checkpoint>;

/** The body that starts the generation of an image. */
export type GenerateImageJson = z.input<typeof GenerateBody>;

/** The generated images. */
export type GeneratedImagesJson = z.output<typeof Generated>;

const Workflow = z.record(z.string(), z.unknown()).openapi("Workflow", {
  description: "Nodes by ID, in ComfyUI's API format",
});

const WorkflowListed = z.object({
  id: Id,
  name: z.string(),
  updated_at: Time.optional(),
  placeholders: z.array(z.string()),
  problem: z.string().optional().openapi({ description: "Why it can't be used" }),
  builtin: z.boolean().optional(),
}).openapi("WorkflowListed");

/** Converts an entry of the list of workflows to its JSON form. */
export function toWorkflowJson(entry: WorkflowEntry): z.infer<typeof WorkflowListed> {
  const { id, name, updatedAtMs, placeholders, problem } = entry;
  if (updatedAtMs === undefined) return { id, name, placeholders, problem, builtin: true };
  return { id, name, placeholders, problem, updated_at: new Date(updatedAtMs).toISOString() };
}

const workflowsPath = "/api/image/workflows";

/** All workflows. */
export const workflowsRoute = createRoute({
  method: "get",
  path: workflowsPath,
  tags,
  summary: "List the workflows in <datadir>/workflows and the built-in one",
  responses: { 200: json(z.array(WorkflowListed), "By name"), ...ERRORS },
});

/** One workflow. */
export const workflowRoute = createRoute({
  method: "get",
  path: `${workflowsPath}/{id}`,
  tags,
  summary: "Get a workflow",
  request: { params: IdParams },
  responses: { 200: json(Workflow, "The workflow; the ETag is its version"), ...ERRORS },
});

/** Save a workflow. */
export const putWorkflowRoute = createRoute({
  method: "put",
  path: `${workflowsPath}/{id}`,
  tags,
  summary: "Save a workflow in ComfyUI's API format",
  request: { params: IdParams, headers: IfMatch, body: jsonBody(z.unknown()) },
  responses: { 200: json(Workflow, "Saved"), 201: json(Workflow, "Created"), ...ERRORS },
});

/** Remove a workflow. */
export const deleteWorkflowRoute = createRoute({
  method: "delete",
  path: `${workflowsPath}/{id}`,
  tags,
  summary: "Move a workflow to the trash",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

const versioned = {
  path: `${workflowsPath}/{id}`,
  what: "a workflow",
  tags,
  params: IdParams,
  numbered: IdParams.extend({ n: VersionNumber }),
  response: Workflow,
};

/** Earlier versions. */
export const workflowVersionsRoute = createVersionsRoute(versioned);

/** One of them. */
export const workflowVersionRoute = createVersionRoute(versioned, Workflow);

/** Restore one. */
export const restoreWorkflowVersionRoute = createRestoreVersionRoute(versioned);

/** A ComfyUI workflow in the list. */
export type WorkflowJson = z.output<typeof WorkflowListed>;
