/**
 * What a look at the installation says, by codes that stay: whoever shows a finding in another language knows it by its
 * code and fills the same places. A code is never used for anything else.
 */

/** How something is, a sentence without a period, and what to do about it. */
interface FindingText {
  about: string;
  remedy?: string;
}

/** All there is to say. */
export const FINDINGS = {
  config_ok: { about: "The configuration can be read" },
  config_bad: {
    about: "{error}",
    remedy: "Correct it; parlor --help and docs/configuration.md say what is meant",
  },
  named_file_missing: { about: '{key} names "{path}": {error}', remedy: "Put it there, or correct {key}" },
  auth_off: {
    about: "Nobody has to sign in (require_auth = false)",
    remedy: "Set require_auth = true; false is for development",
  },
  credentials_unreadable: {
    about: "The passkeys can't be read, so every address stays closed: {error}",
    remedy: "Restore credentials.json from a backup, or delete it and add every passkey again",
  },
  open_loopback: {
    about: "Every user and program of this machine has the whole API without signing in, under {addresses}",
    remedy: "Open the server as http://localhost in a browser and add a passkey: it closes all of them",
  },
  open_names: {
    about: "{names}: everyone who can reach the server has the whole API there until the first passkey is added",
    remedy: 'Add a passkey there, or set pairing = "code"',
  },
  open_patterns: {
    about: "{patterns} can't be closed by a passkey: a client can make up a name below it that has none",
    remedy: 'List each name in allowed_hosts, or set pairing = "code"',
  },
  open_addresses: {
    about: "Whoever reaches {addresses} needs no passkey, for good: browsers make none for an IP address",
    remedy: 'Use a name with HTTPS, or set pairing = "code" and sign in there by token',
  },
  open_plain_names: {
    about: "{names} can never be closed by a passkey: browsers make none over plain HTTP",
    remedy: "Set tls_cert and tls_key, or put an HTTPS proxy in front and name it in trusted_proxies",
  },
  proxy_here_without_credentials: {
    about: "A proxy on this machine is trusted while requests from this machine need no credentials",
    remedy: "Set loopback_auth_bypass = false: a proxy that forgets its header makes every visitor look like you",
  },
  machine_without_credentials: {
    about: "Every user and program of this machine has the whole API (loopback_auth_bypass = true)",
    remedy: "Where others use this machine set loopback_auth_bypass = false",
  },
  no_name_allowed: {
    about: "The server listens on {host}, but no name is allowed to reach it from elsewhere",
    remedy: "Name the host it is reached by in allowed_hosts, or set host = 127.0.0.1",
  },
  guard_allow: {
    about: "Addresses in cards and pages may lead to {addresses} (guard_allow)",
    remedy: "Leave in guard_allow only what a card or a download has to be fetched from",
  },
  reach_ok: { about: "Every address asks for sign-in" },
  no_data_folder: { about: 'There is no data folder "{path}" yet; the first start makes it' },
  data_folder_unreadable: {
    about: 'Cannot look at "{path}": {error}',
    remedy: "Run this as the user that runs the server",
  },
  open_to_others: {
    about: 'Others may read "{path}" (mode {mode})',
    remedy: 'chmod {wanted} "{path}"; make a new key (parlor key rotate) if others did read it',
  },
  other_owner: {
    about: '"{path}" belongs to another user',
    remedy: "Run Parlor as that user, or chown the folder to this one",
  },
  modes_ok: { about: 'Only its owner reads "{path}"' },
  interrupted_restore: {
    about: "A restore or key rotation was interrupted",
    remedy: "The next start finishes or drops it; start the server once",
  },
  database_unusable: {
    about: "The database cannot be used: {error}",
    remedy: "Restore a backup (parlor restore FILE --replace), or put the file back",
  },
  no_database: { about: "There is no database yet; the first start makes it" },
  key_unreadable: {
    about: "The database was not looked at: {error}",
    remedy: "Put the storage key right, then look again",
  },
  key_missing: {
    about: 'The storage key of "{path}" is missing',
    remedy: "Put it back: parlor key import FILE, or set storage_key_file",
  },
  schema_newer: {
    about: "The database has schema {version} and this program knows schemas up to {newest}",
    remedy: "Start the newer program again",
  },
  database_ok: { about: "The database is whole and opens by the storage key (schema {version})" },
  clock_ok: { about: "The clock is not behind what was stored last" },
  clock_behind: {
    about: "The clock says {now}, which is before what was stored last",
    remedy: "Set the clock of this machine, best by NTP",
  },
  disk_unknown: {
    about: 'Cannot see how much room "{path}" has: {error}',
    remedy: "Look whether its disk is mounted",
  },
  disk_full: {
    about: '"{path}" has {free} GiB free',
    remedy: "Make room: saves are refused when the disk is full",
  },
  disk_little: { about: '"{path}" has {free} GiB free', remedy: "Make room before the next model or backup" },
  disk_ok: { about: '"{path}" has {free} GiB free' },
  no_program: {
    about: '{key} names "{path}", which is no program',
    remedy: "Correct {key}, or unset it to search PATH",
  },
  program_ok: { about: '{program} is "{path}"' },
  no_yt_dlp: {
    about: "{program} was not found",
    remedy: "Install it, or set {key}, for voice samples from sites",
  },
  no_llama_server: {
    about: "{program} was not found",
    remedy: "Install it, or set {key}, for running a downloaded model",
  },
  no_tailscaled: { about: "{program} was not found", remedy: "Install it, or set {key}, for the tailnet node" },
  other_server: {
    about: 'What answers at "{url}" is no Parlor: status {status}',
    remedy: "Point the proxy, or --url, at Parlor",
  },
  server_ok: { about: 'A server answers at "{url}"' },
  server_unreachable: {
    about: 'Cannot reach "{url}": {error}',
    remedy: "Start the server, or correct proxy, name and certificate",
  },
  server_off: {
    about: 'No server runs at "{url}", so its model was not asked',
    remedy: "Start it and run parlor doctor again",
  },
  clocks_differ: { about: "The clocks here and there differ by {seconds} s", remedy: "Set both by NTP" },
  host_refused: {
    about: 'The server does not let itself be reached by "{url}"',
    remedy: "Name that host in allowed_hosts",
  },
  proxy_untrusted: {
    about: "A proxy stands before the server that is not trusted",
    remedy: "Name its address in trusted_proxies",
  },
  no_passkeys: { about: 'No browser makes a passkey at "{url}"', remedy: "Reach it by a name over HTTPS" },
  health_untold: { about: "The server did not tell how its model is: status {status}" },
  no_connection: {
    about: "No connection to a model is active",
    remedy: "Choose one under Settings, Connections",
  },
  model_ok: { about: 'The model of "{name}" answers in {ms} ms' },
  model_silent: {
    about: 'The model of "{name}" does not answer: {error}',
    remedy: "Start its server, or correct the connection under Settings, Connections",
  },
} as const satisfies Record<string, FindingText>;

/** Code of a finding. */
export type FindingCode = keyof typeof FINDINGS;
/** Of those that say what to do. */
export type RemediedCode = {
  [K in FindingCode]: (typeof FINDINGS)[K] extends { remedy: string } ? K : never;
}[FindingCode];
