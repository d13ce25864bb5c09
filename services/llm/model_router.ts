/** Chooses the connection and the model for a chat request. */
import { AppError } from "../errors.ts";
import { UpstreamError } from "../http/upstream_error.ts";
import { reportFailure, type UpstreamClient, type UpstreamTarget } from "./upstream_client.ts";
import type { ChatMessage } from "./chat_event.ts";
import type { ConnectionInspector, Connections } from "./connections/connections.ts";
import { stripReasoning } from "./reasoning.ts";

/** The model and the connection that a request and its conversation name. */
export interface WantedModel {
  /** Named by the request. */
  model?: string;
  /** Named by the request. */
  requestConnectionId?: string;
  /** Named by the conversation. */
  connectionId?: string;
  /** Named by the conversation. */
  conversationModel?: string;
}

/** Where a chat request goes. */
export interface ModelRoute {
  target: UpstreamTarget;
  model: string;
  connection: { id: string; name: string };
}

/** Dependencies of a ModelRouter. */
export interface ModelRouterDeps {
  connections: Connections;
  client: UpstreamClient;
  /** Finds out what servers are before they are called. */
  inspector: Pick<ConnectionInspector, "ensure">;
  now(): number;
  /** Called with the id of the chosen connection, before its address and key are read. */
  beforeUse?(connectionId: string, signal: AbortSignal): Promise<void>;
}

/** How long the first model of a server's list is used without asking again. */
const FIRST_MODEL_TTL_MS = 60_000;
/** Enough for a paragraph and for the reasoning before it. */
const QUESTION_MAX_TOKENS = 1_000;

/** Chooses connections and models, and holds the client that calls them. */
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
   * The connection is the request's, the conversation's, or the active one if that is gone. The model is the first of: the
   * request's, the conversation's (at its own connection), the connection's, the first that the server lists. See
   * docs/api.md#chat.
   *
   * @throws {AppError} `not_available` without a connection, `not_found` if there is none of the request's id,
   *   `upstream_error` for a server that lists no model.
   */
  async route(wanted: WantedModel, signal: AbortSignal): Promise<ModelRoute> {
    const { connections, beforeUse, inspector } = this.#deps;
    const { model, requestConnectionId, connectionId } = wanted;
    if (requestConnectionId !== undefined && connections.find(requestConnectionId) === undefined) {
      throw new AppError("not_found", `There is no connection "${requestConnectionId}"`);
    }
    const own = connectionId === undefined ? undefined : connections.find(connectionId);
    const usual = own ?? connections.findActive();
    const connection = requestConnectionId === undefined ? usual : connections.find(requestConnectionId);
    const conversationModel = connection?.id === usual?.id ? wanted.conversationModel : undefined;
    if (connection === undefined) {
      throw new AppError("not_available", "No connection to a model is active; add one under Settings, Connections");
    }
    await beforeUse?.(connection.id, signal);
    await inspector.ensure(connection.id, signal);
    const target = connections.getTarget(connection.id);
    return {
      target,
      model: model ?? conversationModel ?? connection.model ?? await this.#firstModel(target, signal),
      connection: { id: connection.id, name: connection.name },
    };
  }

  /**
   * Asks the active connection one question outside of any conversation.
   *
   * @returns The text of the answer without reasoning. `undefined` for the demo connection, which can't answer questions.
   * @throws {AppError} `not_available` without a connection, `upstream_error` if the call fails or the answer is empty.
   */
  async ask(messages: ChatMessage[], signal: AbortSignal): Promise<string | undefined> {
    const { target, model } = await this.route({}, signal);
    if (target.kind === "demo") return undefined;
    const call = { model, messages, params: { max_tokens: QUESTION_MAX_TOKENS } };
    const completion = await this.client.completeChat(target, call, signal);
    const text = stripReasoning(completion.choices[0]?.message.content ?? "").trim();
    if (text === "") throw new AppError("upstream_error", `The model "${model}" gave no answer`);
    return text;
  }

  async #firstModel(target: UpstreamTarget, signal: AbortSignal): Promise<string> {
    const { now } = this.#deps;
    const key = `${target.kind} ${target.baseUrl}`;
    const known = this.#firstModels.get(key);
    if (known !== undefined && known.untilMs > now()) return known.model;
    const model = (await this.client.listModels(target, signal)).data[0]?.id;
    if (model === undefined) {
      const message = `The server at "${target.baseUrl}" lists no model; load one there, or name one`;
      throw reportFailure(new UpstreamError("not_found", message), target, "");
    }
    this.#firstModels.set(key, { model, untilMs: now() + FIRST_MODEL_TTL_MS });
    return model;
  }
}
