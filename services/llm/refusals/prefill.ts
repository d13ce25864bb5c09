/** Models that refuse a trailing assistant message, the start of a reply that they should continue. */
import { UpstreamError } from "../../http/upstream_error.ts";
import type { ChatMessage } from "../chat_event.ts";
import type { UpstreamTarget } from "../provider.ts";

/** Stands for the trailing message among the refused fields. */
const FIELD = "prefill";

/** What servers say: Anthropic's newer models, vLLM's and Mistral's templates. */
const REFUSAL =
  /prefill|must end with a user message|(last|final) message (must|should|role).*(user|tool)|expected last role user/i;

/** Reports whether a model is known to refuse the start of a reply. */
export function refusesPrefill({ connection }: UpstreamTarget, model: string): boolean {
  return connection?.memory?.list(model).some(({ wire }) => wire === FIELD) ?? false;
}

/**
 * Remembers that a model refuses the start of a reply, if that is what an error says.
 *
 * @param messages The messages that were sent.
 * @returns Whether it was learned, so that the call is worth another try.
 */
export function learnPrefillRefusal(
  { connection }: UpstreamTarget,
  model: string,
  messages: readonly ChatMessage[],
  error: unknown,
): boolean {
  if (!(error instanceof UpstreamError) || (error.status !== 400 && error.status !== 422)) return false;
  if (connection?.memory === undefined || messages.at(-1)?.role !== "assistant" || !REFUSAL.test(error.message)) {
    return false;
  }
  const reason = error.reported ?? error.message;
  connection.memory.add(model, { wire: FIELD, field: FIELD, status: error.status, reason });
  return true;
}
