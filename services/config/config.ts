/**
 * Parses and checks the configuration once into a frozen Config, prints it, and writes single keys of
 * `<datadir>/config.toml`, keeping everything else in it as the owner wrote it. The table of keys is config_keys.ts.
 */
import { parse as parseToml, TomlError } from "smol-toml";
import { AppError, getErrorMessage } from "../errors.ts";
import {
  CONFIG_KEYS,
  CONFIG_ROWS,
  type ConfigKey,
  type ConfigKeyName,
  toEnvironmentName,
  toFlagName,
} from "./config_keys.ts";
import { type ConfigValue, parseTomlValue, parseValueText } from "./config_values.ts";
import { KeyedMutex } from "../async/locks.ts";
import { PROJECT } from "../platform/project.ts";
import { readFileIfExists, writeFileAtomic } from "../storage/atomic_file.ts";

type CamelCase<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : S;
type ValueOf<K extends ConfigKey> = K["type"] extends "boolean" ? boolean
  : K["type"] extends "integer" ? number
  : K["type"] extends "list" ? readonly string[]
  : K["default"] extends string ? string
  : string | null;
type ConfigValues = { readonly [K in ConfigKeyName as CamelCase<K>]: ValueOf<(typeof CONFIG_KEYS)[K]> };

/** Where a value came from; "flag" and "environment" can't be changed by the API. */
export type ConfigSource = "flag" | "environment" | "file" | "default";

/** The whole configuration of a running server, frozen. `dataDir` is always set. */
export type Config = Omit<ConfigValues, "dataDir"> & {
  readonly dataDir: string;
  readonly sources: Readonly<Record<ConfigKeyName, ConfigSource>>;
};

/** What the outside gives to the configuration; tests hand in their own. */
export interface ConfigInput {
  /** Arguments without the command: `["--port", "0"]`. */
  args: readonly string[];
  environment: Readonly<Record<string, string | undefined>>;
  /** Reads a text file; `undefined` when there is none. */
  readTextFile(path: string): string | undefined;
  os: typeof Deno.build.os;
}

/**
 * Variables that Kubernetes sets for a Service named "parlor".
 *
 * @see https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
const KUBERNETES_LINK = /^PARLOR_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_\w+)$/;

/** Environment variables of Parlor that are no configuration keys. */
const OTHER_VARIABLES = new Set(["PARLOR_BACKUP_PASSPHRASE"]);

/**
 * Reads flags, environment and `<datadir>/config.toml`, in this order of precedence.
 *
 * @throws {AppError} `invalid_request` with one sentence that names the key.
 */
export function loadConfig(input: ConfigInput): Config {
  const flags = parseFlags(input.args);
  const environment = parseEnvironment(input.environment);
  const dataDir = flags.get("data_dir") ?? environment.get("data_dir") ?? getDefaultDataDir(input);
  if (typeof dataDir !== "string") throw createValueError("data_dir", "data_dir", "expected a folder");
  const file = parseFile(`${dataDir}/config.toml`, input);

  const values: Record<string, unknown> = {};
  const sources = {} as Record<ConfigKeyName, ConfigSource>;
  for (const [key, row] of CONFIG_ROWS) {
    const [source, value] = flags.has(key)
      ? ["flag" as const, flags.get(key)]
      : environment.has(key)
      ? ["environment" as const, environment.get(key)]
      : file.has(key)
      ? ["file" as const, file.get(key)]
      : ["default" as const, row.default];
    sources[key] = source;
    // An empty value means "not set".
    values[toCamelCase(key)] = Object.freeze(value ?? row.default);
  }
  // Not in the table, whose defaults are those of the documentation.
  if (sources.releases_url === "default") values.releasesUrl = PROJECT.releasesUrl || null;
  values.dataDir = dataDir;
  const config = Object.freeze({ ...values, sources: Object.freeze(sources) }) as Config;
  checkTogether(config);
  return config;
}

/** Returns the value of a key by its spelling in the table. */
function parseConfigValue(config: Config, key: ConfigKeyName): ConfigValue {
  return (config as unknown as Record<string, ConfigValue>)[toCamelCase(key)] ?? null;
}

