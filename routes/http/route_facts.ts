/**
 * Route facts for the middleware, derived from the API document: declared once and used for 405, body limits and types.
 */
import type { RouteFacts } from "../../middleware/route_table.ts";
import { MAX_CHARX_BYTES } from "../../services/characters/charx/charx_format.ts";
import type { Config } from "../../services/config/config.ts";
import { MAX_RECORDING_BYTES } from "../../services/transcription/transcription.ts";
import type { Router } from "./router.ts";

/** Body limits in bytes, from the configuration. */
export interface BodyLimits {
  default: number;
  chat: number;
  conversation: number;
  card: number;
  cardForm: number;
  charx: number;
  upload: number;
  voice: number;
  recording: number;
  document: number;
  import: number;
}

/** Routes with a larger body limit than the default (docs/api.md#limits). */
const BODY_CLASSES: Record<string, Exclude<keyof BodyLimits, "default">> = {
  "PUT /api/attachments/{name}": "upload",
  "POST /api/chat": "chat",
  "POST /api/chat/preview": "chat",
  "POST /api/image/generate": "chat",
  "POST /api/v1/chat/completions": "chat",
  "POST /api/v1/responses": "chat",
  "POST /api/v1/embeddings": "chat",
  "POST /api/v1/audio/transcriptions": "recording",
  "PUT /api/conversations/{id}": "conversation",
  "PUT /api/characters/{id}": "card",
  "PUT /api/characters/{id}/avatar": "card",
  "PUT /api/personas/{id}/avatar": "card",
  "POST /api/personas/import": "cardForm",
  "POST /api/characters/import": "charx",
  "PUT /api/lorebooks/{id}": "card",
  "POST /api/lorebooks/import": "card",
  "POST /api/lorebooks/test": "card",
  "PUT /api/presets/{id}": "card",
  "POST /api/presets/import": "card",
  "POST /api/conversations/{id}/messages": "chat",
  "PATCH /api/conversations/{id}/messages/{mid}": "chat",
  "POST /api/conversations/{id}/queue": "chat",
  "PATCH /api/conversations/{id}/queue/{n}": "chat",
  "PUT /api/regex_scripts/{id}": "chat",
  "POST /api/regex_scripts/import": "chat",
  "POST /api/regex_scripts/test": "chat",
  "POST /api/conversations/{id}/regex_scripts/run": "chat",
  "POST /api/voices": "voice",
  "POST /api/stt/transcribe": "recording",
  "POST /api/documents": "document",
  "POST /api/import": "import",
};

/** Classes whose handlers read the body as a stream, because it is written to disk or is too large for memory. */
const STREAMED_CLASSES = new Set<keyof BodyLimits>(["charx", "upload", "voice", "document", "import"]);

/** Routes with bodies that may be whole files of strangers. */
const FOREIGN_JSON = new Set([
  "PUT /api/characters/{id}",
  "PUT /api/lorebooks/{id}",
  "POST /api/lorebooks/test",
  "PUT /api/presets/{id}",
]);

/** Space for the parts of a form around its file, in bytes. Routes check the size of the file. */
const FORM_BYTES = 16 * 1024;

/** Returns the body limits of the configuration. */
export function getBodyLimits(config: Config): BodyLimits {
  return {
    default: config.maxBodyBytes,
    chat: config.maxChatBodyBytes,
    conversation: config.maxConversationBodyBytes,
    card: config.maxUploadBodyBytes, // read whole, because a card is validated before it is stored
    cardForm: config.maxUploadBodyBytes + FORM_BYTES,
    charx: Math.max(MAX_CHARX_BYTES, config.maxUploadBodyBytes), // for other kinds of cards, no more is held in memory than for "card"
    upload: config.maxUploadBodyBytes,
    voice: config.maxVoiceBodyBytes,
    recording: MAX_RECORDING_BYTES + FORM_BYTES,
    document: config.maxDocumentBodyBytes + FORM_BYTES,
    import: config.maxImportBodyBytes,
  };
}

/** Returns the facts of all routes mounted so far. */
export function getRouteFacts(router: Router, limits: BodyLimits): RouteFacts[] {
  return router.openAPIRegistry.definitions.flatMap((definition) => {
    if (definition.type !== "route") return [];
    const { method, path: pattern, request } = definition.route;
    const name = `${method.toUpperCase()} ${pattern}`;
    const bodyClass = BODY_CLASSES[name] ?? "default";
    return [{
      method: method.toUpperCase(),
      pattern,
      bodyTypes: Object.keys(request?.body?.content ?? {}),
      isBodyRequired: request?.body?.required === true,
      bodyLimitBytes: limits[bodyClass],
      isBodyStreamed: STREAMED_CLASSES.has(bodyClass),
      passesLongJson: FOREIGN_JSON.has(name),
    }];
  });
}
