/** Refuses writes to the ID of something in the trash, so that it can always be restored. */
import type { MiddlewareHandler } from "hono";
import type { Env } from "../../middleware/env.ts";
import { AppError } from "../../services/errors.ts";
import type { Services } from "../../services/services.ts";

/** Items of one path. Conversations refuse such writes themselves. */
interface Items {
  /** Kind of their items in the trash. */
  kind: string;
  noun: string;
  /** @throws {AppError} `not_found` */
  get(id: string): Promise<unknown>;
}

/** Refuses PUT, PATCH and POST to an ID that is only in the trash, with `in_trash`. */
export function refuseTrashedIds(services: Services): MiddlewareHandler<Env> {
  const paths: Record<string, Items> = {
    "attachments": {
      kind: "attachment",
      noun: "Attachment",
      get: async (name) => (await services.attachments()).get(name),
    },
    "characters": {
      kind: "character",
      noun: "Character",
      get: async (id) => await (await services.characters()).characters.listVersions(id), // Also of unreadable ones
    },
    "documents": {
      kind: "document",
      noun: "Document",
      get: async (id) => (await services.documents()).documents.get(id),
    },
    "image/workflows": {
      kind: "workflow",
      noun: "Workflow",
      get: async (id) => await (await services.imageGeneration()).workflows.get(id),
    },
    "lorebooks": {
      kind: "lorebook",
      noun: "Lorebook",
      get: async (id) => await (await services.lorebooks()).lorebooks.get(id),
    },
    "memories": {
      kind: "memory",
      noun: "Note",
      get: async (id) => await (await services.memory()).memories.get(id),
    },
    "personas": {
      kind: "persona",
      noun: "Persona",
      get: async (id) => await (await services.personas()).listVersions(id),
    },
    "presets": {
      kind: "preset",
      noun: "Preset",
      get: async (id) => await (await services.presets()).get(id),
    },
    "voices": {
      kind: "voice",
      noun: "Voice",
      get: async (id) => (await services.speech()).voices.get(id),
    },
  };

  return async (c, next) => {
    const { method } = c.req;
    if (method !== "PUT" && method !== "PATCH" && method !== "POST") return await next();
    const [, path = "", encodedId, below] =
      /^\/api\/(image\/workflows|[a-z]+)(?:\/([^/]+)(\/.*)?)?$/.exec(c.req.path) ?? [];
    const items = Object.hasOwn(paths, path) ? paths[path] : undefined;
    // POST without a further part has no ID in its path: `/api/characters/import`.
    const id = method !== "POST" || below !== undefined ? decode(encodedId) : c.req.query("id");
    const trashId = items && id && await services.trash.findItem(items.kind, id);
    if (items === undefined || id === undefined || !trashId) return await next();
    const isThere = await items.get(id).then(() => true, (error) => !isNotFound(error));
    if (isThere) return await next();
    throw new AppError(
      "in_trash",
      `${items.noun} "${id}" is in the trash. Restore it with POST /api/trash/${trashId}/restore, or use another id`,
      { trashId },
    );
  };
}

function decode(id: string | undefined): string | undefined {
  try {
    return id && decodeURIComponent(id);
  } catch {
    return undefined; // The route refuses it.
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof AppError && error.code === "not_found";
}
