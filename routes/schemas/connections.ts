/** Connection profiles in the API. Keys can be set but are never returned. */
import { createRoute, z } from "@hono/zod-openapi";
import {
  type ConnectionFacts,
  type LastCall as LastCallFacts,
  REFUSAL_TTL_MS,
  type StoredRefusal,
} from "../../services/llm/connections/connection_memory.ts";
import type { Connection, ConnectionInput, Connections } from "../../services/llm/connections/connections.ts";
import type { DetectedServer } from "../../services/llm/connections/server_detection.ts";
import type { FoundServers } from "../../services/server_search/server_search.ts";
import type { ConnectionTestResult, ServerIdentity } from "../../services/llm/connections/connection_test.ts";
import { CONTRACT_ITEMS, NOT_ASKED, type ServerContract } from "../../services/llm/contract/contract.ts";
import { type Dialect, DIALECT_NAMES, REASONING_EFFORTS } from "../../services/llm/dialects/dialect.ts";
import { findDialectOfAddress } from "../../services/llm/dialects/dialects.ts";
import { type ModelThinking, PROVIDER_KINDS } from "../../services/llm/provider.ts";
import { FoundImages, toDiscoveredBackendJson } from "./images.ts";
import { Job } from "./jobs.ts";
import { FoundSpeech, toDetectedSpeechJson } from "./speech.ts";
import { FoundTranscription, toDetectedServerJson } from "./transcription.ts";
import { ApiKey, ERRORS, ExtraBody, Id, IdParams, IfMatch, json, jsonBody, Time } from "./common.ts";

const Kind = z.enum(PROVIDER_KINDS);
const ServerName = z.enum(DIALECT_NAMES).openapi({ description: "Which server's dialect of the protocol to use" });
const LimitMs = z.number().int().min(1).max(24 * 60 * 60 * 1000).optional();
const Timeouts = z.object({ connect_ms: LimitMs, first_byte_ms: LimitMs, idle_ms: LimitMs });

const ContextSize = z.number().int().min(1).max(100_000_000);

const ConnectionBody = z.object({
  id: Id.optional(),
  name: z.string().max(200).nullish(),
  kind: Kind.nullish(),
  base_url: z.string().max(2000).nullish(),
  model: z.string().max(500).nullish(),
  context_size: ContextSize.nullish(),
  context_sizes: z.record(z.string().min(1).max(500), ContextSize.nullable()).nullish().openapi({
    description:
      "Of single models, by name, before `context_size`; a null value removes one, null removes all, others are kept",
    additionalProperties: { type: ["integer", "null"] },
  }),
  timeouts: Timeouts.nullish(),
  api_key: ApiKey.nullish().openapi({ description: "If absent, the stored key is kept; null deletes it" }),
  headers: z.record(z.string().min(1).max(100), z.string().max(8_000).nullable()).nullish().openapi({
    description:
      "Sent with every request; a null value removes one header, null removes all, and an address with another origin removes them",
    additionalProperties: { type: ["string", "null"] },
  }),
  extra_body: ExtraBody.nullish(),
  background: z.boolean().nullish().openapi({
    description:
      "Only for openai-responses: the provider stores replies while they're written, so that they go on after a restart",
  }),
  server: z.object({ override: ServerName.nullish() }).nullish().openapi({
    description: "override replaces the detected dialect; null removes the override",
  }),
}).openapi("ConnectionInput", {
  description: "If a profile is saved, omitted fields keep their value; null clears it",
});

const TestBody = ConnectionBody.extend({
  quick: z.boolean().optional().openapi({
    description: "Only asks for the models and the context size, and makes no call to a model",
  }),
}).openapi("ConnectionTestInput");

const DialectResponse = z.object({
  name: ServerName,
  title: z.string(),
  output_limit: z.string().openapi({ description: "The server's name for the token limit of a reply" }),
  samplers: z.array(z.string()).openapi({ description: "Fields that the server documents, by Parlor's names" }),
  thinking: z.object({
    switch: z.boolean().openapi({ description: "Whether thinking can be turned off" }),
    efforts: z.array(z.enum(REASONING_EFFORTS)),
    budgets: z.record(z.string(), z.number().int()).optional().openapi({
      description: "Thinking tokens per effort, if the server expects a number",
    }),
  }),
  trims_context: z.enum(["server", "client"]).openapi({
    description: "server: it silently truncates prompts that exceed its context",
  }),
  continues: z.boolean().openapi({ description: "Whether a trailing assistant message is continued" }),
  images: z.boolean(),
  documents: z.boolean(),
  tools: z.boolean(),
  models: z.record(
    z.string(),
    z.object({
      thinking: z.boolean().optional(),
      adaptive: z.boolean().optional().openapi({
        description: "Whether the server chooses the number of thinking tokens itself",
      }),
    }),
  ).optional().openapi({ description: "What the server reports about individual models" }),
}).openapi("Dialect");

