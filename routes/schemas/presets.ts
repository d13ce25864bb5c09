/** Presets in the API. */
import { createRoute, z } from "@hono/zod-openapi";
import { runInSteps } from "../../services/async/delay.ts";
import type { PresetDocument } from "../../services/presets/preset.ts";
import { collectPresetLedger } from "../../services/presets/preset_ledger.ts";
import type { ListedPreset, PresetInput, StoredPreset } from "../../services/presets/presets.ts";
import { ERRORS, ExtraBody, IdParams, json, LedgerSchema, Time, toLedgerField, Unreadable } from "./common.ts";
import { documentFile, versionedDocumentRoutes } from "./versions.ts";

const Models = z.array(z.string().min(1).max(300)).max(200).openapi({
  description: "Names of the models to which it applies; * matches any characters",
});

const PresetItem = z.object({
  id: z.string(),
  name: z.string(),
  models: Models,
  builtin: z.boolean().openapi({ description: "Built in and read-only" }),
  prompt_count: z.number().int(),
  created_at: Time,
  updated_at: Time,
  error: Unreadable.optional(),
}).openapi("PresetItem");

const Sampler = z.record(
  z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, "the name of a sampler must look like top_p"),
  z.number(),
)
  .openapi({
    description: "temperature, top_p, top_k, min_p, repetition_penalty, …, max_tokens, context_size, seed",
    additionalProperties: { type: "number" },
  });

const Prompt = z.object({
  identifier: z.string().min(1).max(200),
  name: z.string().max(1_000).optional(),
  role: z.string().max(100).optional(),
  content: z.string().optional(),
  marker: z.boolean().optional(),
  injection_position: z.number().optional(),
  injection_depth: z.number().optional(),
  injection_order: z.number().optional(),
  injection_trigger: z.array(z.string()).optional(),
  forbid_overrides: z.boolean().optional(),
}).loose().openapi("PresetPrompt", { description: "In SillyTavern's format; unknown fields are preserved" });

const Order = z.object({
  character_id: z.union([z.number(), z.string()]).optional().openapi({
    description: "100001 means all characters",
  }),
  order: z.array(z.object({ identifier: z.string().max(200), enabled: z.boolean() }).loose()).max(2_000),
}).loose().openapi("PresetOrder");

const FIELDS = {
  sampler: Sampler,
  prompts: z.array(Prompt).max(2_000),
  prompt_order: z.array(Order).max(1_000),
  rest: z.record(z.string(), z.unknown()).openapi({
    description:
      "All other fields of SillyTavern's file, with its own names: new_chat_prompt, wi_format, assistant_prefill, …",
  }),
  extra_body: ExtraBody,
  dialect: z.enum(["chat_completion", "text_completion"]),
};

const PresetResponse = PresetItem.extend({
  sampler: z.record(z.string(), z.number()),
  prompts: z.array(z.record(z.string(), z.unknown())),
  prompt_order: z.array(z.record(z.string(), z.unknown())),
  rest: FIELDS.rest,
  extra_body: ExtraBody.optional(),
  dialect: FIELDS.dialect,
  ledger: LedgerSchema.optional(),
}).openapi("Preset");

/** The body of a PUT. */
export const PresetBody = z.object({
  name: z.string().max(200).nullish(),
  models: Models.nullish(),
  sampler: FIELDS.sampler.nullish(),
  prompts: FIELDS.prompts.nullish(),
  prompt_order: FIELDS.prompt_order.nullish(),
  rest: FIELDS.rest.nullish(),
  extra_body: ExtraBody.nullish(),
  dialect: FIELDS.dialect.optional(),
}).openapi("PresetInput", { description: "Omitted fields keep their value; null clears a field" });

/** Converts a request body to the type of the service. */
export function toPresetInput(body: z.infer<typeof PresetBody>): PresetInput {
  const { name, models, sampler, prompts, prompt_order, rest, extra_body, dialect } = body;
  return {
    name: name ?? undefined,
    models: models === null ? [] : models,
    preset: {
      sampler: sampler === null ? {} : sampler,
      prompts: prompts === null ? [] : prompts as PresetDocument["prompts"] | undefined,
      prompt_order: prompt_order === null ? [] : prompt_order as PresetDocument["prompt_order"] | undefined,
      rest: rest === null ? {} : rest,
      extra_body: extra_body === null ? {} : extra_body,
      dialect,
    },
  };
}

/** Converts a list entry to its JSON form. */
export function toPresetItem(
  { id, head, isBuiltin, createdAtMs, updatedAtMs }: ListedPreset,
): z.infer<typeof PresetItem> {
  return {
    id,
    name: head?.name ?? "",
    models: head?.models ?? [],
    builtin: isBuiltin,
    prompt_count: head?.promptCount ?? 0,
    created_at: new Date(createdAtMs).toISOString(),
    updated_at: new Date(updatedAtMs).toISOString(),
    ...(head === undefined && { error: { code: "unreadable" as const } }),
  };
}

/** Converts a preset to its JSON form. */
export async function toPresetJson(preset: StoredPreset): Promise<z.infer<typeof PresetResponse>> {
  const { sampler, prompts, prompt_order, rest, extra_body, dialect } = preset.body;
  const extra = Object.keys(extra_body ?? {}).length > 0 &&
    { extra_body } satisfies Partial<z.infer<typeof PresetResponse>>;
  return {
    ...toPresetItem(preset),
    sampler: sampler as Record<string, number>,
    prompts,
    prompt_order,
    rest,
    ...extra,
    dialect,
    ...toLedgerField(await runInSteps(collectPresetLedger(preset.body))),
  };
}

const path = "/api/presets";
const tags = ["Presets"];

/** All. */
export const listRoute = createRoute({
  method: "get",
  path,
  tags,
  summary: "List presets, newest first, then the built-in one",
  responses: { 200: json(z.array(PresetItem), "The presets"), ...ERRORS },
});

/** Get, save, delete and import one. */
export const { getRoute, putRoute, deleteRoute, importRoute } = versionedDocumentRoutes(
  {
    path,
    tags,
    noun: "preset",
    change: "change",
    importSummary: "Import a SillyTavern preset for chat completion or text completion",
  },
  { response: PresetResponse, body: PresetBody },
);

/** Export as a file. */
export const exportRoute = createRoute({
  method: "get",
  path: `${path}/{id}/export`,
  tags,
  summary: "Export a preset in SillyTavern's format",
  request: { params: IdParams },
  responses: { 200: documentFile, ...ERRORS },
});

/** A preset without its prompts. */
export type PresetItemJson = z.output<typeof PresetItem>;

/** A whole preset. */
export type PresetJson =
  & PresetItemJson
  & PresetDocument
  & Pick<z.output<typeof PresetResponse>, "ledger">
  & { sampler: Record<string, number> };

/** One prompt and one order of prompts in a preset. */
export type {
  PresetOrder as PresetOrderJson,
  PresetPrompt as PresetPromptJson,
} from "../../services/presets/preset.ts";
