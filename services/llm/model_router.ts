/** Chooses the connection and the model for a chat request. */
import { AppError } from "../errors.ts";
import { UpstreamError } from "../http/upstream_error.ts";
import { reportFailure, type UpstreamClient, type UpstreamTarget } from "./upstream_client.ts";
import type { ChatMessage } from "./chat_event.ts";
import type { ConnectionInspector, Connections } from "./connections/connections.ts";
import { stripReasoning } from "./reasoning.ts";

/** The model and the connection that a request or its conversation selects. */
export interface RequestedModel {
  /** Selected by the request. */
  model?: string;
  /** Selected by the request. */
  requestConnectionId?: string;
  /** Selected by the conversation. */
  connectionId?: string;
  /** Selected by the conversation. */
  conversationModel?: string;
}

/** The target of a chat request. */
export interface ModelRoute {
  target: UpstreamTarget;
  model: string;
  connection: { id: string; name: string };
}

/** Dependencies of `ModelRouter`. */
export interface ModelRouterDeps {
  connections: Connections;
  client: UpstreamClient;
  /** Identifies servers before they're called. */
  inspector: Pick<ConnectionInspector, "ensure">;
  now(): number;
  /** Called with the id of the chosen connection, before its address and key are read. */
  prepareUse?(connectionId: string, signal: AbortSignal): Promise<void>;
}

/** How long the first model of a server's list is cached. */
const FIRST_MODEL_TTL_MS = 60_000;
/** Token limit: enough for a paragraph and the reasoning before it. */
const QUESTION_MAX_TOKENS = 1_000;

/** Chooses connections and models, and has the client that calls them. */
export class ModelRouter {
  readonly client: UpstreamClient;
  readonly #deps: ModelRouterDeps;
  readonly #firstModels = new Map<string, { model: string; untilMs: number }>();

  constructor(deps: ModelRouterDeps) {
    this.#deps = deps;
    this.client = deps.client;
  }

  /**
   * Chooses the connection and the model.
   *
   * The connection is that of the request, of the conversation, or the active one if that no longer exists. The model
   * is the first available of: the request's, the conversation's (for its own connection), the connection's, and the
   * first that the server lists. See docs/api.md#chat.
   *
   * @throws {AppError} `not_available` without a connection, `not_found` if the request's connection doesn't exist,
   *   `upstream_error` if the server doesn't list a model.
   */
  async route(requested: RequestedModel, signal: AbortSignal): Promise<ModelRoute> {
    const { connections, prepareUse, inspector } = this.#deps;
    const { model, requestConnectionId, connectionId } = requested;
    if (requestConnectionId !== undefined && connections.find(requestConnectionId) === undefined) {
      throw new AppError("not_found", `Connection "${requestConnectionId}" not found`);
    }
    const own = connectionId === undefined ? undefined : connections.find(connectionId);
    const usual = own ?? connections.findActive();
    const connection = requestConnectionId === undefined ? usual : connections.find(requestConnectionId);
    const conversationModel = connection?.id === usual?.id ? requested.conversationModel : undefined;
    if (connection === undefined) {
      throw new AppError("not_available", "No model connection is active. Add one in Settings > Connections");
    }
    await prepareUse?.(connection.id, signal);
    await inspector.ensure(connection.id, signal);
    const target = connections.getTarget(connection.id);
    const used = model ?? conversationModel ?? connection.model ?? await this.#findFirstModel(target, signal);
    return {
      target: connections.getTarget(connection.id, used),
      model: used,
      connection: { id: connection.id, name: connection.name },
    };
  }

  /** Returns the target of a connection; `undefined` if it no longer exists. */
  findTarget(connectionId: string): UpstreamTarget | undefined {
    const { connections } = this.#deps;
    return connections.find(connectionId) && connections.getTarget(connectionId);
  }

  /**
   * Asks the active connection one question outside of any conversation.
   *
   * @returns The text of the reply without reasoning; `undefined` for the demo connection, which can't answer
   *   questions.
   * @throws {AppError} `not_available` without a connection, `upstream_error` if the call fails or the reply is empty.
   */
  async ask(messages: ChatMessage[], signal: AbortSignal): Promise<string | undefined> {
    const { target, model } = await this.route({}, signal);
    if (target.kind === "demo") return undefined;
    const call = { model, messages, params: { max_tokens: QUESTION_MAX_TOKENS } };
    const completion = await this.client.completeChat(target, call, signal);
    const text = stripReasoning(completion.choices[0]?.message.content ?? "").trim();
    if (text === "") throw new AppError("upstream_error", `The model "${model}" returned an empty reply`);
    return text;
  }

  async #findFirstModel(target: UpstreamTarget, signal: AbortSignal): Promise<string> {
    const { now } = this.#deps;
    const key = `${target.kind} ${target.baseUrl}`;
    const known = this.#firstModels.get(key);
    if (known !== undefined && known.untilMs > now()) return known.model;
    const model = (await this.client.listModels(target, signal)).data[0]?.id;
    if (model === undefined) {
      const message = `The server at "${target.baseUrl}" lists no models. Load one there, or enter a model name`;
      throw reportFailure(new UpstreamError("not_found", message), target, "");
    }
    this.#firstModels.set(key, { model, untilMs: now() + FIRST_MODEL_TTL_MS });
    return model;
  }
}
