/** Asks a model in the form its chat template takes: learned from a refusal, and used at once from then on. */
import type { ChatCall } from "../llm/chat_event.ts";
import { UpstreamError } from "../http/upstream_error.ts";
import { isTemplateRefusal, type Strictness, strictTurns } from "../prompts/alternating_roles.ts";
import type { UpstreamCall } from "./call_builder.ts";

/** Models whose form is remembered. */
const MODELS = 200;

/** The forms that models take. */
export class TemplateForms {
  readonly #known = new Map<string, Strictness>();

  /**
   * Asks. What a client assembled goes out as it is; what we assembled is asked again in a stricter form where the
   * template refuses the order of turns, and `sent` then holds the call as it went out.
   *
   * @throws What `ask` throws for another reason, or in the strictest form.
   */
  async ask<T>(sent: UpstreamCall, ask: (call: ChatCall) => Promise<T>): Promise<T> {
    const { target, call, prompt } = sent;
    if (prompt === undefined) return await ask(call);
    const key = `${target.baseUrl}\n${call.model}`;
    for (let strictness = this.#known.get(key) ?? 0;; strictness++) {
      sent.call = { ...call, messages: strictTurns(call.messages, strictness as Strictness) };
      try {
        const answer = await ask(sent.call);
        if (strictness > 0) this.#remember(key, strictness as Strictness);
        return answer;
      } catch (error) {
        const isRefusal = error instanceof UpstreamError && isTemplateRefusal(error.message);
        if (!isRefusal || strictness === 2) throw error;
      }
    }
  }

  #remember(key: string, strictness: Strictness): void {
    if (this.#known.size >= MODELS) this.#known.clear();
    this.#known.set(key, strictness);
  }
}