const Refused = z.object({
  model: z.string(),
  field: z.string(),
  sent_as: z.string().optional().openapi({ description: "The name under which the server receives the value instead" }),
  status: z.number().int(),
  reason: z.string(),
  at: Time,
  until: Time,
}).openapi("RefusedField");

const LastCall = z.object({
  ok: z.boolean(),
  at: Time,
  error: z.object({ code: z.string(), message: z.string(), kind: z.string() }).optional(),
}).openapi("LastCall");

const Contract = z.object({
  model: z.string().optional(),
  at: Time,
  version: z.string().optional(),
  findings: z.array(z.object({
    item: z.enum(CONTRACT_ITEMS),
    found: z.union([z.boolean(), z.number()]).optional(),
    expected: z.boolean().optional().openapi({ description: "What servers of this kind do as far as Parlor knows" }),
    reason: z.enum(NOT_ASKED).optional().openapi({ description: "Why it isn't known" }),
  })),
}).openapi("ServerContract", { description: "What the server was found to do; used instead of what its kind does" });

const ConnectionResponse = z.object({
  id: Id,
  name: z.string(),
  kind: Kind,
  base_url: z.string(),
  model: z.string().optional(),
  context_size: z.number().int().optional(),
  context_sizes: z.record(z.string(), z.number().int()).optional(),
  timeouts: Timeouts.optional(),
  has_key: z.boolean(),
  header_names: z.array(z.string()),
  extra_body: ExtraBody.optional(),
  background: z.boolean().optional(),
  server: z.object({
    detected: ServerName.optional().openapi({ description: "What the server reports about itself" }),
    override: ServerName.optional(),
  }),
  dialect: DialectResponse.optional().openapi({ description: "The properties of the dialect in use" }),
  refused: z.array(Refused).openapi({ description: "Fields that aren't sent, because the server rejects them" }),
  contracts: z.array(Contract).optional().openapi({ description: "What the server was found to do, by model" }),
  resolved_model: z.string().optional().openapi({
    description: "The model used if a request names none: the connection's, or the first one that the server lists",
  }),
  last_call: LastCall.optional(),
  notice: z.object({ code: z.literal("model_spills"), message: z.string() }).optional().openapi({
    description: "A warning about a working server: an Ollama model doesn't fit into GPU memory",
  }),
  suggested_kind: Kind.optional().openapi({ description: "A kind that suits this server better: ollama" }),
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
  software: z.string().optional().openapi({ description: "Of an unsaved profile: the product, if the server tells" }),
  speech: z.boolean().optional().openapi({ description: "True if all models speak or transcribe" }),
  contract: Contract.optional(),
}).openapi("ConnectionVerdict");

const Found = z.object({
  base_url: z.string(),
  kind: Kind,
  software: z.string(),
  models: z.array(z.string()),
  needs_key: z.boolean().optional(),
  starting: z.boolean().optional(),
}).openapi("FoundServer");

const FoundOfAllKinds = z.object({
  models: z.array(Found),
  speech: z.array(FoundSpeech),
  transcription: z.array(FoundTranscription),
  images: z.array(FoundImages),
}).openapi("FoundServers", { description: "The servers by what they're for; one may be in several lists" });

/** Converts what a client sent to the type of the service. */
export function toConnectionInput(body: z.infer<typeof ConnectionBody>): ConnectionInput {
  const { id, name, kind, model, timeouts } = body;
  return {
    id,
    name,
    kind,
    model,
    baseUrl: body.base_url,
    contextSize: body.context_size,
    contextSizes: body.context_sizes,
    timeouts: timeouts &&
      { connectMs: timeouts.connect_ms, firstByteMs: timeouts.first_byte_ms, idleMs: timeouts.idle_ms },
    apiKey: body.api_key,
    headers: body.headers,
    extraBody: body.extra_body,
    background: body.background,
    serverOverride: body.server === null ? null : body.server?.override,
  };
}

