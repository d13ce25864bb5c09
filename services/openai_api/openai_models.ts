/**
 * Lists and finds the models of the OpenAI-compatible API: characters, and the models of all connections. Their names
 * are `default`, `character:<id or slug>` and `connection:<id>/<model>`.
 */
import type { Characters } from "../characters/characters.ts";
import { AppError, ignoreErrors } from "../errors.ts";
import type { Connection, Connections } from "../llm/connections/connections.ts";
import type { ModelRouter } from "../llm/model_router.ts";
import type { UpstreamClient } from "../llm/upstream_client.ts";
import { isId } from "../storage/ids.ts";

/** Dependencies of `OpenAiModels`. */
export interface OpenAiModelsDeps {
  characters: Pick<Characters, "list" | "get">;
  connections: Connections;
  upstream: Pick<UpstreamClient, "listModels">;
  modelRouter: Pick<ModelRouter, "route">;
}

/** One model of the list. */
export interface OpenAiModel {
  id: string;
  object: "model";
  /** When the character or connection was last changed, in seconds since 1970. */
  created: number;
  owned_by: string;
  /** Display name: the character's name, or model and connection. */
  name: string;
}

/** The characters and connections that a caller may use. */
export interface AllowedModels {
  characters: "all" | readonly string[];
  connections: "all" | readonly string[];
}

/** All models, and the connections whose models couldn't be listed. */
export interface OpenAiModelList {
  data: OpenAiModel[];
  unavailable: { connectionId: string; name: string; error: AppError }[];
}

/** The target of a request, and the character that speaks. */
export interface ResolvedModel {
  connectionId: string;
  /** The name of the model at its server. */
  model: string;
  characterId?: string;
}

/** Time limit. Clients wait for this list before they show anything. */
const LIST_TIMEOUT_MS = 5_000;

/** Lists and finds models. */
export class OpenAiModels {
  readonly #deps: OpenAiModelsDeps;

  constructor(deps: OpenAiModelsDeps) {
    this.#deps = deps;
  }

  /**
   * Lists the default, the characters by name, and the models of each connection. If a server doesn't respond, lists
   * the model in the settings of its connection.
   */
  async list(signal: AbortSignal, allowed: AllowedModels = EVERYTHING): Promise<OpenAiModelList> {
    const connections = this.#deps.connections.list().filter(({ id, isUnreadable }) =>
      !isUnreadable && includes(allowed.connections, id)
    );
    const [characters, ...served] = await Promise.all([
      this.#listCharacters(allowed),
      ...connections.map((connection) => this.#listServed(connection, signal)),
    ]);
    const own = toDefaultModel(connections);
    return {
      data: [...own === undefined ? [] : [own], ...characters, ...served.flatMap(({ models }) => models)],
      unavailable: served.flatMap(({ connection: { id, name }, error }) =>
        error === undefined ? [] : [{ connectionId: id, name, error }]
      ),
    };
  }

