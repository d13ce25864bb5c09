/** The texts that the table of configuration keys makes: `--help`, `--print-config` and docs/configuration.md. */
import { type Config, parseConfigValue } from "./config.ts";
import { CONFIG_ROWS, type ConfigKey, toEnvironmentName, toFlagName } from "./config_keys.ts";
import { type ConfigValue, hosts, httpUrl } from "./config_values.ts";

/** Formats a value as TOML; a missing one as an empty string. */
export function toToml(value: ConfigValue): string {
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
