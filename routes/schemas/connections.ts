/** Connection profiles on the wire: snake_case here, camelCase behind; the key goes in and never comes out. */
import { createRoute, z } from "@hono/zod-openapi";
import type { Connection, ConnectionInput } from "../../services/llm/connections/connections.ts";
import type { DetectedServer } from "../../services/llm/connections/server_detection.ts";
import type { ConnectionTestResult } from "../../services/llm/connections/connection_test.ts";
import { ApiKey, ERRORS, Id, IdParams, IfMatch, json, jsonBody, Time } from "./common.ts";

const Kind = z.enum(["openai", "anthropic", "demo"]);
const LimitMs = z.number().int().min(1).max(24 * 60 * 60 * 1000).optional();
const Timeouts = z.object({ connect_ms: LimitMs, first_byte_ms: LimitMs, idle_ms: LimitMs });

const ConnectionBody = z.object({
  id: Id.optional(),
  name: z.string().max(200).nullish(),
  kind: Kind.nullish(),
  base_url: z.string().max(2000).nullish(),
  model: z.string().max(500).nullish(),
  context_size: z.number().int().min(1).max(100_000_000).nullish(),
  timeouts: Timeouts.nullish(),
  api_key: ApiKey.nullish().openapi({ description: "Absent keeps the stored key, null clears it" }),
}).openapi("ConnectionInput", { description: "Of a saved one, what is left out stays; null clears it" });

const ConnectionAnswer = z.object({
  id: Id,
  name: z.string(),
  kind: Kind,
  base_url: z.string(),
  model: z.string().optional(),
  context_size: z.number().int().optional(),
  timeouts: Timeouts.optional(),
  has_key: z.boolean(),
  active: z.boolean(),
  unreadable: z.boolean().optional(),
  created_at: Time,
  updated_at: Time,
}).openapi("Connection");

const TestResult = z.object({
  reachable: z.boolean(),
  authorized: z.boolean(),
  models: z.array(z.string()),
  context_size: z.number().int().optional(),
  latency_ms: z.number(),
  error: z.string().optional(),
  advice: z.string().optional(),
}).openapi("ConnectionVerdict");

const Found = z.object({
  base_url: z.string(),
  kind: Kind,
  software: z.string(),
  models: z.array(z.string()),
  needs_key: z.boolean().optional(),
  starting: z.boolean().optional(),
}).openapi("FoundServer");

/** Gives what a client sent its form inside the server. */
export function toConnectionInput(body: z.infer<typeof ConnectionBody>): ConnectionInput {
  const { id, name, kind, model, timeouts } = body;
  return {
    id,
    name,
    kind,
    model,
    baseUrl: body.base_url,
    contextSize: body.context_size,
    timeouts: timeouts &&
      { connectMs: timeouts.connect_ms, firstByteMs: timeouts.first_byte_ms, idleMs: timeouts.idle_ms },
    apiKey: body.api_key,
  };
}

/** Gives a profile its form on the wire. */
export function toConnectionJson(connection: Connection): z.infer<typeof ConnectionAnswer> {
  const { id, name, kind, model, timeouts } = connection;
  return {
    id,
    name,
    kind,
    model,
    base_url: connection.baseUrl,
    context_size: connection.contextSize,
    timeouts: timeouts &&
      { connect_ms: timeouts.connectMs, first_byte_ms: timeouts.firstByteMs, idle_ms: timeouts.idleMs },
    has_key: connection.hasKey,
    active: connection.isActive,
    unreadable: connection.isUnreadable,
    created_at: new Date(connection.createdAtMs).toISOString(),
    updated_at: new Date(connection.updatedAtMs).toISOString(),
  };
}

/** Gives a result its form on the wire. */
export function toTestResultJson(result: ConnectionTestResult): z.infer<typeof TestResult> {
  const { isReachable: reachable, isAuthorized: authorized, models, error, advice } = result;
  return {
    reachable,
    authorized,
    models,
    context_size: result.contextSize,
    latency_ms: result.latencyMs,
    error,
    advice,
  };
}

/** Gives a found server its form on the wire. */
export function toDiscoveredJson(server: DetectedServer): z.infer<typeof Found> {
  const { baseUrl: base_url, kind, software, models, needsKey: needs_key, isStarting: starting } = server;
  return { base_url, kind, software, models, needs_key, starting };
}

const path = "/api/connections";
const tags = ["Connections"];

/** All profiles. */
export const listRoute = createRoute({
  method: "get",
  path,
  tags,
  summary: "List profiles; API keys are redacted",
  responses: { 200: json(z.array(ConnectionAnswer), "The profiles, newest first"), ...ERRORS },
});

/** Create or update a profile. */
export const putRoute = createRoute({
  method: "put",
  path,
  tags,
  summary: "Create or update a profile",
  request: { headers: IfMatch, body: jsonBody(ConnectionBody) },
  responses: { 200: json(ConnectionAnswer, "Saved"), 201: json(ConnectionAnswer, "Created"), ...ERRORS },
});

/** Remove a profile. */
export const deleteRoute = createRoute({
  method: "delete",
  path: `${path}/{id}`,
  tags,
  summary: "Remove a profile",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** Clear the stored key. */
export const clearKeyRoute = createRoute({
  method: "delete",
  path: `${path}/{id}/key`,
  tags,
  summary: "Clear the stored API key, keeping the profile",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Cleared" }, ...ERRORS },
});

/** Choose a profile. */
export const activateRoute = createRoute({
  method: "post",
  path: `${path}/{id}/activate`,
  tags,
  summary: "Make the profile active for subsequent chat calls",
  request: { params: IdParams },
  responses: { 200: json(ConnectionAnswer, "The profile"), ...ERRORS },
});

/** Test a profile before it is saved. */
export const testRoute = createRoute({
  method: "post",
  path: `${path}/test`,
  tags,
  summary: "Check reachability of an unsaved profile; the id of a saved one lends its key to the same origin",
  request: { body: jsonBody(ConnectionBody) },
  responses: { 200: json(TestResult, "What was found, and what to do about it"), ...ERRORS },
});

/** Look for running servers. */
export const discoverRoute = createRoute({
  method: "post",
  path: `${path}/discover`,
  tags,
  summary: "Probe the configured hosts (this machine) for running model servers",
  responses: { 200: json(z.array(Found), "The servers that answered"), ...ERRORS },
});

/** A connection to a model server; its key never leaves the server. */
export type ConnectionJson = z.output<typeof ConnectionAnswer>;

/** A connection to save or to test. */
export type ConnectionInputJson = z.input<typeof ConnectionBody>;

/** The result of a connection test. */
export type ConnectionTestJson = z.output<typeof TestResult>;

/** A model server that was detected. */
export type DetectedServerJson = z.output<typeof Found>;
