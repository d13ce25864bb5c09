/** Regex scripts in the API. */
import { createRoute, z } from "@hono/zod-openapi";
import {
  FIND_MACROS,
  MAX_SCRIPTS,
  PLACEMENTS,
  type RegexScript,
  SCRIPT_LIMITS,
  type ScriptPlacement,
} from "../../services/regex_scripts/regex_script.ts";
import type { AttachedScripts, OwnScript, ScriptInput } from "../../services/regex_scripts/regex_scripts.ts";
import type { ShownText } from "../../services/chat/message_scripts.ts";
import { ERRORS, Id, IdParams, IfMatch, json, jsonBody, Time, Unreadable } from "./common.ts";

const PROBLEMS = ["invalid", "too_slow", "too_long"] as const;
const Placement = z.enum(PLACEMENTS as [ScriptPlacement, ...ScriptPlacement[]]);
const Problem = z.enum(PROBLEMS).openapi({
  description:
    "Why Parlor switched it off, or why it had no effect: its pattern is invalid, it took too much time, or" +
    " its result is too long",
});

const Fields = z.object({
  name: z.string().max(SCRIPT_LIMITS.nameChars),
  find: z.string().max(SCRIPT_LIMITS.findChars).openapi({
    description: "The regular expression, alone or as /pattern/flags",
    example: "/<think>(.*?)<\\/think>/gs",
  }),
  replace: z.string().max(SCRIPT_LIMITS.replaceChars).openapi({
    description: "$1, $<name> and {{match}} stand for what was found. Macros expand",
  }),
  trim: z.array(z.string().max(10_000)).max(SCRIPT_LIMITS.trims).openapi({
    description: "Texts that are removed from what was found before it's inserted",
  }),
  placement: z.array(Placement).max(PLACEMENTS.length).openapi({
    description: "The texts that it changes. slash_command has no effect in Parlor",
  }),
  enabled: z.boolean(),
  display_only: z.boolean().openapi({
    description: "Only changes what is shown. Without display_only and prompt_only, it changes what is shown and sent",
  }),
  prompt_only: z.boolean().openapi({ description: "Only changes what is sent" }),
  run_on_edit: z.boolean().openapi({
    description: "Also changes the stored text of a message that is edited in the page",
  }),
  find_macros: z.enum(FIND_MACROS).openapi({
    description: "Whether macros in the pattern expand; escaped: to literal text",
  }),
  min_depth: z.number().int().min(-1).max(100_000).nullable().openapi({
    description: "Smallest number of messages after the changed one. Only for scripts that are only shown or only sent",
  }),
  max_depth: z.number().int().min(-1).max(100_000).nullable(),
});
const Script = Fields.extend({ problem: Problem.optional() });

const ScriptResponse = Script.extend({
  id: Id,
  order: z.number().openapi({ description: "Scripts with lower numbers run first" }),
  created_at: Time,
  updated_at: Time,
  error: Unreadable.optional().openapi({ description: "Set if the script can't be decrypted" }),
}).openapi("RegexScript");

const ScriptBody = Fields.partial().extend({ order: z.number().optional() }).openapi("RegexScriptInput", {
  description: "Omitted fields keep their value; those of a new script have their default, and it runs last",
});

const Attached = z.object({
  kind: z.enum(["character", "preset"]),
  id: z.string(),
  name: z.string(),
  hash: z.string().openapi({ description: "Of the content: scripts that change have to be accepted again" }),
  state: z.enum(["accepted", "declined", "undecided"]).openapi({ description: "Only accepted scripts run" }),
  scripts: z.array(Script),
}).openapi("AttachedRegexScripts");

const ConversationScripts = z.object({
  attached: z.array(Attached),
  has_active: z.boolean().openapi({ description: "True if a script, yours included, changes what is shown" }),
  max_depth: z.number().openapi({ description: "Among messages with more messages after them, depth changes nothing" }),
});

const RunProblems = z.array(z.object({ name: z.string(), problem: Problem })).openapi({
  description: "Scripts that had no effect",
});

const tags = ["Regex scripts"];
const path = "/api/regex_scripts";

/** The owner's. */
export const listRoute = createRoute({
  method: "get",
  path,
  tags,
  summary: "List your regex scripts in the order in which they run",
  responses: { 200: json(z.array(ScriptResponse), "The scripts"), ...ERRORS },
});

/** One. */
export const getRoute = createRoute({
  method: "get",
  path: `${path}/{id}`,
  tags,
  summary: "Get a regex script",
  request: { params: IdParams },
  responses: { 200: json(ScriptResponse, "The script; its ETag is its version"), ...ERRORS },
});

/** Create or change. */
export const putRoute = createRoute({
  method: "put",
  path: `${path}/{id}`,
  tags,
  summary: "Create or change a regex script",
  request: { params: IdParams, headers: IfMatch, body: jsonBody(ScriptBody) },
  responses: { 200: json(ScriptResponse, "Saved"), 201: json(ScriptResponse, "Created"), ...ERRORS },
});

/** Remove. */
export const deleteRoute = createRoute({
  method: "delete",
  path: `${path}/{id}`,
  tags,
  summary: "Delete a regex script",
  request: { params: IdParams, headers: IfMatch },
  responses: { 204: { description: "Deleted" }, ...ERRORS },
});

/** From SillyTavern. */
export const importRoute = createRoute({
  method: "post",
  path: `${path}/import`,
  tags,
  summary: "Add the regex scripts of a file of SillyTavern",
  request: { body: jsonBody(z.union([z.looseObject({}), z.array(z.looseObject({})).max(MAX_SCRIPTS)])) },
  responses: { 201: json(z.array(ScriptResponse), "The added scripts"), ...ERRORS },
});

