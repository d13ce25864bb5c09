/**
 * Results of checks, and their messages by code. Other languages translate by code and use the same parameters. Codes are
 * never reused.
 */
import { getErrorMessage } from "../errors.ts";
import { fillTemplate, type TextParams } from "../json/text.ts";

/** The result, a sentence without a period, and how to fix it. */
interface FindingText {
  about: string;
  remedy?: string;
}

/** All findings. */
export const FINDINGS = {
  config_ok: { about: "The configuration is valid" },
  config_bad: {
    about: "{error}",
    remedy: "Fix the configuration; see parlor --help and docs/configuration.md",
  },
  few_open_files: {
    about: "The server can open only {count} more files and connections (ulimit -n)",
    remedy: "Raise the limit to at least 1024, for example by LimitNOFILE= in the systemd unit",
  },
  named_file_missing: { about: '{key} is "{path}": {error}', remedy: "Create it, or fix {key}" },
  auth_off: {
    about: "Sign-in is off (require_auth = false)",
    remedy: "Set require_auth = true; use false only for development",
  },
  open_loopback: {
    about: "Every user and program on this machine can use the API without signing in, at {addresses}",
    remedy: "Open {address} in a browser and add a passkey: it protects all of these addresses",
  },
  open_loopback_without_page: {
    about: "Every user and program on this machine can use the API without signing in, at {addresses}",
    remedy:
      'Set pairing = "code": the page doesn\'t open at these addresses in this set-up, so no passkey can be added',
  },
  open_names: {
    about: "{names}: anyone who can reach the server can use the API until the first passkey is added",
    remedy: 'Add a passkey there, or set pairing = "code"',
  },
  open_patterns: {
    about: "A passkey can't protect {patterns}: a client can use any name below it that has none",
    remedy: 'List each name in allowed_hosts, or set pairing = "code"',
  },
  open_addresses: {
    about: "Anyone who reaches {addresses} never needs a passkey: browsers don't create passkeys for IP addresses",
    remedy: 'Use a host name with HTTPS, or set pairing = "code" and sign in with a token',
  },
  open_plain_names: {
    about: "A passkey can never protect {names}: browsers don't create passkeys over plain HTTP",
    remedy: "Set tls_cert and tls_key, or use an HTTPS proxy and add it to trusted_proxies",
  },
  proxy_here_without_credentials: {
    about: "A proxy on this machine is trusted, and requests from this machine need no sign-in",
    remedy: "Set loopback_auth_bypass = false: if the proxy omits its header, every visitor looks like a local user",
  },
  machine_without_credentials: {
    about: "Every user and program on this machine can use the API without signing in (loopback_auth_bypass = true)",
    remedy: "If other people use this machine, set loopback_auth_bypass = false",
  },
  no_name_allowed: {
    about: "The server listens on {host}, but no host name is allowed from other machines",
    remedy: "Add the host name to allowed_hosts, or set host = 127.0.0.1",
  },
  exposed_plain: {
    about: "Other machines may be able to connect to {address}, without encryption",
    remedy: "Unless a proxy, a container or a firewall is in between, set host = 127.0.0.1 or tls_cert and tls_key",
  },
  guard_allow: {
    about: "URLs in cards and pages may reach {addresses} (guard_allow)",
    remedy: "Keep only addresses in guard_allow that cards or downloads must reach",
  },
  reach_ok: { about: "Every address requires sign-in" },
  no_data_folder: { about: 'The data folder "{path}" doesn\'t exist yet; the first start creates it' },
  data_folder_unreadable: {
    about: 'Can\'t read "{path}": {error}',
    remedy: "Run this as the user that runs the server",
  },
  open_to_others: {
    about: 'Other users can read "{path}" (mode {mode})',
    remedy: 'chmod {wanted} "{path}"; rotate the key (parlor key rotate) if others may have read it',
  },
  other_owner: {
    about: '"{path}" belongs to another user',
    remedy: "Run Parlor as that user, or chown the folder to this one",
  },
  shared_folder: {
    about:
      '"{path}" belongs to another user (uid {owner}, mode {mode}), so others may be able to delete files in it, but not read them',
  },
  modes_ok: { about: 'Only its owner can read "{path}"' },
  interrupted_restore: {
    about: "A restore or key rotation was interrupted",
    remedy: "Start the server once: it completes or discards it",
  },
  database_unusable: {
    about: "The database can't be used: {error}",
    remedy: "Restore a backup (parlor restore FILE --replace), or restore the file",
  },
  database_lost: {
    about: "The database app.db is missing, although this data folder has been used",
    remedy: "Stop the server if it runs. Put app.db back, or restore a backup (parlor restore FILE --replace)",
  },
  database_older: {
    about: "On {at}, the database was older than at the run before: {count} changes are missing",
    remedy: "If you didn't put an older copy there, restore the newest backup",
  },
  database_log_missing: {
    about: "On {at}, after a sudden end, the database's log app.db-wal was missing: the latest changes may be lost",
    remedy: "Leave app.db-wal where it is: it has the latest changes until a server stops properly",
  },
  manifest_remade: {
    about: "On {at}, the list of what is stored was damaged and made again: what was changed before isn't noticed",
    remedy:
      "Check the disk. To get a file without damage, make a backup and restore it (parlor restore FILE --replace)",
  },
  no_database: { about: "There is no database yet; the first start creates it" },
  key_unreadable: {
    about: "The database wasn't checked: {error}",
    remedy: "Fix the storage key, then check again",
  },
  key_missing: {
    about: 'The storage key of "{path}" is missing',
    remedy: "Import it (parlor key import FILE), or set storage_key_file",
  },
  key_wrong: {
    about: 'The storage key "{path}" is not the one of this data: {error}',
    remedy:
      "Put back the key that belongs to the data (parlor key import FILE, or storage_key_file); don't replace data",
  },
  schema_newer: {
    about: "The database has schema {version}, but this program supports schemas up to {newest}",
    remedy: "Use the newer version of Parlor",
  },
  database_ok: { about: "The database is intact and matches the storage key (schema {version})" },
  database_damaged: {
    about: "The database is damaged: {error}",
    remedy: "See which things can't be read (parlor doctor --deep), and restore them in Settings > Data",
  },
  stored_unreadable: {
    about: "Stored things that can't be read: {count} ({paths}), since {since}",
    remedy:
      "Restore them in Settings > Data, or with parlor restore --item PATH. What has no good copy can be deleted, or exported and imported again",
  },
  stored_unknown: {
    about: "The stored data wasn't checked: {error}",
    remedy: "Run this as the user that runs the server",
  },
  stored_unchecked: {
    about: "The stored data hasn't been checked as a whole yet; the running server does it, or parlor doctor --deep",
  },
  stored_ok: { about: "All stored data could be read on {at}" },
  credentials_damaged: {
    about: "credentials.json, with the passkeys, is damaged, so every address stays closed",
    remedy: "Restore credentials.json from a backup, or delete it and add every passkey again",
  },
  sealed_damaged: {
    about: "Encrypted files that are damaged or missing: {count} ({paths})",
    remedy: "Restore them from a backup (parlor restore FILE --data-dir FOLDER, then copy them)",
  },
  sealed_unknown: {
    about: "The encrypted files weren't checked: {error}",
    remedy: "Run this as the user that runs the server",
  },
  sealed_ok: { about: "All {count} encrypted files can be opened" },
  sealed_ok_partly: { about: "{count} encrypted files can be opened; parlor doctor checks the others" },
  backups_off: {
    about: "Automatic backups are off",
    remedy: "Choose a folder on another disk in Settings > Data, or set backup_dir",
  },
  backup_none_yet: { about: "There is no backup yet; the running server makes the first one" },
  backups_gone: {
    about: 'Backups were made, but "{path}" has none',
    remedy: "Check that the disk of backup_dir is mounted",
  },
  backup_dir_not_mounted: {
    about: 'The disk of "{path}" isn\'t mounted, so no backups are made',
    remedy: "Mount it, or unset backup_dir_must_be_mount",
  },
  backup_dir_unreadable: {
    about: 'The backups in "{path}" weren\'t checked: {error}',
    remedy: "Check that the disk of backup_dir is mounted and that this user can read it",
  },
  backup_failed: {
    about: "The last backup failed at {at}: {error}",
    remedy: "Fix the cause, then start a backup in Settings > Data",
  },
  backup_old: {
    about: 'The last backup, "{name}", is {days} days old',
    remedy: "Start the server: it makes a backup a day. If it runs, see its log",
  },
  backup_unusable: {
    about: 'The last backup, "{name}", can\'t be restored: {error}',
    remedy: "Start a new backup in Settings > Data, and check the disk of backup_dir",
  },
  backup_locked: {
    about: "The last backup, \"{name}\", wasn't opened: its passphrase isn't known here",
    remedy: "Set PARLOR_BACKUP_PASSPHRASE and check again",
  },
  backup_ok: { about: 'The last backup, "{name}" (Parlor {version}), can be restored' },
  backup_opens: { about: 'The last backup, "{name}" (Parlor {version}), opens; parlor doctor reads all of it' },
  clock_ok: { about: "The clock is not behind the last stored time" },
  clock_behind: {
    about: "The clock shows {now}, which is before the last stored time",
    remedy: "Set the clock of this machine, preferably with NTP",
  },
  clock_jumped: {
    about:
      "The server was off, or its clock wrong, between {before} and {now}: the trash and earlier versions are kept longer",
  },
  disk_unknown: {
    about: 'Can\'t determine the free space of "{path}": {error}',
    remedy: "Check that its disk is mounted",
  },
  disk_full: {
    about: '"{path}" has {free} GiB free',
    remedy: "Free up space: nothing can be saved when the disk is full",
  },
  disk_little: { about: '"{path}" has {free} GiB free', remedy: "Free up space before the next model or backup" },
  disk_ok: { about: '"{path}" has {free} GiB free' },
  no_program: {
    about: '{key} is "{path}", which isn\'t a program',
    remedy: "Fix {key}, or unset it to search PATH",
  },
  program_ok: { about: '{program} is "{path}"' },
  no_yt_dlp: {
    about: "{program} was not found",
    remedy: "To import voice samples from websites, install it or set {key}",
  },
  no_llama_server: {
    about: "{program} was not found",
    remedy: "To run downloaded models, install it or set {key}",
  },
  no_tailscaled: { about: "{program} was not found", remedy: "To use the tailnet node, install it or set {key}" },
  model_left: {
    about: "The model {model} runs without Parlor (process {pid})",
    remedy: "Start Parlor, which takes it over. By itself it ends 10 minutes after Parlor, but not on Windows",
  },
  other_server: {
    about: '"{url}" is not a Parlor server: status {status}',
    remedy: "Point the proxy or --url to Parlor",
  },
  server_ok: { about: 'The server responds at "{url}"' },
  server_unreachable: {
    about: 'Can\'t reach "{url}": {error}',
    remedy: "Start the server, or fix the proxy, host name and certificate",
  },
  server_off: {
    about: 'No server is running at "{url}", so the state of its model, tailnet node and tasks is unknown',
    remedy: "Start the server and run parlor doctor again",
  },
  session_key_unreadable: {
    about: "The session key can't be read, so the state of the server's model, tailnet node and tasks is unknown",
    remedy: "Run this as the user that runs the server, with its data folder",
  },
  certificate_ok: { about: "The certificate is valid until {until}" },
  certificate_expires: {
    about: "The certificate expires on {until}",
    remedy: "Renew tls_cert and restart the server",
  },
  certificate_expired: {
    about: "The certificate is valid only from {from} until {until}",
    remedy: "Renew tls_cert and restart the server",
  },
  certificate_not_served: {
    about: 'The server at "{url}" uses another certificate than the file in tls_cert',
    remedy: "If you renewed the certificate, restart the server",
  },
  clocks_differ: {
    about: "The clocks of this machine and the server differ by {seconds} s",
    remedy: "Set both with NTP",
  },
  host_refused: {
    about: 'The server doesn\'t allow the host name of "{url}"',
    remedy: "Add the host name to allowed_hosts",
  },
  proxy_untrusted: {
    about: "The server is behind a proxy that isn't trusted",
    remedy: "Add the proxy's address to trusted_proxies",
  },
  no_passkeys: { about: 'Browsers can\'t create passkeys at "{url}"', remedy: "Use a host name with HTTPS" },
  health_untold: { about: "The server didn't report the state of its model: status {status}" },
  tailnet_untold: { about: "The server didn't report the state of its tailnet node: status {status}" },
  tailnet_ok: { about: "The tailnet node runs at {url}" },
  tailnet_down: {
    about: "The tailnet node is enabled but not running (state {state}): {error}",
    remedy: "See Settings > Access on your devices",
  },
  sign_ins_refused: { about: "Sign-ins refused in the last 24 hours: {count}. The log has the addresses" },
  sign_ins_refused_often: {
    about: "Sign-ins refused in the last 24 hours: {count}. Somebody may be trying out credentials",
    remedy: "See the log for the addresses, and block them, for example with fail2ban",
  },
  calls_untold: { about: "The server didn't report its connections: status {status}" },
  call_failed: {
    about: 'The last call of the connection "{name}" ({id}) failed: {error}',
    remedy: "Start its server, or fix the connection in Settings > Connections",
  },
  tool_servers_untold: { about: "The server didn't report its tool servers: status {status}" },
  tool_server_ok: { about: 'The tool server "{name}" is ready, with tools: {count}' },
  tool_server_failed: {
    about: 'The tool server "{name}" isn\'t available: {error}',
    remedy: "Test it in Settings > Tools, or turn it off there",
  },
  jobs_untold: { about: "The server didn't report its tasks: status {status}" },
  jobs_failed: {
    about: 'Tasks failed in the last 24 hours: {count}. The last one is "{title}": {error}',
    remedy: "See Activity",
  },
  no_connection: {
    about: "No model connection is active",
    remedy: "Choose one in Settings > Connections",
  },
  model_ok: { about: 'The model of "{name}" responds in {ms} ms' },
  model_silent: {
    about: 'The model of "{name}" doesn\'t respond: {error}',
    remedy: "Start its server, or fix the connection in Settings > Connections",
  },
} as const satisfies Record<string, FindingText>;

