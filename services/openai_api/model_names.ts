/** Names of models in the OpenAI-compatible API: `default`, `character:<id or slug>` and `connection:<id>/<model>`. */
import { AppError } from "../errors.ts";

/** The active connection and its model. */
export const DEFAULT_MODEL = "default";

/** What a model name means. */
export type ModelName =
  | { kind: "default" }
  | { kind: "character"; character: string }
  | { kind: "connection"; connectionId: string; model: string };

/** Parses a model name. @throws {AppError} `not_found` */
export function parseModelName(name: string): ModelName {
  if (name === DEFAULT_MODEL) return { kind: "default" };
  const [, kind, rest] = /^(character|connection):(.+)$/s.exec(name) ?? [];
  if (kind === "character") return { kind, character: rest! };
  const slash = rest?.indexOf("/") ?? -1;
  if (slash > 0 && slash < rest!.length - 1) {
    return { kind: "connection", connectionId: rest!.slice(0, slash), model: rest!.slice(slash + 1) };
  }
  throw createModelNotFoundError(name);
}

/** Returns the slug of a character's name: `"Ada Lovelace"` is `"ada-lovelace"`. Letters of any script stay. */
export function toSlug(name: string): string {
  return name.normalize("NFC").toLowerCase().replace(/[^\p{L}\p{N}\p{M}]+/gu, "-").replace(/^-|-$/g, "");
}

/** Creates the error for a model that doesn't exist. @param reason Why, if it isn't obvious. */
export function createModelNotFoundError(name: string, reason = "GET /api/v1/models lists the models"): AppError {
  const message = `The model "${name.slice(0, 200)}" does not exist; ${reason}`;
  return new AppError("not_found", message, { issues: [{ path: "model", message }] });
}
