/** Models on the hub and on disk, downloads, and the local model server. */
import { createRoute, z } from "@hono/zod-openapi";
import type { Download } from "../../services/models/downloads/downloads.ts";
import type { FoundRepo } from "../../services/models/hub.ts";
import type { LocalModel } from "../../services/models/local/local_models.ts";
import type { Machine, RecommendedModel, RepoListing } from "../../services/models/models.ts";
import type { RunnerStatus, RunRequest } from "../../services/models/runner/runner.ts";
import { ERRORS, IdParams, json, jsonBody, Time } from "./common.ts";

const Format = z.enum(["gguf", "mlx"]);
const Role = z.enum(["model", "mmproj", "other"]);
const Repo = z.string().min(1).max(200).openapi({ example: "owner/name" });
const Path = z.string().min(1).max(1024);
const tags = ["Models"];

const Found = z.object({
  repo: z.string(),
  downloads: z.number().int(),
  likes: z.number().int(),
  updated_at: Time.nullable(),
  gated: z.boolean(),
  license: z.string().nullable(),
  tags: z.array(z.string()),
}).openapi("HubModel");

const Listing = z.object({
  repo: z.string(),
  revision: z.string().openapi({ description: "The commit that a download would use" }),
  gated: z.boolean(),
  license: z.string().nullable(),
  url: z.string().openapi({ description: "Its page on the hub, where access can be requested" }),
  has_code: z.boolean().openapi({ description: "Contains code, which is never downloaded (MLX)" }),
  files: z.array(z.object({
    path: z.string().openapi({ description: "For a sharded model, the first shard" }),
    size_bytes: z.number().int(),
    sha256: z.string().optional(),
    quantization: z.string().optional(),
    shards: z.array(z.string()).optional(),
    role: Role,
  })),
}).openapi("HubModelFiles");

