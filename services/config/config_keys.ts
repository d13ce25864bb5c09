/** The one table of the configuration: parsing, checks, `--help`, `--print-config` and docs/configuration.md come from it. */
import {
  between,
  cidrs,
  type ConfigValue,
  domainSuffix,
  hostLabel,
  hosts,
  httpUrl,
  oneOf,
  origins,
  type ValueType,
} from "./config_values.ts";

/** One row of the table. */
export interface ConfigKey {
  type: ValueType;
  default: ConfigValue;
  /** What the key means, one sentence without a period. */
  about: string;
  check?: (value: ConfigValue) => void;
  /** Set where config.toml cannot hold the key. */
  notInFile?: true;
}

const MIB = 1024 * 1024;
const bytes = between(1024, 1024 ** 4);
const milliseconds = between(1, 24 * 60 * 60 * 1000);

/** Every key there is. Flags are `--with-hyphens`, environment variables `PARLOR_IN_CAPITALS`. */
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
    about: "folder that holds everything; default: the system's place for application data",
    notInFile: true,
  },
  storage_key_file: {
    type: "path",
    default: null,
    about: "file with the storage key (32 bytes raw, hex or base64); default: storage-key in the data folder",
  },
  tls_cert: { type: "path", default: null, about: "PEM file with the certificate chain: serves HTTPS without a proxy" },
  tls_key: { type: "path", default: null, about: "PEM file with the private key of tls_cert" },
  require_auth: {
    type: "boolean",
    default: true,
    about: "whether a passkey session or token is needed once a passkey is enrolled",
  },
  loopback_auth_bypass: {
    type: "boolean",
    default: true,
    about: "whether requests from this machine itself need no credentials",
  },
  pairing: {
    type: "string",
    default: "open",
    about:
      'who may enrol the first passkey: "open" (anyone who reaches the page) or "code" (needs the code printed on the terminal)',
    check: oneOf("open", "code"),
  },
  allowed_hosts: {
    type: "list",
    default: [],
    about: "names, IPs, CIDRs or *.suffix under which the server may be reached besides this machine's own",
    check: hosts,
  },
  trusted_proxies: {
    type: "list",
    default: [],
    about: "IPs or CIDRs of reverse proxies whose X-Forwarded-* headers count",
    check: cidrs,
  },
  cors_origins: {
    type: "list",
    default: [],
    about: "other web origins that may call the API from a browser",
    check: origins,
  },
  tailnet_suffix: {
    type: "string",
    default: "ts.net",
    about: "domain under which one passkey covers all machines of a tailnet",
    check: domainSuffix,
  },
  models_dir: {
    type: "path",
    default: null,
    about:
      "folder for downloaded models, on another disk perhaps; default: models in the data folder, which may be a link",
  },
  card_dirs: { type: "list", default: [], about: "folders with character cards that are read in place" },
  builtin_app_installed: {
    type: "boolean",
    default: false,
    about: "written by the server once the built-in character was installed",
  },
  setup_completed: { type: "boolean", default: false, about: "written by the server once the first-run wizard ended" },
  log_requests: { type: "boolean", default: true, about: "whether each request is logged, one line to standard error" },
  log_level: {
    type: "string",
    default: "info",
    about: "least severity that is logged: debug, info, warn or error",
    check: oneOf("debug", "info", "warn", "error"),
  },
  discover_hosts: {
    type: "list",
    default: ["127.0.0.1"],
    about: "hosts that the search for running model servers asks",
    check: hosts,
  },
  hub_url: { type: "string", default: "https://huggingface.co", about: "model hub", check: httpUrl },
  hub_token_file: { type: "path", default: null, about: "file with the access token for the model hub" },
  card_site_url: {
    type: "string",
    default: "https://api.chub.ai",
    about: "site that character search and imports ask",
    check: httpUrl,
  },
  upstream_connect_timeout_ms: {
    type: "integer",
    default: 10_000,
    about: "longest wait for a connection to a model server",
    check: milliseconds,
  },
  upstream_first_byte_timeout_ms: {
    type: "integer",
    default: 600_000,
    about: "longest wait for the first byte of an answer",
    check: milliseconds,
  },
  upstream_idle_timeout_ms: {
    type: "integer",
    default: 300_000,
    about: "longest silence within an answer",
    check: milliseconds,
  },
  max_body_bytes: {
    type: "integer",
    default: MIB,
    about: "largest request body where no other limit holds",
    check: bytes,
  },
  max_chat_body_bytes: { type: "integer", default: 32 * MIB, about: "largest body of POST /api/chat", check: bytes },
  max_conversation_body_bytes: {
    type: "integer",
    default: 64 * MIB,
    about: "largest conversation in one PUT",
    check: bytes,
  },
  max_upload_body_bytes: {
    type: "integer",
    default: 20 * MIB,
    about: "largest card, avatar or attachment; a CHARX may have 512 MiB",
    check: bytes,
  },
  max_voice_body_bytes: { type: "integer", default: 50 * MIB, about: "largest voice sample", check: bytes },
  max_import_body_bytes: {
    type: "integer",
    default: 8 * 1024 * MIB,
    about: "largest import, streamed to disk",
    check: bytes,
  },
  guard_allow: {
    type: "list",
    default: [],
    about: "CIDRs that addresses from pages and cards may lead to although they are not public",
    check: cidrs,
  },
  tailnet_enabled: { type: "boolean", default: false, about: "whether the tailnet node starts with the server" },
  tailnet_hostname: { type: "string", default: "parlor", about: "name of the tailnet node", check: hostLabel },
  tailnet_control_url: {
    type: "string",
    default: "https://controlplane.tailscale.com",
    about: "control server of the tailnet",
    check: httpUrl,
  },
  tailscaled_path: { type: "path", default: null, about: "tailscaled program; default: found on PATH" },
  yt_dlp_path: { type: "path", default: null, about: "yt-dlp program for voice imports; default: found on PATH" },
  llama_server_path: {
    type: "path",
    default: null,
    about: "llama-server program for running a downloaded model; default: found on PATH",
  },
  backup_dir: { type: "path", default: null, about: "folder for a daily backup; default: none is made" },
  backup_keep: { type: "integer", default: 7, about: "how many daily backups are kept", check: between(1, 1000) },
} as const satisfies Record<string, ConfigKey>;

/** The name of a configuration key. */
export type ConfigKeyName = keyof typeof CONFIG_KEYS;

/** All rows in order, for loops. */
export const CONFIG_ROWS = Object.entries(CONFIG_KEYS) as [ConfigKeyName, ConfigKey][];

/** Gives the environment variable of a key: `allowed_hosts` → `PARLOR_ALLOWED_HOSTS`. */
export function environmentName(key: string): string {
  return `PARLOR_${key.toUpperCase()}`;
}

/** Gives the flag of a key: `allowed_hosts` → `--allowed-hosts`. */
export function flagName(key: string): string {
  return `--${key.replaceAll("_", "-")}`;
}