/** Code of a finding. */
type FindingCode = keyof typeof FINDINGS;
/** Codes of findings with a remedy. */
export type RemediedCode = {
  [K in FindingCode]: (typeof FINDINGS)[K] extends { remedy: string } ? K : never;
}[FindingCode];

// Results of a check.

/** One result. */
export interface Finding {
  /** `"note"` is information; a `"problem"` needs fixing. */
  level: "ok" | "note" | "problem";
  /** Message code; one of `FINDINGS`. */
  code: FindingCode;
  /** Parameters of the message. */
  params: TextParams;
  /** What was checked and the result; a sentence without a period. */
  about: string;
  /** How to fix it; every problem has one. */
  remedy?: string;
}

/** Creates a finding for a check that passed. */
export function createOk(code: FindingCode, params: TextParams = {}): Finding {
  return createFinding("ok", code, params);
}

/** Creates an informational finding. */
export function note(code: FindingCode, params: TextParams = {}): Finding {
  return createFinding("note", code, params);
}

/** Creates a problem with its remedy. */
export function createProblem(code: RemediedCode, params: TextParams = {}): Finding {
  return createFinding("problem", code, params);
}

/** Runs a check and converts its failure to a finding, with the message as `{error}`. */
export async function runCheck(
  code: RemediedCode,
  params: TextParams,
  check: () => Finding[] | Promise<Finding[]>,
): Promise<Finding[]> {
  try {
    return await check();
  } catch (error) {
    return [createProblem(code, { ...params, error: getErrorMessage(error) })];
  }
}

function createFinding(level: Finding["level"], code: FindingCode, params: TextParams): Finding {
  const text: { about: string; remedy?: string } = FINDINGS[code];
  const about = fillTemplate(text.about, params);
  return {
    level,
    code,
    params,
    about,
    ...(text.remedy !== undefined && { remedy: fillTemplate(text.remedy, params) }),
  };
}