function toDialectJson(dialect: Dialect, { thinking: known }: ConnectionFacts): z.infer<typeof DialectResponse> {
  const { name, title, outputLimit, samplers, thinking, continues, documents, tools } = dialect;
  const models = Object.entries(known ?? {});
  return {
    name,
    title,
    output_limit: outputLimit,
    samplers: Object.keys(samplers),
    thinking: { switch: thinking.hasSwitch, efforts: [...thinking.efforts], budgets: toBudgetsJson(thinking) },
    trims_context: dialect.trimsContext,
    continues,
    images: dialect.imageTypes.length > 0,
    documents,
    tools,
    models: models.length === 0
      ? undefined
      : Object.fromEntries(models.map(([model, known]) => [model, toModelJson(known)])),
  };
}

function toModelJson(thinking: ModelThinking): { thinking: boolean; adaptive?: boolean } {
  return thinking === "adaptive" ? { thinking: true, adaptive: true } : { thinking };
}

/** Only budgets of efforts that are offered. */
function toBudgetsJson({ efforts, budgets = {} }: Dialect["thinking"]): Record<string, number> | undefined {
  const offered = efforts.flatMap((effort) =>
    budgets[effort] === undefined ? [] : [[effort, budgets[effort]] as const]
  );
  return offered.length === 0 ? undefined : Object.fromEntries(offered);
}

function toRefusedJson({ model, field, sentAs, status, reason, atMs }: StoredRefusal): z.infer<typeof Refused> {
  const [at, until] = [atMs, atMs + REFUSAL_TTL_MS].map((ms) => new Date(ms).toISOString());
  return { model, field, sent_as: sentAs, status, reason, at: at!, until: until! };
}

function toLastCallJson({ atMs, failure }: LastCallFacts): z.infer<typeof LastCall> {
  return { ok: failure === undefined, at: new Date(atMs).toISOString(), error: failure };
}

/** Converts a profile, with what is known about its server, to its JSON form. */
export function toConnectionJson(
  connection: Connection,
  connections: Pick<Connections, "getFacts" | "getDialect">,
): z.infer<typeof ConnectionResponse> {
  const { id, name, kind, model, timeouts } = connection;
  const facts = connections.getFacts(id);
  const dialect = connections.getDialect(id);
  return {
    id,
    name,
    kind,
    model,
    base_url: connection.baseUrl,
    context_size: connection.contextSize,
    context_sizes: connection.contextSizes,
    timeouts: timeouts &&
      { connect_ms: timeouts.connectMs, first_byte_ms: timeouts.firstByteMs, idle_ms: timeouts.idleMs },
    has_key: connection.hasKey,
    header_names: connection.headerNames ?? [],
    extra_body: connection.extraBody,
    background: connection.background,
    server: {
      detected: facts.detected ?? findDialectOfAddress(connection.baseUrl),
      override: connection.serverOverride,
    },
    dialect: dialect && toDialectJson(dialect, facts),
    refused: facts.refusals.map(toRefusedJson),
    contracts: facts.contracts && Object.entries(facts.contracts).map(([name, found]) => toContractJson(found, name)),
    resolved_model: model ?? facts.firstModel,
    last_call: facts.lastCall && toLastCallJson(facts.lastCall),
    notice: facts.notice,
    // Ollama's OpenAI-compatible API can't set the context size.
    suggested_kind: kind === "openai" && facts.detected === "ollama" ? "ollama" : undefined,
    active: connection.isActive,
    unreadable: connection.isUnreadable,
    created_at: new Date(connection.createdAtMs).toISOString(),
    updated_at: new Date(connection.updatedAtMs).toISOString(),
  };
}

function toContractJson(contract: ServerContract, model?: string): z.infer<typeof Contract> {
  const { atMs, version, findings } = contract;
  return {
    model,
    at: new Date(atMs).toISOString(),
    version,
    findings: CONTRACT_ITEMS.flatMap((item) => findings[item] === undefined ? [] : [{ item, ...findings[item] }]),
  };
}

/** Converts a result to its JSON form. */
export function toTestResultJson(
  result: ConnectionTestResult,
  { contract, identity }: { contract?: ServerContract; identity?: ServerIdentity } = {},
): z.infer<typeof TestResult> {
  const { isReachable: reachable, isAuthorized: authorized, models, error, advice } = result;
  return {
    reachable,
    authorized,
    models,
    context_size: result.contextSize,
    latency_ms: result.latencyMs,
    error,
    advice,
    software: identity?.software,
    speech: identity?.isSpeech,
    contract: contract && toContractJson(contract),
  };
}

