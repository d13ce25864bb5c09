/** The model that Parlor itself runs, on the wire. */
import { createRoute, z } from "@hono/zod-openapi";
import type { RunnerStatus, RunRequest } from "../../services/models/runner/runner_status.ts";
import { ERRORS, json, jsonBody, Time } from "./common.ts";

const Path = z.string().min(1).max(1024);

const RunBody = z.object({
  path: Path.openapi({ description: "Of a model on disk, as listed" }),
  context_size: z.number().int().min(256).max(10_000_000).nullish(),
  gpu_layers: z.number().int().min(0).max(10_000).nullish(),
  idle_minutes: z.number().int().min(0).max(10_080).nullish().openapi({ description: "0: never stopped for idleness" }),
  activate: z.boolean().nullish().openapi({ description: "Make its connection the active one once it is ready" }),
});

const Status = z.object({
  state: z.enum(["stopped", "starting", "running", "failed"]),
  program: z.string().nullable().openapi({ description: "Path of llama-server; null when it was not found" }),
  advice: z.string().optional().openapi({ description: "How one gets the program" }),
  command: z.string().optional().openapi({ description: "What a person would type to run the model asked about" }),
  connection_id: z.literal("local"),
  path: z.string().optional(),
  context_size: z.number().int().optional(),
  gpu_layers: z.number().int().optional(),
  idle_minutes: z.number().int().optional(),
  memory_bytes: z.number().int().optional(),
  started_at: Time.optional(),
  restarts: z.number().int(),
  error: z.string().optional(),
  log: z.array(z.string()).openapi({ description: "Its last lines, oldest first" }),
}).openapi("ModelRunner");

/** Gives a request to run its form inside the server. */
export function requestOf(body: z.infer<typeof RunBody>): RunRequest {
  return {
    path: body.path,
    contextSize: body.context_size ?? undefined,
    gpuLayers: body.gpu_layers ?? undefined,
    idleMinutes: body.idle_minutes ?? undefined,
  };
}

/** Gives the runner its form on the wire. */
export function statusOf(status: RunnerStatus, command?: string): z.infer<typeof Status> {
  const { state, program, advice, settings, restarts, error, log, startedAtMs } = status;
  return {
    ...{ state, program, advice, command, restarts, error },
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

const tags = ["Models"];

/** Start. */
export const runRoute = createRoute({
  method: "post",
  path: "/api/models/local/run",
  tags,
  summary: "Run a model by llama.cpp's server, in place of the one that runs; 503 says how to get the program",
  request: { body: jsonBody(RunBody) },
  responses: { 202: json(Status, "Starting; an event of kind runner tells each change"), ...ERRORS },
});

/** Stop. */
export const stopRoute = createRoute({
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
  summary: "How the running model stands, with the last lines it said",
  request: { query: z.object({ path: Path.optional().openapi({ description: "Adds the command for this model" }) }) },
  responses: { 200: json(Status, "The state"), ...ERRORS },
});

/** The body that starts a local model. */
export type RunModelJson = z.input<typeof RunBody>;

/** The state of the local model. */
export type ModelRunnerJson = z.output<typeof Status>;
