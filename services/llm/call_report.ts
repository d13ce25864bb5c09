/** Says of each call which connection it belongs to, and how it ended. */
import { AppError, type UpstreamFailure } from "../errors.ts";
import { errorFields, UpstreamError } from "../http/upstream_error.ts";
import type { Log } from "../log.ts";
import type { ChatEvent, Usage } from "./chat_event.ts";
import type { ChatStream, UpstreamTarget } from "./provider.ts";

/** Records that a server accepted a chat request. */
export function reportSuccess({ connection }: UpstreamTarget): void {
  connection?.memory?.reportCall(undefined);
}

/**
 * Records a failed call of a connection, and adds to its error which call it was. An aborted call hasn't failed.
 *
 * @returns What was thrown.
 */
export function reportFailure(thrown: unknown, { connection }: UpstreamTarget, model: string): unknown {
  if (connection === undefined || !(thrown instanceof AppError)) return thrown;
  const { code, message } = thrown;
  const kind = thrown instanceof UpstreamError ? thrown.kind : code;
  if (thrown instanceof UpstreamError) {
    const { status, retryAfterSeconds } = thrown;
    thrown.upstream = {
      kind: thrown.kind,
      ...(status !== undefined && { status }),
      connection_id: connection.id,
      connection_name: connection.name,
      model,
      ...(retryAfterSeconds !== undefined && { retry_after_s: Math.ceil(retryAfterSeconds) }),
    } satisfies UpstreamFailure;
  }
  connection.memory?.reportCall({ code, message, kind });
  return thrown;
}

/** Logs calls of connections: failures, and at level debug all. Lines have no content, keys or addresses. */
export class CallLog {
  readonly #log: Log;
  /** Failures of lists by connection. A page that is open asks for them again and again. */
  readonly #listFailures = new Map<string, string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Logs a failed call. An aborted one hasn't failed. */
  failed(thrown: unknown, { connection }: UpstreamTarget, model: string): void {
    if (!(thrown instanceof AppError)) return;
    this.#log("warn", "A call to a model failed", { connection_id: connection?.id, model, ...errorFields(thrown) });
  }

  /** Logs a list of models that can't be read; each reason once until the list can be read again. */
  listFailed(thrown: unknown, { connection }: UpstreamTarget): void {
    if (!(thrown instanceof AppError)) return;
    const fields = { connection_id: connection?.id, ...errorFields(thrown) };
    const reason = JSON.stringify(fields);
    const isKnown = connection !== undefined && this.#listFailures.get(connection.id) === reason;
    if (connection !== undefined) this.#listFailures.set(connection.id, reason);
    this.#log(isKnown ? "debug" : "warn", "Can't list the models of a connection", fields);
  }

  /** Logs a list of models. */
  listed({ connection }: UpstreamTarget, count: number): void {
    if (connection !== undefined) this.#listFailures.delete(connection.id);
    this.#log("debug", "Listed the models of a connection", { connection_id: connection?.id, count });
  }

  /** Logs the end of a call. */
  ended({ connection }: UpstreamTarget, model: string, usage: Usage | undefined): void {
    this.#log("debug", "A call to a model ended", {
      connection_id: connection?.id,
      model,
      prompt_tokens: usage?.prompt_tokens,
      completion_tokens: usage?.completion_tokens,
    });
  }

  /** Logs the start of a call. */
  started({ connection, kind }: UpstreamTarget, model: string, messageCount: number): void {
    this.#log("debug", "Calling a model", { connection_id: connection?.id, kind, model, messages: messageCount });
  }
}

/** Counts streams and tokens. */
export interface CallMeter {
  /** Counts a stream. Returns a function to call at its end. */
  startStream(): () => void;
  addTokens(kind: "prompt" | "completion", count: number): void;
}

/** Counts the tokens of a call. */
export function meterUsage(meter: CallMeter | undefined, usage: Usage | undefined): void {
  meter?.addTokens("prompt", usage?.prompt_tokens ?? 0);
  meter?.addTokens("completion", usage?.completion_tokens ?? 0);
}

/** Returns the stream with its failures reported and logged, and counted by the meter. */
export function observeStream(
  stream: ChatStream,
  target: UpstreamTarget,
  model: string,
  { meter, callLog }: { meter?: CallMeter; callLog: CallLog },
): ChatStream {
  return { ...stream, batches: () => observeBatches(stream, target, model, { meter, callLog }) };
}

async function* observeBatches(
  stream: ChatStream,
  target: UpstreamTarget,
  model: string,
  { meter, callLog }: { meter?: CallMeter; callLog: CallLog },
): AsyncGenerator<ChatEvent[]> {
  const end = meter?.startStream();
  let usage: Usage | undefined;
  try {
    for await (const batch of stream.batches()) {
      // Running totals: the last one counts.
      for (const event of batch) if (event.type === "usage") usage = event.usage;
      yield batch;
    }
    callLog.ended(target, model, usage);
  } catch (thrown) {
    const failure = reportFailure(thrown, target, model);
    callLog.failed(failure, target, model);
    throw failure;
  } finally {
    end?.();
    meterUsage(meter, usage);
  }
}