function toCamelCase(key: string): string {
  return key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

function createValueError(key: string, origin: string, why: string): AppError {
  return new AppError("invalid_request", `Bad value for ${key} (${origin}): ${why}`);
}

function check(key: ConfigKeyName, origin: string, parse: () => ConfigValue): ConfigValue {
  try {
    const value = parse();
    if (value !== null) (CONFIG_KEYS[key] as ConfigKey).check?.(value);
    return value;
  } catch (error) {
    throw createValueError(key, origin, getErrorMessage(error));
  }
}

function parseFlags(args: readonly string[]): Map<ConfigKeyName, ConfigValue> {
  const values = new Map<ConfigKeyName, ConfigValue>();
  const byFlag = new Map(CONFIG_ROWS.map(([key, row]) => [toFlagName(key), { key, row }]));
  for (let i = 0; i < args.length; i++) {
    const [flag = "", inline] = splitOnce(args[i]!, "=");
    const known = byFlag.get(flag);
    if (known === undefined) {
      if (flag.startsWith("-")) {
        throw new AppError("invalid_request", `Unknown option ${flag}. See parlor --help`);
      }
      const list = byFlag.get(args[i - 2] ?? "")?.row.type === "list"
        ? `. Separate multiple values of ${args[i - 2]} with commas: ${args[i - 2]} ${args[i - 1]},${args[i]}`
        : ". See parlor --help";
      throw new AppError("invalid_request", `Unexpected argument "${args[i]}"${list}`);
    }
    let text = inline;
    if (text === undefined) {
      const next = args[i + 1];
      const takesNext = known.row.type === "boolean"
        ? next !== undefined && !next.startsWith("-")
        : next !== undefined && !next.startsWith("--");
      if (takesNext) text = args[++i]!;
      else if (known.row.type === "boolean") text = "true";
      else throw createValueError(known.key, flag, "no value given");
    }
    values.set(known.key, check(known.key, flag, () => parseValueText(known.row.type, text)));
  }
  return values;
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + separator.length)];
}

function parseEnvironment(environment: ConfigInput["environment"]): Map<ConfigKeyName, ConfigValue> {
  const values = new Map<ConfigKeyName, ConfigValue>();
  const byName = new Map(CONFIG_ROWS.map(([key, row]) => [toEnvironmentName(key), { key, row }]));
  for (const [name, text] of Object.entries(environment)) {
    if (!name.startsWith("PARLOR_") || text === undefined || OTHER_VARIABLES.has(name)) continue;
    const known = byName.get(name);
    if (KUBERNETES_LINK.test(name) || (name === "PARLOR_PORT" && /^\w+:\/\//.test(text))) {
      throw new AppError(
        "invalid_request",
        `Bad value for ${name}: Kubernetes sets it to "${text}" for a Service named "parlor". ` +
          "Set enableServiceLinks: false in the pod, or give the Service another name",
      );
    }
    if (known === undefined) {
      throw new AppError(
        "invalid_request",
        `Unknown environment variable ${name}. See parlor --help`,
      );
    }
    values.set(known.key, check(known.key, name, () => parseValueText(known.row.type, text)));
  }
  return values;
}

function parseFile(path: string, input: ConfigInput): Map<ConfigKeyName, ConfigValue> {
  const values = new Map<ConfigKeyName, ConfigValue>();
  const text = input.readTextFile(path);
  if (text === undefined) return values;
  let document: Record<string, unknown>;
  try {
    document = parseToml(text, { integersAsBigInt: false });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const reason = error.message.split("\n")[0]!.replace(/^Invalid TOML document: /, "");
    throw new AppError(
      "invalid_request",
      `Can't read "${path}", line ${error.line}, column ${error.column}: ${reason}`,
    );
  }
  const locate = (key: string) => locateInToml(text, path, key);
  for (const [name, value] of Object.entries(document)) {
    if (!(name in CONFIG_KEYS)) throw new AppError("invalid_request", `Unknown key ${name} in ${locate(name)}`);
    const key = name as ConfigKeyName;
    const row: ConfigKey = CONFIG_KEYS[key];
    if (row.notInFile) {
      throw createValueError(
        key,
        locate(key),
        `it can't be set in this file; use ${toFlagName(key)} or ${toEnvironmentName(key)}`,
      );
    }
    values.set(key, check(key, locate(key), () => parseTomlValue(row.type, value)));
  }
  return values;
}

/** Names the place of a key in a TOML text: `"/data/config.toml", line 3, column 1`. */
function locateInToml(text: string, path: string, key: string): string {
  const lines = text.split(/\r?\n/);
  const pattern = new RegExp(`^\\s*\\[?\\s*["']?${key.replace(/[^\w-]/g, "\\$&")}["']?\\s*[=.\\]]`);
  const index = lines.findIndex((line) => pattern.test(line));
  if (index < 0) return `"${path}"`;
  return `"${path}", line ${index + 1}, column ${lines[index]!.search(/\S/) + 1}`;
}

function getDefaultDataDir({ environment, os }: ConfigInput): string {
  const home = environment.HOME ?? environment.USERPROFILE;
  if (os === "windows" && environment.APPDATA) return `${environment.APPDATA}\\parlor`;
  if (os !== "darwin" && environment.XDG_DATA_HOME) return `${environment.XDG_DATA_HOME}/parlor`;
  if (!home) throw createValueError("data_dir", "default", "the home folder is unknown; use --data-dir");
  return os === "darwin" ? `${home}/Library/Application Support/parlor` : `${home}/.local/share/parlor`;
}

/** Rules that hold between keys. */
function checkTogether(config: Config): void {
  if ((config.tlsCert === null) !== (config.tlsKey === null)) {
    const missing = config.tlsCert === null ? "tls_cert" : "tls_key";
    throw new AppError("invalid_request", `Bad value for ${missing}: set both tls_cert and tls_key`);
  }
  const openToLoopbackNames = config.allowedHosts.some((host) =>
    /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)\.?$/i.test(host)
  );
  if (openToLoopbackNames && config.pairing === "open" && config.requireAuth) {
    throw new AppError(
      "invalid_request",
      'Bad value for allowed_hosts: a loopback name there lets any peer enrol the first passkey; also set pairing = "code" or require_auth = false',
    );
  }
}