/** For SillyTavern. */
export const exportRoute = createRoute({
  method: "get",
  path: `${path}/{id}/export`,
  tags,
  summary: "Get a regex script as a file for SillyTavern",
  request: { params: IdParams },
  responses: { 200: json(z.looseObject({}), "The file"), ...ERRORS },
});

/** Try one. */
export const testRoute = createRoute({
  method: "post",
  path: `${path}/test`,
  tags,
  summary: "Run a regex script on a text, whatever texts it's for. Nothing is stored",
  request: {
    body: jsonBody(z.object({
      script: Fields.partial(),
      text: z.string().max(100_000),
      user: z.string().max(200).optional().openapi({ description: "Value of {{user}}" }),
      char: z.string().max(200).optional().openapi({ description: "Value of {{char}}" }),
    })),
  },
  responses: {
    200: json(z.object({ text: z.string(), problem: Problem.optional() }), "The changed text"),
    ...ERRORS,
  },
});

/** Accept or decline. */
export const decideRoute = createRoute({
  method: "post",
  path: `${path}/decisions`,
  tags,
  summary: "Accept or decline the scripts of a card or preset. Accepting again switches on those that were too slow",
  request: {
    body: jsonBody(z.object({
      hash: z.string().regex(/^[0-9a-f]{64}$/, "a hash has 64 hexadecimal digits"),
      accepted: z.boolean(),
    })),
  },
  responses: { 204: { description: "Stored" }, ...ERRORS },
});

/** Of a conversation. */
export const conversationRoute = createRoute({
  method: "get",
  path: "/api/conversations/{id}/regex_scripts",
  tags,
  summary: "List the regex scripts of a conversation's preset and characters",
  request: { params: IdParams },
  responses: {
    200: json(
      ConversationScripts,
      "The scripts, with your decisions",
    ),
    ...ERRORS,
  },
});

/** On texts of a conversation. */
export const runRoute = createRoute({
  method: "post",
  path: "/api/conversations/{id}/regex_scripts/run",
  tags,
  summary: "Run the regex scripts of a conversation on texts that are shown, or on a text that is being edited",
  request: {
    params: IdParams,
    body: jsonBody(z.object({
      purpose: z.enum(["display", "edit"]),
      time_zone: z.string().max(100).optional(),
      texts: z.array(z.object({
        text: z.string(),
        placement: z.enum(["user_input", "ai_output", "reasoning"]),
        depth: z.number().int().min(0).optional().openapi({ description: "Number of messages after it" }),
        character_id: Id.optional().openapi({ description: "The character that wrote it" }),
      })).max(1_000),
    })),
  },
  responses: {
    200: json(z.object({ texts: z.array(z.string()), problems: RunProblems }), "The texts in the same order"),
    ...ERRORS,
  },
});

/** Converts the fields of a body to those of a script. */
export function toScriptInput(body: z.infer<typeof ScriptBody>): ScriptInput {
  const { enabled, display_only, prompt_only, run_on_edit, find_macros, min_depth, max_depth, ...same } = body;
  return {
    ...same,
    isEnabled: enabled,
    isDisplayOnly: display_only,
    isPromptOnly: prompt_only,
    runsOnEdit: run_on_edit,
    findMacros: find_macros,
    minDepth: min_depth,
    maxDepth: max_depth,
  };
}

function toScriptJson(script: AttachedScripts["scripts"][number]): z.infer<typeof Script> {
  const { name, find, replace, trim, placement, isEnabled, isDisplayOnly, isPromptOnly, runsOnEdit, findMacros } =
    script;
  return {
    ...{ name, find, replace, trim, placement },
    enabled: isEnabled,
    display_only: isDisplayOnly,
    prompt_only: isPromptOnly,
    run_on_edit: runsOnEdit,
    find_macros: findMacros,
    min_depth: script.minDepth ?? null,
    max_depth: script.maxDepth ?? null,
    ...(script.problem && { problem: script.problem }),
  };
}

const UNREADABLE: RegexScript = {
  ...{ name: "", find: "", replace: "", trim: [], placement: [], isEnabled: false, isDisplayOnly: false },
  ...{ isPromptOnly: false, runsOnEdit: false, findMacros: "none" },
};

/** Converts one of the owner's scripts to its JSON form. */
export function toOwnScriptJson({ id, createdAtMs, updatedAtMs, content }: OwnScript): z.infer<typeof ScriptResponse> {
  return {
    ...toScriptJson(content ?? UNREADABLE),
    id,
    order: content?.order ?? 0,
    created_at: new Date(createdAtMs).toISOString(),
    updated_at: new Date(updatedAtMs).toISOString(),
    ...(content === undefined && { error: { code: "unreadable" as const } }),
  };
}

/** Converts the scripts of a card or preset to their JSON form. */
export function toAttachedJson({ scripts, ...source }: AttachedScripts): z.infer<typeof Attached> {
  return { ...source, scripts: scripts.map(toScriptJson) };
}

/** Converts a text of a request to that of the service. */
export function toShownText(
  { character_id: characterId, ...text }: { character_id?: string } & Omit<ShownText, "characterId">,
): ShownText {
  return { ...text, characterId };
}

/** One of the owner's scripts. */
export type RegexScriptJson = z.output<typeof ScriptResponse>;

/** The body that saves a script. */
export type RegexScriptInputJson = z.input<typeof ScriptBody>;

/** The scripts of a card or preset. */
export type AttachedRegexScriptsJson = z.output<typeof Attached>;

/** The scripts of a conversation. */
export type ConversationRegexScriptsJson = z.output<typeof ConversationScripts>;