/** Converts a discovered server to its JSON form. */
export function toDiscoveredJson(server: DetectedServer): z.infer<typeof Found> {
  const { baseUrl: base_url, kind, software, models, needsKey: needs_key, isStarting: starting } = server;
  return { base_url, kind, software, models, needs_key, starting };
}

/** Converts the servers of a search to their JSON form. */
export function toFoundServersJson(found: FoundServers): z.infer<typeof FoundOfAllKinds> {
  return {
    models: found.models.map(toDiscoveredJson),
    speech: found.speech.map(toDetectedSpeechJson),
    transcription: found.transcription.map(toDetectedServerJson),
    images: found.images.map(toDiscoveredBackendJson),
  };
}

const path = "/api/connections";
const tags = ["Connections"];

/** All profiles. */
export const listRoute = createRoute({
  method: "get",
  path,
  tags,
  summary: "List profiles, without their API keys",
  responses: { 200: json(z.array(ConnectionResponse), "The profiles, newest first"), ...ERRORS },
});

/** Create or update a profile. */
export const putRoute = createRoute({
  method: "put",
  path,
  tags,
  summary: "Create or update a profile",
  request: { headers: IfMatch, body: jsonBody(ConnectionBody) },
  responses: { 200: json(ConnectionResponse, "Saved"), 201: json(ConnectionResponse, "Created"), ...ERRORS },
});

/** Remove a profile. */
export const deleteRoute = createRoute({
  method: "delete",
  path: `${path}/{id}`,
  tags,
  summary: "Delete a profile",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Removed" }, ...ERRORS },
});

/** Clear the stored key. */
export const clearKeyRoute = createRoute({
  method: "delete",
  path: `${path}/{id}/key`,
  tags,
  summary: "Delete the stored API key and keep the profile",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Cleared" }, ...ERRORS },
});

/** Choose a profile. */
export const activateRoute = createRoute({
  method: "post",
  path: `${path}/{id}/activate`,
  tags,
  summary: "Make the profile the active one for later chat requests",
  request: { params: IdParams },
  responses: { 200: json(ConnectionResponse, "The profile"), ...ERRORS },
});

/** Test a profile before it is saved. */
export const testRoute = createRoute({
  method: "post",
  path: `${path}/test`,
  tags,
  summary: "Test an unsaved profile; with the ID of a saved one, its key is used for the same origin",
  request: { body: jsonBody(TestBody) },
  responses: { 200: json(TestResult, "The result, and advice about problems"), ...ERRORS },
});

/** Download a model. */
export const pullRoute = createRoute({
  method: "post",
  path: `${path}/{id}/pull`,
  tags,
  summary: "Make an Ollama server download a model",
  request: {
    params: IdParams,
    body: jsonBody(z.object({ model: z.string().trim().min(1).max(500).openapi({ example: "llama3.2" }) })),
  },
  responses: { 202: json(Job, "The job; if one is already running for this model and server, that one"), ...ERRORS },
});

/** Look for running servers. */
export const discoverRoute = createRoute({
  method: "post",
  path: `${path}/discover`,
  tags,
  summary: "Probe the configured hosts (this machine) for running model servers",
  responses: { 200: json(z.array(Found), "The servers that responded"), ...ERRORS },
});

/** Look for running servers of all kinds. */
export const discoverAllRoute = createRoute({
  method: "post",
  path: "/api/discover",
  tags,
  summary: "Probe the configured hosts (this machine) for servers of all kinds: models, speech, transcription, images",
  responses: { 200: json(FoundOfAllKinds, "The servers that responded"), ...ERRORS },
});

/** A connection to a model server; its key never leaves the server. */
export type ConnectionJson = z.output<typeof ConnectionResponse>;

/** A connection to save or to test. */
export type ConnectionInputJson = z.input<typeof ConnectionBody>;

/** The result of a connection test. */
export type ConnectionTestJson = z.output<typeof TestResult>;

/** A model server that was detected. */
export type DetectedServerJson = z.output<typeof Found>;

/** The servers that a search found, by what they're for. */
export type FoundServersJson = z.output<typeof FoundOfAllKinds>;