/** Returns the text of `parlor --print-config`: valid TOML, each line with the source of its value. No key holds a secret itself. */
export function formatConfig(config: Config): string {
  const lines = CONFIG_ROWS.map(([key]) => {
    const line = `${key} = ${toToml(parseConfigValue(config, key))}`;
    return `${key === "data_dir" ? "# " : ""}${line} # ${config.sources[key]}`;
  });
  return lines.join("\n");
}

/** By path, so that concurrent writes of different keys aren't lost. */
const writes = new KeyedMutex();

/** Returns a config.toml text in which `key` has the value; comments and order stay. */
export function withKey(text: string, key: string, value: boolean | string | number): string {
  const line = `${key} = ${toToml(value)}`;
  const pattern = new RegExp(`^([ \\t]*)${key}[ \\t]*=[ \\t]*(?:"[^"\\n]*"|[^#\\n]*?)([ \\t]*(?:#[^\\n]*)?)$`, "m");
  if (pattern.test(text)) {
    return text.replace(pattern, (_, indent: string, comment: string) => `${indent}${line}${comment}`);
  }
  return text === "" || text.endsWith("\n") ? `${text}${line}\n` : `${text}\n${line}\n`;
}

/**
 * Saves one key.
 *
 * @throws {AppError} `conflict` if a flag or the environment sets the key, so that the file would have no effect.
 */
export async function saveConfigKey(
  config: Config,
  key: ConfigKeyName,
  value: boolean | string | number,
): Promise<void> {
  const source = config.sources[key];
  if (source === "flag" || source === "environment") {
    throw new AppError(
      "conflict",
      `Can't change ${key}: it's set by ${source === "flag" ? toFlagName(key) : "the environment"}`,
    );
  }
  const path = `${config.dataDir}/config.toml`;
  await writes.run(path, async () => {
    const bytes = await readFileIfExists(path);
    const text = withKey(bytes === undefined ? "" : new TextDecoder().decode(bytes), key, value);
    if (parseToml(text)[key] !== value) {
      throw new AppError("internal", `Can't save ${key} in "${path}": unexpected file format`);
    }
    await writeFileAtomic(path, text);
  });
}

/** Formats a value as TOML; a missing one as an empty string. */
function toToml(value: ConfigValue): string {
  return JSON.stringify(value ?? "");
}