const DownloadResponse = z.object({
  id: z.string(),
  repo: z.string(),
  format: Format,
  file: z.string().optional().openapi({ description: "File to request in order to resume the download" }),
  revision: z.string(),
  files: z.array(z.object({
    path: z.string(),
    size_bytes: z.number().int(),
    received_bytes: z.number().int(),
    sha256: z.string().optional(),
  })),
  state: z.enum(["queued", "running", "verifying", "done", "failed", "cancelled"]),
  received_bytes: z.number().int(),
  total_bytes: z.number().int(),
  bytes_per_second: z.number(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  created_at: Time,
  updated_at: Time,
}).openapi("ModelDownload");

const Local = z.object({
  path: z.string(),
  repo: z.string().nullable(),
  format: Format,
  role: Role,
  size_bytes: z.number().int(),
  name: z.string().optional(),
  quantization: z.string().optional(),
  parameters: z.number().int().optional(),
  architecture: z.string().optional(),
  context_size: z.number().int().optional(),
  layers: z.number().int().optional(),
  chat_template: z.boolean().optional().openapi({
    description: "Whether the file has a chat template; base models have none and don't answer",
  }),
  modified_at: Time,
}).openapi("LocalModel");

const Recommended = z.object({
  memory_bytes: z.number().int().openapi({ description: "Memory of this machine" }),
  free_disk_bytes: z.number().int().openapi({ description: "Free space on the disk of the models folder" }),
  items: z.array(z.object({
    id: z.string(),
    name: z.string(),
    repo: z.string(),
    quantization: z.string().openapi({ description: "Quantization of the file to download" }),
    level: z.enum(["fast", "balanced", "best"]),
    size_bytes: z.number().int().openapi({ description: "Approximate; browse/files returns the exact size" }),
    memory_bytes: z.number().int().openapi({ description: "Memory needed while the model runs" }),
    tokens_per_second: z.number().openapi({ description: "A rough estimate for machines without a graphics card" }),
  })),
}).openapi("RecommendedModels");

/** Converts the recommended models to their JSON form. */
export function toRecommendedJson(
  { machine, items }: { machine: Machine; items: RecommendedModel[] },
): z.infer<typeof Recommended> {
  return {
    memory_bytes: machine.memoryBytes,
    free_disk_bytes: machine.freeDiskBytes,
    items: items.map(({ sizeBytes, memoryBytes, tokensPerSecond, ...same }) => ({
      ...same,
      size_bytes: Math.round(sizeBytes),
      memory_bytes: Math.round(memoryBytes),
      tokens_per_second: Math.round(tokensPerSecond * 10) / 10,
    })),
  };
}

/** Models to start with. */
export const recommendedRoute = createRoute({
  method: "get",
  path: "/api/models/recommended",
  tags,
  summary: "List up to three models to start with, which fit the memory and disk of this machine",
  responses: { 200: json(Recommended, "The models, the fastest first"), ...ERRORS },
});

/** Models to start with. */
export type RecommendedModelsJson = z.output<typeof Recommended>;

/** Converts a found repository to its JSON form. */
export function toFoundJson({ updatedAt, isGated, ...same }: FoundRepo): z.infer<typeof Found> {
  return { ...same, updated_at: updatedAt, gated: isGated };
}

/** Converts the files of a repository to their JSON form. */
export function toListingJson({ isGated, page, hasCode, files, ...same }: RepoListing): z.infer<typeof Listing> {
  return {
    ...same,
    gated: isGated,
    url: page,
    has_code: hasCode,
    files: files.map(({ sizeBytes, ...file }) => ({ ...file, size_bytes: sizeBytes })),
  };
}

/** Converts a download to its JSON form. */
export function toDownloadJson(download: Download): z.infer<typeof DownloadResponse> {
  const { id, state, error, progress, detail } = download;
  return {
    id,
    repo: detail?.repo ?? "",
    format: detail?.format ?? "gguf",
    file: detail?.file,
    revision: detail?.revision ?? "",
    files: (detail?.files ?? []).map(({ path, sha256, sizeBytes, receivedBytes }) => ({
      path,
      sha256,
      size_bytes: sizeBytes,
      received_bytes: receivedBytes,
    })),
    state,
    received_bytes: progress?.done ?? 0,
    total_bytes: progress?.total ?? 0,
    bytes_per_second: state === "running" ? detail?.bytesPerSecond ?? 0 : 0,
    error,
    created_at: new Date(download.createdAtMs).toISOString(),
    updated_at: new Date(download.updatedAtMs).toISOString(),
  };
}

/** Converts a model on disk to its JSON form. */
export function toLocalModelJson(model: LocalModel): z.infer<typeof Local> {
  const { sizeBytes, contextSize, hasChatTemplate, modifiedAtMs, files: _, ...same } = model;
  return {
    ...same,
    size_bytes: sizeBytes,
    context_size: contextSize,
    chat_template: hasChatTemplate,
    modified_at: new Date(modifiedAtMs).toISOString(),
  };
}

/** Search of the hub. */
export const browseRoute = createRoute({
  method: "get",
  path: "/api/models/browse",
  tags,
  summary: "Search the model hub",
  request: {
    query: z.object({
      q: z.string().max(200).default(""),
      format: Format.default("gguf"),
      cursor: z.string().max(4000).optional(),
    }),
  },
  responses: {
    200: json(
      z.object({ items: z.array(Found), next_cursor: z.string().nullable() }),
      "The repositories, most downloads first",
    ),
    ...ERRORS,
  },
});

/** Files of a repository. */
export const filesRoute = createRoute({
  method: "get",
  path: "/api/models/browse/files",
  tags,
  summary: "List candidate files in a repository: shards grouped, projectors separate",
  request: { query: z.object({ repo: Repo, format: Format.default("gguf") }) },
  responses: { 200: json(Listing, "The files at the latest commit"), ...ERRORS },
});

/** Start of a download. */
export const downloadRoute = createRoute({
  method: "post",
  path: "/api/models/download",
  tags,
  summary: "Start a download job, or return the running one for the same model",
  request: {
    body: jsonBody(z.object({
      repo: Repo,
      format: Format.default("gguf"),
      file: Path.nullish().openapi({ description: "For GGUF, any shard; MLX models are downloaded completely" }),
    })),
  },
  responses: { 202: json(DownloadResponse, "The job"), ...ERRORS },
});

/** All downloads. */
export const downloadsRoute = createRoute({
  method: "get",
  path: "/api/models/downloads",
  tags,
  summary: "List active and recent downloads with their progress in bytes",
  responses: { 200: json(z.array(DownloadResponse), "The downloads, newest first"), ...ERRORS },
});

/** Cancel a download. */
export const cancelRoute = createRoute({
  method: "post",
  path: "/api/models/downloads/{id}/cancel",
  tags,
  summary: "Cancel a download and delete its parts; 409 if it has ended or is being verified",
  request: { params: IdParams },
  responses: { 200: json(DownloadResponse, "The canceled job"), ...ERRORS },
});

/** Models on disk. */
export const localRoute = createRoute({
  method: "get",
  path: "/api/models/local",
  tags,
  summary: "List models on disk",
  responses: { 200: json(z.array(Local), "The models, sorted by path"), ...ERRORS },
});

/** Delete from disk. */
export const deleteLocalRoute = createRoute({
  method: "delete",
  path: "/api/models/local",
  tags,
  summary: "Stop and delete a model with all its shards, or delete the remains of a failed download",
  request: { query: z.object({ path: Path }) },
  responses: { 204: { description: "Deleted" }, ...ERRORS },
});

/** A repository of the model hub. */
export type HubModelJson = z.output<typeof Found>;

/** The files of a repository. */
export type HubModelFilesJson = z.output<typeof Listing>;

/** A download of a model. */
export type ModelDownloadJson = z.output<typeof DownloadResponse>;

/** A model on disk. */
export type LocalModelJson = z.output<typeof Local>;

const RunBody = z.object({
  path: Path.openapi({ description: "Path of a model on disk, as listed" }),
  context_size: z.number().int().min(256).max(10_000_000).nullish(),
  gpu_layers: z.number().int().min(0).max(10_000).nullish(),
  idle_minutes: z.number().int().min(0).max(10_080).nullish().openapi({ description: "0 never stops an idle model" }),
  activate: z.boolean().nullish().openapi({ description: "Make its connection the active one once it is ready" }),
});

const Status = z.object({
  state: z.enum(["stopped", "starting", "running", "failed"]),
  program: z.string().nullable().openapi({ description: "Path of llama-server; null if it wasn't found" }),
  advice: z.string().optional().openapi({ description: "How to install the program" }),
  command: z.string().optional().openapi({ description: "Command line that runs the requested model" }),
  connection_id: z.literal("local"),
  path: z.string().optional(),
  context_size: z.number().int().optional(),
  gpu_layers: z.number().int().optional(),
  idle_minutes: z.number().int().optional(),
  memory_bytes: z.number().int().optional(),
  started_at: Time.optional(),
  restarts: z.number().int(),
  error: z.string().optional(),
  log: z.array(z.string()).openapi({ description: "The last lines of its output, oldest first" }),
}).openapi("ModelRunner");

/** Converts a request to run to the type of the service. */
export function toRunRequest(body: z.infer<typeof RunBody>): RunRequest {
  return {
    path: body.path,
    contextSize: body.context_size ?? undefined,
    gpuLayers: body.gpu_layers ?? undefined,
    idleMinutes: body.idle_minutes ?? undefined,
  };
}

/** Converts the runner to its JSON form. */
export function toRunnerJson(status: RunnerStatus, command?: string): z.infer<typeof Status> {
  const { state, program, advice, settings, restarts, error, log, startedAtMs } = status;
  return {
    state,
    program,
    advice,
    command,
    restarts,
    error,
    connection_id: "local",
    path: settings?.path,
    context_size: settings?.contextSize,
    gpu_layers: settings?.gpuLayers,
    idle_minutes: settings?.idleMinutes,
    memory_bytes: status.memoryBytes,
    started_at: startedAtMs === undefined ? undefined : new Date(startedAtMs).toISOString(),
    log: [...log],
  };
}

/** Start. */
export const runRoute = createRoute({
  method: "post",
  path: "/api/models/local/run",
  tags,
  summary: "Run a model with llama.cpp's server, replacing the running one; 503 explains how to install the program",
  request: { body: jsonBody(RunBody) },
  responses: { 202: json(Status, "The starting model; each change sends an event of kind runner"), ...ERRORS },
});

/** Stop. */
export const stopRunnerRoute = createRoute({
  method: "post",
  path: "/api/models/local/stop",
  tags,
  summary: "Stop the running model",
  responses: { 200: json(Status, "Stopped"), ...ERRORS },
});

/** State. */
export const runnerRoute = createRoute({
  method: "get",
  path: "/api/models/local/runner",
  tags,
  summary: "Get the status of the running model, with the last lines of its log",
  request: {
    query: z.object({ path: Path.optional().openapi({ description: "Also returns the command for this model" }) }),
  },
  responses: { 200: json(Status, "The state"), ...ERRORS },
});

/** The body that starts a local model. */
export type RunModelJson = z.input<typeof RunBody>;

/** The state of the local model. */
export type ModelRunnerJson = z.output<typeof Status>;
