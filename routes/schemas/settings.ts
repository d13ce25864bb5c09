/** Settings of the owner, and the first-run wizard. */
import { createRoute, z } from "@hono/zod-openapi";
import { BOOK_ORDERS } from "../../services/lorebooks/activation_rules.ts";
import { BUTTON_ACTIONS, findTemplateProblem } from "../../services/settings/prompt_templates.ts";
import { AttachmentUrl, ERRORS, Id, IfMatch, json, jsonBody, optionalJsonBody } from "./common.ts";

const TemplateButton = z.object({
  label: z.string().openapi({ description: "At most 60 characters" }),
  action: z.enum(BUTTON_ACTIONS).openapi({
    description:
      "What a press does: insert the text after or before what is typed, or send it alone, after or before what is typed; `send` keeps what is typed. `{{input}}` in the text is what is typed",
  }),
  character_ids: z.array(Id).optional().openapi({
    description:
      "Characters in whose chats it is, but not in groups. Without these and `conversation_ids`: in all chats",
  }),
  conversation_ids: z.array(Id).optional(),
}).openapi("TemplateButton");

const PromptTemplate = z.object({
  name: z.string().openapi({ description: "Up to 40 letters, digits, - and _; must be unique, ignoring case" }),
  text: z.string().openapi({ description: "At most 8,000 characters" }),
  button: TemplateButton.optional().openapi({
    description: "Button above the composer. Of a text that starts with a slash, it does nothing",
  }),
  quick_reply: z.object({
    set: z.string(),
    set_fields: z.record(z.string(), z.unknown()),
    fields: z.record(z.string(), z.unknown()),
  }).optional().openapi({
    description: "What else its quick reply in SillyTavern had, kept for its export; at most 8,000 characters",
  }),
}).openapi("PromptTemplate");

