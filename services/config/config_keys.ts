/**
 * All configuration keys. Parsing, checks and `--print-config` in config.ts are derived from this table, and here
 * `--help` and docs/configuration.md.
 */
import {
  between,
  cidrs,
  type ConfigValue,
  domainSuffix,
  hostLabel,
  hosts,
  hostsWithPorts,
  httpUrl,
  oneOf,
  origins,
  proxyUrl,
  type ValueType,
} from "./config_values.ts";

/** One configuration key. */
export interface ConfigKey {
  type: ValueType;
  default: ConfigValue;
  /** Description for `--help` and the documentation, without a period. */
  about: string;
  check?: (value: ConfigValue) => void;
  /** The key is not allowed in config.toml. */
  notInFile?: true;
}

const MIB = 1024 * 1024;
const bytes = between(1024, 1024 ** 4);
const milliseconds = between(1, 24 * 60 * 60 * 1000);

/** The keys. Flags are `--with-hyphens`, environment variables `PARLOR_IN_CAPITALS`. */
export const CONFIG_KEYS = {
  host: { type: "string", default: "127.0.0.1", about: "address to listen on", check: hosts },
  port: {
    type: "integer",
    default: 8787,
    about: "port to listen on; 0 picks a free one and prints it",
    check: between(0, 65535),
  },
  data_dir: {
    type: "path",
    default: null,
    about: "data folder; default: the system's folder for application data",
    notInFile: true,
  },
  storage_key_file: {
    type: "path",
    default: null,
    about: "file with the encryption key (32 bytes: raw, hex or base64); default: storage-key in the data folder",
  },
  tls_cert: {
    type: "path",
    default: null,
    about: "PEM file with the certificate chain, to serve HTTPS without a proxy",
  },
  tls_key: { type: "path", default: null, about: "PEM file with the private key of tls_cert" },
  require_auth: {
    type: "boolean",
    default: true,
    about: "require sign-in at addresses that have a passkey",
  },
  loopback_auth_bypass: {
    type: "boolean",
    default: true,
    about: "allow requests from this machine without sign-in",
  },
  pairing: {
    type: "string",
    default: "open",
    about:
      'who can create the first passkey: "open" (anyone who reaches the page) or "code" (requires the code printed in the terminal)',
    check: oneOf("open", "code"),
  },
  allowed_hosts: {
    type: "list",
    default: [],
    about: "additional host names, IPs, CIDRs or *.suffix at which the server can be reached",
    check: hosts,
  },
  trusted_proxies: {
    type: "list",
    default: [],
    about: "IPs or CIDRs of reverse proxies whose X-Forwarded-* headers are trusted",
    check: cidrs,
  },
  cors_origins: {
    type: "list",
    default: [],
    about: "other web origins that can call the API from a browser",
    check: origins,
  },
  tailnet_suffix: {
    type: "string",
    default: "ts.net",
    about: "domain of tailnets; one passkey works for all machines of a tailnet below it",
    check: domainSuffix,
  },
  models_dir: {
    type: "path",
    default: null,
    about: "folder for downloaded models; default: models in the data folder (can be a symbolic link)",
  },
  card_dirs: { type: "list", default: [], about: "folders with additional character cards, read-only" },
  builtin_app_installed: {
    type: "boolean",
    default: false,
    about: "set by the server after it installed the built-in character",
  },
  setup_completed: { type: "boolean", default: false, about: "set by the server after the first-run setup" },
  log_requests: { type: "boolean", default: true, about: "log each request to standard error" },
  log_level: {
    type: "string",
    default: "info",
    about: "minimum log level: debug, info, warn or error",
    check: oneOf("debug", "info", "warn", "error"),
  },
  metrics: {
    type: "boolean",
    default: false,
    about: "serve Prometheus metrics at /metrics; other machines need a token",
  },
  discover_hosts: {
    type: "list",
    default: ["127.0.0.1"],
    about: "hosts to search for model servers; HOST:PORT searches one port",
    check: hostsWithPorts,
  },
  hub_url: { type: "string", default: "https://huggingface.co", about: "model hub", check: httpUrl },
  hub_token_file: { type: "path", default: null, about: "file with the access token for the model hub" },
  card_site_url: {
    type: "string",
    default: "https://api.chub.ai",
    about: "site for character search and imports",
    check: httpUrl,
  },
  releases_url: {
    type: "string",
    default: null,
    about:
      "address of the newest release, asked once a day if the owner turns that on; default: that of the build, if it has one",
    check: httpUrl,
  },
  releases_proxy: {
    type: "string",
    default: null,
    about: "HTTP proxy for requests to releases_url, such as http://proxy.example.org:3128",
    check: proxyUrl,
  },
  upstream_connect_timeout_ms: {
    type: "integer",
    default: 10_000,
    about: "time limit for connecting to a model server",
    check: milliseconds,
  },
  upstream_first_byte_timeout_ms: {
    type: "integer",
    default: 600_000,
    about: "time limit for the first byte of a response",
    check: milliseconds,
  },
  upstream_idle_timeout_ms: {
    type: "integer",
    default: 300_000,
    about: "time limit between two parts of a response",
    check: milliseconds,
  },
  max_body_bytes: {
    type: "integer",
    default: MIB,
    about: "maximum size of other request bodies",
    check: bytes,
  },
  max_chat_body_bytes: { type: "integer", default: 32 * MIB, about: "maximum size of a chat request", check: bytes },
  max_conversation_body_bytes: {
    type: "integer",
    default: 64 * MIB,
    about: "maximum size of a saved conversation",
    check: bytes,
  },
  max_upload_body_bytes: {
    type: "integer",
    default: 20 * MIB,
    about: "maximum size of a card, avatar or attachment; 512 MiB for CHARX",
    check: bytes,
  },
  max_document_body_bytes: {
    type: "integer",
    default: 100 * MIB,
    about: "maximum size of a document",
    check: bytes,
  },
  max_voice_body_bytes: { type: "integer", default: 50 * MIB, about: "maximum size of a voice sample", check: bytes },
  max_import_body_bytes: {
    type: "integer",
    default: 8 * 1024 * MIB,
    about: "maximum size of an import",
    check: bytes,
  },
  guard_allow: {
    type: "list",
    default: [],
    about: "non-public CIDRs that URLs from users, cards and web pages may reach",
    check: cidrs,
  },
  tools_allow_programs: {
    type: "boolean",
    default: false,
    about: "let tool servers run programs on this machine, with Parlor's permissions; the API can't change this",
  },
  tailnet_enabled: { type: "boolean", default: false, about: "start the tailnet node with the server" },
  tailnet_hostname: { type: "string", default: "parlor", about: "machine name in the tailnet", check: hostLabel },
  tailnet_control_url: {
    type: "string",
    default: "https://controlplane.tailscale.com",
    about: "control server of the tailnet",
    check: httpUrl,
  },
  tailscaled_path: { type: "path", default: null, about: "path of tailscaled; default: search PATH" },
  yt_dlp_path: { type: "path", default: null, about: "path of yt-dlp, for voice imports; default: search PATH" },
  llama_server_path: {
    type: "path",
    default: null,
    about: "path of llama-server, to run downloaded models; default: search PATH",
  },
  backup_dir: { type: "path", default: null, about: "folder for backups; default: no backups" },
  backup_schedule: {
    type: "string",
    default: "daily",
    about: 'how often to back up to backup_dir: "daily", "weekly" or "off"',
    check: oneOf("daily", "weekly", "off"),
  },
  backup_after: {
    type: "list",
    default: [],
    about: "program and arguments to run after each scheduled or manual backup, with its path in PARLOR_BACKUP_FILE",
  },
  backup_dir_must_be_mount: {
    type: "boolean",
    default: false,
    about: "back up only if backup_dir, or the folder above it, is a mount point",
  },
  backup_keep: { type: "integer", default: 7, about: "number of scheduled backups to keep", check: between(1, 1000) },
} as const satisfies Record<string, ConfigKey>;

/** The name of a configuration key. */
export type ConfigKeyName = keyof typeof CONFIG_KEYS;

/** All rows. */
export const CONFIG_ROWS = Object.entries(CONFIG_KEYS) as [ConfigKeyName, ConfigKey][];

/** Returns the environment variable of a key: `allowed_hosts` → `PARLOR_ALLOWED_HOSTS`. */
export function toEnvironmentName(key: string): string {
  return `PARLOR_${key.toUpperCase()}`;
}

/** Returns the flag of a key: `allowed_hosts` → `--allowed-hosts`. */
export function toFlagName(key: string): string {
  return `--${key.replaceAll("_", "-")}`;
}

/** Width of the column of options in `--help`; longer ones push their description to the right. */
const FLAG_WIDTH = 44;

/** Returns what `--help` prints in place of a value. */
function toPlaceholder({ type, check }: ConfigKey): string {
  if (type === "boolean") return "[true|false]";
  if (type === "integer") return "NUMBER";
  if (type === "list") return "A,B,…";
  if (type === "path") return "PATH";
  return check === httpUrl || check === proxyUrl ? "URL" : check === hosts ? "HOST" : "NAME";
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
    "       parlor stop",
    "       parlor upgrade --check",
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
