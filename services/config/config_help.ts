/** The texts that the table of configuration keys makes: `--help`, `--print-config` and docs/configuration.md. */
import { type Config, configValue } from "./config.ts";
import { CONFIG_ROWS, environmentName, flagName } from "./config_keys.ts";
import type { ConfigValue } from "./config_values.ts";

/** Writes a value as TOML writes it; what is not set stands as an empty string. */
export function tomlText(value: ConfigValue): string {
  return JSON.stringify(value ?? "");
}

/** Gives the text of `parlor --help`. */
export function helpText(version: string): string {
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
    "       parlor --help | --version | --print-config",
    "",
    "Options (also available as environment variables and in config.toml in the data folder):",
  ];
  for (const [key, row] of CONFIG_ROWS) {
    const initial = row.default === null ? "" : ` [${row.type === "list" ? row.default : JSON.stringify(row.default)}]`;
    lines.push(`  ${flagName(key).padEnd(34)} ${row.about}${initial === " []" ? "" : initial}`);
  }
  lines.push("", "Precedence: option, environment variable (PARLOR_PORT), config.toml (port = 8787), default.");
  return lines.join("\n");
}

/** Gives the text of `parlor --print-config`: valid TOML, each line with the source of its value. No key holds a secret itself. */
export function printedConfig(config: Config): string {
  const lines = CONFIG_ROWS.map(([key]) => {
    const line = `${key} = ${tomlText(configValue(config, key))}`;
    return `${key === "data_dir" ? "# " : ""}${line} # ${config.sources[key]}`;
  });
  return lines.join("\n");
}

/** Gives docs/configuration.md. */
export function configurationPage(): string {
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
    lines.push(`| \`${key}\` | \`${flagName(key)}\` | \`${environmentName(key)}\` | ${initial} | ${row.about} |`);
  }
  return lines.join("\n") + "\n";
}