const FIELDS = {
  display_name: z.string().max(200),
  default_persona_id: Id.nullable(),
  preset_id: Id.nullable(),
  auto_title: z.boolean().openapi({ description: "Whether the model names conversations when it is idle" }),
  auto_summary: z.boolean().openapi({
    description: "Whether the model, when it is idle, summarizes messages that no longer fit",
  }),
  continue_after_restart: z.enum(["private", "always", "never"]).openapi({
    description:
      "Whether a reply that a restart has cut, and that its model server hasn't kept, is continued by itself: at servers in private networks, at all, or at none",
  }),
  memory_proposals: z.boolean().openapi({
    description: "Whether the model proposes memories from finished chats when it is idle",
  }),
  memory_asked: z.boolean().openapi({ description: "Whether the page has asked the owner about proposals" }),
  memory_budget_percent: z.number().int().min(0).max(50).openapi({
    description: "Share of the context for memories; 0 sends none",
  }),
  memory_idle_minutes: z.number().int().min(1).max(10_080).openapi({
    description: "Minutes without a message after which a chat is read for proposals",
  }),
  auto_speak: z.boolean(),
  keep_recordings: z.boolean().openapi({
    description: "Whether recordings of dictation and of voice conversations are kept as attachments of the messages",
  }),
  narration_voice: z.string().max(300).nullable().openapi({
    description: "Voice for text outside quotation marks; null uses the speaker's voice",
  }),
  speech_voice: z.string().max(300).nullable().openapi({
    description: "Voice for text in quotation marks; null uses the configured one",
  }),
  check_releases: z.boolean().openapi({
    description: "Whether Parlor asks `releases_url` once a day for a new version. Nothing is installed",
  }),
  dismissed_release: z.string().max(120).nullable().openapi({
    description: "The version whose notice in the page was dismissed",
  }),
  language: z.string().regex(/^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/, "a language is a tag such as de or pt-BR").max(35)
    .nullable().openapi({ description: "null uses the browser's language" }),
  theme: z.enum(["system", "light", "dark"]),
  accent_hue: z.number().min(0).max(360).nullable(),
  font_size: z.number().int().min(85).max(140).openapi({ description: "Percent" }),
  serif: z.boolean(),
  send_on_enter: z.boolean(),
  user_markdown: z.boolean().openapi({ description: "Whether the user's messages are shown as Markdown" }),
  line_breaks: z.enum(["keep", "markdown"]).openapi({
    description:
      "Whether a single line break in a message is shown as one, or as a space as in Markdown; chats with a character always keep them",
  }),
  color_speech: z.boolean().openapi({ description: "Whether quoted speech in messages of characters is colored" }),
  dim_actions: z.boolean().openapi({ description: "Whether emphasized text in messages of characters is dimmed" }),
  keep_found_lore: z.boolean().openapi({
    description:
      "Whether lorebook entries, once found, stay in the prompt until the chat is trimmed, so that the server needn't read it anew; a book's extensions.parlor_keep_found overrides it",
  }),
  lore_budget_percent: z.number().int().min(0).max(100).openapi({
    description: "Largest share of the context for all lorebook entries together, in percent",
  }),
  lore_budget_tokens: z.number().int().min(1).max(10_000_000).nullable().openapi({
    description: "Most tokens of all lorebook entries together; null for no further limit",
  }),
  lore_min_activations: z.number().int().min(0).max(1_000).openapi({
    description: "Older messages are scanned until this many lorebook entries are active; 0 for the usual scan depth",
  }),
  lore_min_activations_depth: z.number().int().min(1).max(1_000).nullable().openapi({
    description: "Most messages to scan for lore_min_activations; null for all",
  }),
  lore_max_recursion: z.number().int().min(0).max(100).nullable().openapi({
    description:
      "Most scans of active lorebook entries, one after another; null for as many as needed. If set, it also " +
      "counts the scans for lore_min_activations",
  }),
  lore_scans_names: z.boolean().openapi({
    description: "Whether lorebooks also look for keys in the names of those who speak",
  }),
  lore_order: z.enum(BOOK_ORDERS).openapi({
    description: "Whether entries of characters' lorebooks come before those of lorebooks for all chats, after them, " +
      "or together with them by their own order. It also decides which ones fit the budget",
  }),
  portrait_size: z.enum(["small", "medium", "large"]).openapi({ description: "Size of the portraits in chats" }),
  message_style: z.enum(["plain", "bubbles"]),
  show_expressions: z.boolean().openapi({ description: "Whether the mood images in a character's card are shown" }),
  chat_background: AttachmentUrl.nullable().openapi({
    description: "Image behind chats that have no background of their own",
  }),
  prompt_templates: z.array(PromptTemplate).superRefine((templates, context) => {
    const message = findTemplateProblem(templates);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  }).openapi({
    description:
      "Up to 200 texts that the page inserts when the user types a slash and their name; `[[topic]]` in a text is a variable",
  }),
};

const SettingsResponse = z.object(FIELDS).openapi("Settings");

const Body = z.object({
  display_name: FIELDS.display_name.nullish(),
  default_persona_id: FIELDS.default_persona_id.optional(),
  preset_id: FIELDS.preset_id.optional(),
  auto_title: FIELDS.auto_title.nullish(),
  auto_summary: FIELDS.auto_summary.nullish(),
  continue_after_restart: FIELDS.continue_after_restart.nullish(),
  memory_proposals: FIELDS.memory_proposals.nullish(),
  memory_asked: FIELDS.memory_asked.nullish(),
  memory_budget_percent: FIELDS.memory_budget_percent.nullish(),
  memory_idle_minutes: FIELDS.memory_idle_minutes.nullish(),
  auto_speak: FIELDS.auto_speak.nullish(),
  keep_recordings: FIELDS.keep_recordings.nullish(),
  narration_voice: FIELDS.narration_voice.optional(),
  speech_voice: FIELDS.speech_voice.optional(),
  check_releases: FIELDS.check_releases.nullish(),
  dismissed_release: FIELDS.dismissed_release.optional(),
  language: FIELDS.language.optional(),
  theme: FIELDS.theme.nullish(),
  accent_hue: FIELDS.accent_hue.optional(),
  font_size: FIELDS.font_size.nullish(),
  serif: FIELDS.serif.nullish(),
  send_on_enter: FIELDS.send_on_enter.nullish(),
  user_markdown: FIELDS.user_markdown.nullish(),
  line_breaks: FIELDS.line_breaks.nullish(),
  color_speech: FIELDS.color_speech.nullish(),
  dim_actions: FIELDS.dim_actions.nullish(),
  keep_found_lore: FIELDS.keep_found_lore.nullish(),
  lore_budget_percent: FIELDS.lore_budget_percent.nullish(),
  lore_budget_tokens: FIELDS.lore_budget_tokens.optional(),
  lore_min_activations: FIELDS.lore_min_activations.nullish(),
  lore_min_activations_depth: FIELDS.lore_min_activations_depth.optional(),
  lore_max_recursion: FIELDS.lore_max_recursion.optional(),
  lore_scans_names: FIELDS.lore_scans_names.nullish(),
  lore_order: FIELDS.lore_order.nullish(),
  portrait_size: FIELDS.portrait_size.nullish(),
  message_style: FIELDS.message_style.nullish(),
  show_expressions: FIELDS.show_expressions.nullish(),
  chat_background: FIELDS.chat_background.optional(),
  prompt_templates: FIELDS.prompt_templates.nullish(),
}).openapi("SettingsPatch", { description: "null resets a setting to its default; unknown fields are ignored" });

