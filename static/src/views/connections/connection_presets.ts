/** Servers that many people use, as suggestions: what to enter for each. Nothing of it is binding. */
import type { ConnectionKind } from "../../api/types.ts";
import type { ConnectionFields } from "./connection_fields.ts";

/** One suggestion. Names of programs and services are the same in every language. */
export interface ConnectionPreset {
  name: string;
  kind: ConnectionKind;
  baseUrl: string;
  needsKey: boolean;
}

/** Local programs at their usual ports, then services. */
export const CONNECTION_PRESETS: readonly ConnectionPreset[] = [
  { name: "Ollama", kind: "openai", baseUrl: "http://127.0.0.1:11434/v1", needsKey: false },
  { name: "LM Studio", kind: "openai", baseUrl: "http://127.0.0.1:1234/v1", needsKey: false },
  { name: "llama.cpp", kind: "openai", baseUrl: "http://127.0.0.1:8080/v1", needsKey: false },
  { name: "KoboldCpp", kind: "openai", baseUrl: "http://127.0.0.1:5001/v1", needsKey: false },
  { name: "vLLM", kind: "openai", baseUrl: "http://127.0.0.1:8000/v1", needsKey: false },
  { name: "OpenRouter", kind: "openai", baseUrl: "https://openrouter.ai/api/v1", needsKey: true },
  { name: "OpenAI", kind: "openai", baseUrl: "https://api.openai.com/v1", needsKey: true },
  { name: "Anthropic", kind: "anthropic", baseUrl: "https://api.anthropic.com", needsKey: true },
];

/** Fills the form; a name that was typed stays, one that another suggestion put there goes. */
export function withPreset(fields: ConnectionFields, preset: ConnectionPreset): ConnectionFields {
  const isOwnName = fields.name.trim() !== "" && !CONNECTION_PRESETS.some(({ name }) => name === fields.name);
  return {
    ...fields,
    name: isOwnName ? fields.name : preset.name,
    kind: preset.kind,
    baseUrl: preset.baseUrl,
    model: "",
  };
}

/** Finds the suggestion that a form stands for, by its address. */
export function presetOf(fields: ConnectionFields): ConnectionPreset | undefined {
  return CONNECTION_PRESETS.find(({ baseUrl }) => baseUrl === fields.baseUrl);
}
