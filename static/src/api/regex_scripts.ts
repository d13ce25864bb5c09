/** API calls for regex scripts. */
import type { ApiClient, RequestOptions } from "./client.ts";
import type { ConversationRegexScripts, RegexScript, RegexScriptInput } from "./types.ts";

/** A text of a message, for the scripts of its chat. */
export interface ScriptedText {
  text: string;
  placement: "user_input" | "ai_output" | "reasoning";
  depth?: number;
  character_id?: string;
}

/** Why a script had no effect. */
export type ScriptProblem = NonNullable<RegexScript["problem"]>;

/** API calls for regex scripts. All calls throw `ApiError`. */
export interface RegexScriptApi {
  list(): Promise<RegexScript[]>;
  save(id: string, input: RegexScriptInput): Promise<RegexScript>;
  remove(id: string, options?: RequestOptions): Promise<void>;
  /** Adds the scripts of a file of SillyTavern. */
  import(json: unknown): Promise<RegexScript[]>;
  test(script: RegexScriptInput, text: string): Promise<{ text: string; problem?: ScriptProblem }>;
  decide(hash: string, accepted: boolean): Promise<void>;
  listOf(conversationId: string): Promise<ConversationRegexScripts>;
  run(
    conversationId: string,
    purpose: "display" | "edit",
    texts: readonly ScriptedText[],
  ): Promise<{ texts: string[]; problems: { name: string; problem: ScriptProblem }[] }>;
}

/** Returns the calls, bound to a client. */
export function regexScriptApi(client: ApiClient): RegexScriptApi {
  const path = "/api/regex_scripts";
  const one = (id: string) => `${path}/${encodeURIComponent(id)}`;
  const of = (id: string) => `/api/conversations/${encodeURIComponent(id)}/regex_scripts`;
  const json = async <T>(method: string, path: string, body?: unknown) =>
    await (await client.send(method, path, body === undefined ? {} : { body })).json() as T;
  return {
    list: () => json("GET", path),
    save: (id, input) => json("PUT", one(id), input),
    async remove(id, options) {
      await (await client.send("DELETE", one(id), options)).body?.cancel();
    },
    import: (file) => json("POST", `${path}/import`, file),
    test: (script, text) => json("POST", `${path}/test`, { script, text }),
    async decide(hash, accepted) {
      await (await client.send("POST", `${path}/decisions`, { body: { hash, accepted } })).body?.cancel();
    },
    listOf: (id) => json("GET", of(id)),
    run: (id, purpose, texts) => {
      const time_zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
      return json("POST", `${of(id)}/run`, { purpose, texts, time_zone });
    },
  };
}