/** Get the settings. */
export const getSettingsRoute = createRoute({
  method: "get",
  path: "/api/settings",
  tags: ["Settings"],
  summary: "Get the owner's settings",
  responses: { 200: json(SettingsResponse, "All settings; the ETag is their version"), ...ERRORS },
});

/** The sets of quick replies. */
export const quickReplySetsRoute = createRoute({
  method: "get",
  path: "/api/settings/quick_reply_sets",
  tags: ["Settings"],
  summary: "List the sets of quick replies that the prompt templates become in SillyTavern",
  responses: {
    200: json(z.array(z.object({ name: z.string(), count: z.number().int() })), "The sets in order"),
    ...ERRORS,
  },
});

/** One of them as a file. */
export const exportQuickRepliesRoute = createRoute({
  method: "get",
  path: "/api/settings/quick_reply_sets/export",
  tags: ["Settings"],
  summary: "Get prompt templates as a set of quick replies for SillyTavern",
  request: { query: z.object({ set: z.string().openapi({ description: "Its name" }) }) },
  responses: { 200: json(z.looseObject({}), "The file"), ...ERRORS },
});

/** Change some. */
export const patchSettingsRoute = createRoute({
  method: "patch",
  path: "/api/settings",
  tags: ["Settings"],
  summary: "Change some of the owner's settings",
  request: { headers: IfMatch, body: jsonBody(Body) },
  responses: { 200: json(SettingsResponse, "All settings after the change"), ...ERRORS },
});

/** The settings of the owner. */
export type SettingsJson = z.output<typeof SettingsResponse>;

/** A template of the composer. */
export type PromptTemplateJson = z.output<typeof PromptTemplate>;

const SetupStatus = z.object({
  completed: z.boolean(),
  in_container: z.boolean().describe("Whether the server runs in a container, where 127.0.0.1 isn't the host machine"),
  discover_hosts: z.array(z.string()).describe("Hosts where the search for model servers looks"),
}).openapi("SetupStatus");

/** Whether the wizard has ended. */
export const setupStatusRoute = createRoute({
  method: "get",
  path: "/api/setup/status",
  tags: ["Setup"],
  summary: "Get whether the first-run wizard has ended",
  responses: { 200: json(SetupStatus, "Whether it has ended"), ...ERRORS },
});

/** Mark the wizard as finished. */
export const completeSetupRoute = createRoute({
  method: "post",
  path: "/api/setup/complete",
  tags: ["Setup"],
  summary: "Mark the first-run wizard as dismissed or finished",
  request: { body: optionalJsonBody(z.object({})) },
  responses: { 200: json(SetupStatus, "Whether it has ended"), ...ERRORS },
});

/** The state of the first-run setup. */
export type SetupStatusJson = z.output<typeof SetupStatus>;

/** Its button. */
export type TemplateButtonJson = z.output<typeof TemplateButton>;
