/** Settings of the owner, and the first-run wizard. */
import { createRoute, z } from "@hono/zod-openapi";
import { ERRORS, Id, IfMatch, json, jsonBody, optionalJsonBody } from "./common.ts";

const FIELDS = {
  display_name: z.string().max(200),
  default_persona_id: Id.nullable(),
  preset_id: Id.nullable(),
  auto_title: z.boolean().openapi({ description: "Let the model name conversations when it is idle" }),
  auto_summary: z.boolean().openapi({
    description: "Let the model tell, when it is idle, what happened in messages that no longer fit",
  }),
  auto_speak: z.boolean(),
  narration_voice: z.string().max(300).nullable().openapi({
    description: "Voice for what stands outside of quotation marks; null is the voice of whoever speaks",
  }),
  speech_voice: z.string().max(300).nullable().openapi({
    description: "Voice for what stands in quotation marks; null is the configured one",
  }),
  language: z.string().regex(/^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/, "a language is a tag such as de or pt-BR").max(35)
    .nullable().openapi({ description: "null follows the browser" }),
  theme: z.enum(["system", "light", "dark"]),
  accent_hue: z.number().min(0).max(360).nullable(),
  font_size: z.number().int().min(85).max(140).openapi({ description: "Percent" }),
  serif: z.boolean(),
  send_on_enter: z.boolean(),
};

const Answer = z.object(FIELDS).openapi("Settings");

const Body = z.object({
  display_name: FIELDS.display_name.nullish(),
  default_persona_id: FIELDS.default_persona_id.optional(),
  preset_id: FIELDS.preset_id.optional(),
  auto_title: FIELDS.auto_title.nullish(),
  auto_summary: FIELDS.auto_summary.nullish(),
  auto_speak: FIELDS.auto_speak.nullish(),
  narration_voice: FIELDS.narration_voice.optional(),
  speech_voice: FIELDS.speech_voice.optional(),
  language: FIELDS.language.optional(),
  theme: FIELDS.theme.nullish(),
  accent_hue: FIELDS.accent_hue.optional(),
  font_size: FIELDS.font_size.nullish(),
  serif: FIELDS.serif.nullish(),
  send_on_enter: FIELDS.send_on_enter.nullish(),
}).openapi("SettingsPatch", { description: "null puts a setting back to its default; unknown fields are ignored" });

/** The settings as they stand. */
export const getSettingsRoute = createRoute({
  method: "get",
  path: "/api/settings",
  tags: ["Settings"],
  summary: "Fetch the owner's settings",
  responses: { 200: json(Answer, "All settings; the ETag is their version"), ...ERRORS },
});

/** Change some. */
export const patchSettingsRoute = createRoute({
  method: "patch",
  path: "/api/settings",
  tags: ["Settings"],
  summary: "Change some of the owner's settings",
  request: { headers: IfMatch, body: jsonBody(Body) },
  responses: { 200: json(Answer, "All settings as they are now"), ...ERRORS },
});

/** The settings of the owner. */
export type SettingsJson = z.output<typeof Answer>;

/** Settings to change. */
export type SettingsPatchJson = z.input<typeof Body>;

const SetupStatus = z.object({
  completed: z.boolean(),
  in_container: z.boolean().describe("The server runs in a container: 127.0.0.1 is not the machine around it"),
  discover_hosts: z.array(z.string()).describe("Hosts that the search for model servers asks"),
}).openapi("SetupStatus");

/** Whether the wizard has ended. */
export const setupStatusRoute = createRoute({
  method: "get",
  path: "/api/setup/status",
  tags: ["Setup"],
  summary: "Whether the first-run wizard has ended",
  responses: { 200: json(SetupStatus, "The flag"), ...ERRORS },
});

/** Mark the wizard finished. */
export const completeSetupRoute = createRoute({
  method: "post",
  path: "/api/setup/complete",
  tags: ["Setup"],
  summary: "Mark the wizard dismissed or finished",
  request: { body: optionalJsonBody(z.object({})) },
  responses: { 200: json(SetupStatus, "The flag"), ...ERRORS },
});

/** The state of the first-run setup. */
export type SetupStatusJson = z.output<typeof SetupStatus>;