  /** Returns one model. @throws {AppError} `not_found` with the path `model`; `forbidden` if the caller may not use it */
  async get(name: string, signal: AbortSignal, allowed: AllowedModels = EVERYTHING): Promise<OpenAiModel> {
    const { connections } = this.#deps;
    const parsed = parseModelName(name);
    if (parsed.kind === "connection" && !includes(allowed.connections, parsed.connectionId)) {
      throw createForbiddenError(name);
    }
    const usable = connections.list().filter(({ id, isUnreadable }) =>
      !isUnreadable && includes(allowed.connections, id)
    );
    let found: OpenAiModel | undefined;
    if (parsed.kind === "connection") {
      const connection = usable.find(({ id }) => id === parsed.connectionId);
      const listed = connection && await this.#listServed(connection, signal);
      found = listed?.models.find(({ id }) => id === name);
      // A server that can't be asked may still have the model.
      if (listed?.error !== undefined) found ??= toModel(connection!, parsed.model);
    } else if (parsed.kind === "character") {
      const id = await this.#findCharacter(name, parsed.character, allowed);
      found = (await this.#listCharacters(allowed)).find((model) => model.id === `character:${id}`);
    } else found = toDefaultModel(usable);
    if (found === undefined) throw createModelNotFoundError(name);
    return found;
  }

  /**
   * Finds the target of a model name.
   *
   * @throws {AppError} `not_found` with the path `model`; `forbidden` if the caller may not use it; `not_available` without an active connection;
   *   `upstream_error` if the server's first model is needed and it lists none.
   */
  async resolve(name: string, signal: AbortSignal, allowed: AllowedModels = EVERYTHING): Promise<ResolvedModel> {
    const { connections, modelRouter } = this.#deps;
    const parsed = parseModelName(name);
    if (parsed.kind === "connection") {
      const { connectionId, model } = parsed;
      if (!includes(allowed.connections, connectionId)) throw createForbiddenError(name);
      if (!isId(connectionId) || connections.find(connectionId) === undefined) {
        throw createModelNotFoundError(name, `connection "${connectionId.slice(0, 64)}" not found`);
      }
      return { connectionId, model };
    }
    const characterId = parsed.kind === "character"
      ? await this.#findCharacter(name, parsed.character, allowed)
      : undefined;
    const route = await modelRouter.route({}, signal);
    if (!includes(allowed.connections, route.connection.id)) throw createForbiddenError(name);
    return { connectionId: route.connection.id, model: route.model, characterId };
  }

  async #listCharacters(allowed: AllowedModels): Promise<OpenAiModel[]> {
    return (await this.#readItems(allowed)).map(({ id, name, updated_at: at }) => ({
      id: `character:${id}`,
      object: "model",
      created: toSeconds(Date.parse(at)),
      owned_by: "parlor",
      name,
    }));
  }

  async #listServed(connection: Connection, signal: AbortSignal) {
    const { connections, upstream } = this.#deps;
    const timeout = AbortSignal.timeout(LIST_TIMEOUT_MS);
    let names: string[] = [];
    let error: AppError | undefined;
    try {
      const list = await upstream.listModels(connections.getTarget(connection.id), AbortSignal.any([signal, timeout]));
      names = list.data.map(({ id }) => id);
    } catch (thrown) {
      signal.throwIfAborted();
      if (!(thrown instanceof AppError) && !timeout.aborted) throw thrown;
      error = thrown instanceof AppError ? thrown : new AppError(
        "upstream_timeout",
        `The server of connection "${connection.name}" didn't list its models within ${LIST_TIMEOUT_MS / 1000} s`,
      );
    }
    const { model } = connection;
    if (model !== undefined && !names.includes(model)) names.unshift(model);
    return { connection, models: names.map((listed) => toModel(connection, listed)), error };
  }

  /** Finds a character by its id, or by the slug of its name if only one has it. */
  async #findCharacter(name: string, idOrSlug: string, allowed: AllowedModels): Promise<string> {
    const found = isId(idOrSlug) && includes(allowed.characters, idOrSlug)
      ? await this.#deps.characters.get(idOrSlug).catch(ignoreErrors("not_found"))
      : undefined;
    if (found !== undefined) return found.character.id;
    const slug = toSlug(idOrSlug);
    const named = slug === "" ? [] : (await this.#readItems(allowed)).filter((item) => toSlug(item.name) === slug);
    if (named.length === 1) return named[0]!.id;
    if (named.length === 0) {
      // The same for a character that doesn't exist and one that the caller may not use.
      throw allowed.characters === "all" ? createModelNotFoundError(name) : createForbiddenError(name);
    }
    throw createModelNotFoundError(name, `${named.length} characters have this name. Use an ID instead`);
  }

  async #readItems({ characters }: AllowedModels): Promise<{ id: string; name: string; updated_at: string }[]> {
    const items: { id: string; name: string; updated_at: string; unreadable?: true }[] =
      (await this.#deps.characters.list({})).items.map((item) => JSON.parse(item));
    return items.filter(({ id, unreadable }) => !unreadable && includes(characters, id));
  }
}

function toDefaultModel(connections: readonly Connection[]): OpenAiModel | undefined {
  const active = connections.find(({ isActive }) => isActive);
  return active && {
    id: DEFAULT_MODEL,
    object: "model",
    created: toSeconds(active.updatedAtMs),
    owned_by: "parlor",
    name: active.name,
  };
}

function toModel({ id, name, updatedAtMs }: Connection, model: string): OpenAiModel {
  return {
    id: `connection:${id}/${model}`,
    object: "model",
    created: toSeconds(updatedAtMs),
    owned_by: name,
    name: `${model} (${name})`,
  };
}

const EVERYTHING: AllowedModels = { characters: "all", connections: "all" };

function includes(allowed: "all" | readonly string[], id: string): boolean {
  return allowed === "all" || allowed.includes(id);
}

function createForbiddenError(name: string): AppError {
  const message = `This token may not use the model "${name.slice(0, 200)}"`;
  return new AppError("forbidden", message, { issues: [{ path: "model", message }] });
}

function toSeconds(ms: number): number {
  return Math.floor(ms / 1000);
}

/** The active connection and its model. */
const DEFAULT_MODEL = "default";

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
function createModelNotFoundError(name: string, reason = "GET /api/v1/models lists the models"): AppError {
  const message = `The model "${name.slice(0, 200)}" doesn't exist; ${reason}`;
  return new AppError("not_found", message, { issues: [{ path: "model", message }] });
}
