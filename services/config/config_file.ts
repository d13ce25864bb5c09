/**
 * Writes single keys of `<datadir>/config.toml`, keeping everything else in it as the owner wrote it, and writes what the table of
 * keys says: `--help`, `--print-config` and docs/configuration.md.
 */
import { parse as parseToml } from "smol-toml";
import { AppError } from "../errors.ts";
import { CONFIG_ROWS, type ConfigKey, type ConfigKeyName, toEnvironmentName, toFlagName } from "./config_keys.ts";
import { type Config, parseConfigValue } from "./config.ts";
import { KeyedMutex } from "../async/locks.ts";
import { readFileIfExists, writeFileAtomic } from "../storage/atomic_file.ts";
import { type ConfigValue, hosts, httpUrl } from "./config_values.ts";

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

/** Width of the column of options in `--help`; longer ones push their description to the right. */
const FLAG_WIDTH = 44;

/** Returns what `--help` prints in place of a value. */
function toPlaceholder({ type, check }: ConfigKey): string {
  if (type === "boolean") return "[true|false]";
  if (type === "integer") return "NUMBER";
  if (type === "list") return "A,B,…";
  if (type === "path") return "PATH";
  return check === httpUrl ? "URL" : check === hosts ? "HOST" : "NAME";
}

/** Returns the text of `parlor --help`. */
export function renderHelp(version: string): string {
  const lines = [
    `Parlor ${version}, a chat front end for language models`,
    "",
    "Usage: parlor [serve] [options]",
    "       parlor auth login | logout | whoami | invite",
    "       parlor import KIND PATH [--dry-run]",
    "       parlor backup | restore FILE",
    "       parlor key export | import | rotate",
    "       parlor doctor [--url URL]",
    "       parlor licenses",
    "       parlor help [COMMAND]",
    "       parlor --help | --version | --print-config",
    "",
    "Options (also available as environment variables and in config.toml in the data folder):",
  ];
  for (const [key, row] of CONFIG_ROWS) {
    const initial = row.default === null ? "" : ` [${row.type === "list" ? row.default : JSON.stringify(row.default)}]`;
    const flag = `${toFlagName(key)} ${toPlaceholder(row)}`;
    lines.push(`  ${flag.padEnd(FLAG_WIDTH)} ${row.about}${initial === " []" ? "" : initial}`);
  }
  lines.push(
    "",
    "A list has commas between its values: --allowed-hosts chat.example.org,10.0.0.0/8 (in config.toml:",
    'allowed_hosts = ["chat.example.org", "10.0.0.0/8"]). --option VALUE and --option=VALUE mean the same; a switch without a',
    "value is true.",
    "",
    "Precedence: option, environment variable (PARLOR_PORT), config.toml (port = 8787), default.",
  );
  return lines.join("\n");
}

/** Returns the text of `parlor --print-config`: valid TOML, each line with the source of its value. No key holds a secret itself. */
export function formatConfig(config: Config): string {
  const lines = CONFIG_ROWS.map(([key]) => {
    const line = `${key} = ${toToml(parseConfigValue(config, key))}`;
    return `${key === "data_dir" ? "# " : ""}${line} # ${config.sources[key]}`;
  });
  return lines.join("\n");
}

/** Gives docs/configuration.md. */
export function renderConfigurationPage(): string {
  const lines = [
    "# Configuration",
    "",
    "Precedence: flag, environment variable, `config.toml` in the data folder, default. Parlor doesn't start with an unknown",
    "key or an invalid value. `parlor --print-config` prints all values and where each comes from.",
    "",
    "`deno task docs` generates this page from `services/config/config_keys.ts`.",
    "",
    "| Key | Flag | Environment | Default | Description |",
    "|---|---|---|---|---|",
  ];
  for (const [key, row] of CONFIG_ROWS) {
    const initial = row.default === null ? "none" : `\`${JSON.stringify(row.default)}\``;
    lines.push(`| \`${key}\` | \`${toFlagName(key)}\` | \`${toEnvironmentName(key)}\` | ${initial} | ${row.about} |`);
  }
  return lines.join("\n") + "\n";
}
