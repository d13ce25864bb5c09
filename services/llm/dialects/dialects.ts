/** The table of dialects, and the choice of a connection's dialect. */
import type { ProviderKind } from "../provider.ts";
import { type Dialect, DIALECT_NAMES, type DialectName } from "./dialect.ts";
import { HOSTED_DIALECTS, LOCAL_DIALECTS } from "./known_dialects.ts";

const DIALECTS = new Map<DialectName, Dialect>(
  [...HOSTED_DIALECTS, ...LOCAL_DIALECTS].map((dialect) => [dialect.name, dialect]),
);

/** Returns a dialect of the table. */
export function getDialect(name: DialectName): Dialect {
  const dialect = DIALECTS.get(name);
  if (dialect === undefined) throw new Error(`Dialect "${name}" not found`);
  return dialect;
}

/** Returns whether the server is a hosted service, which has no endpoints besides its API. */
export function isHosted(dialect: Dialect): boolean {
  return HOSTED_DIALECTS.includes(dialect);
}

/** Returns the name if a dialect has it. */
export function parseDialectName(value: unknown): DialectName | undefined {
  return DIALECT_NAMES.find((name) => name === value);
}

/** Product names of `server_detection.ts`. */
const DIALECT_BY_SOFTWARE: Record<string, DialectName> = {
  "llama.cpp": "llama.cpp",
  vLLM: "vllm",
  KoboldCpp: "koboldcpp",
  TabbyAPI: "tabbyapi",
  Ollama: "ollama",
  "LM Studio": "lmstudio",
  mlx_lm: "mlx",
};

/** Returns the dialect of a detected product; `generic` for a product without a dialect. */
export function getDialectOfSoftware(software: string): DialectName {
  return DIALECT_BY_SOFTWARE[software] ?? "generic";
}

const HOSTS: [RegExp, DialectName][] = [
  [/(^|\.)api\.openai\.com$/, "openai"],
  [/\.(openai|services\.ai|cognitiveservices)\.azure\.com$/, "azure"],
  [/^api\.anthropic\.com$/, "anthropic"],
  [/^generativelanguage\.googleapis\.com$/, "gemini"],
  [/(^|\.)api\.mistral\.ai$/, "mistral"],
  [/^api\.deepseek\.com$/, "deepseek"],
  [/^openrouter\.ai$/, "openrouter"],
  [/^api\.groq\.com$/, "groq"],
];

/** Returns the dialect that an address reveals: a hosted service, or the path of an Azure deployment. */
export function findDialectOfAddress(baseUrl: string): DialectName | undefined {
  if (!URL.canParse(baseUrl)) return undefined;
  const { hostname, pathname } = new URL(baseUrl);
  const hosted = HOSTS.find(([host]) => host.test(hostname))?.[1];
  return hosted ?? (/\/openai\/deployments\/[^/]+/.test(pathname) ? "azure" : undefined);
}

/** Returns the deployment in an Azure address. It determines the model and has no model list. */
export function findDeployment(baseUrl: string): string | undefined {
  const name = /\/openai\/deployments\/([^/?]+)/.exec(baseUrl)?.[1];
  return name === undefined ? undefined : decodeURIComponent(name);
}

/** Facts about a connection's server. */
export interface ServerFacts {
  kind: ProviderKind;
  baseUrl: string;
  /** What the server reported. */
  detected?: DialectName;
  /** The owner's choice. */
  override?: DialectName;
}

/**
 * Returns the dialect to use: the owner's choice, or else that of the protocol, of the address, or of the server's own
 * report.
 */
export function chooseDialect({ kind, baseUrl, detected, override }: ServerFacts): Dialect {
  if (kind === "anthropic" || kind === "ollama") return getDialect(kind);
  const found = override ?? findDialectOfAddress(baseUrl) ?? detected ?? "generic";
  // The Responses API is OpenAI's, and so are the rules of unknown servers that have it.
  return getDialect(found === "generic" && kind === "openai-responses" ? "openai" : found);
}
