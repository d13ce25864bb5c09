/** `parlor doctor`: checks the data, the machine, the server and who can reach it, and explains how to fix problems. */
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { getErrorMessage } from "../errors.ts";
import { isStillRunning, LeftServerFile } from "../models/runner/left_server.ts";
import { findOnPath } from "../process/supervised_process.ts";
import { pathExists } from "../storage/atomic_file.ts";
import { TAILSCALED_FOLDERS } from "../tailnet/node_process.ts";
import { checkData, type DataLocation } from "./data_checks.ts";
import { createOk, createProblem, type Finding, note, type RemediedCode, runCheck } from "./finding.ts";
import { findLocalServer, mustNameClient, readCertificate } from "./local_server.ts";
import { findRunningServer } from "./running_server.ts";
import { checkReachability, checkServer, type ReachConfig, type ServerQuestion } from "./reachability_checks.ts";

/** The configuration it checks. */
export interface DoctorConfig extends ReachConfig, DataLocation {
  backupDir: string | null;
  backupDirMustBeMount: boolean;
  backupSchedule: string;
  modelsDir: string | null;
  tlsKey: string | null;
  hubTokenFile: string | null;
  cardDirs: readonly string[];
  tailscaledPath: string | null;
  ytDlpPath: string | null;
  llamaServerPath: string | null;
}

/** What to check. */
export interface DoctorRequest {
  /** Reads the configuration. @throws {AppError} with the message a start would end with. */
  readConfig(): DoctorConfig;
  /** Passphrase of the daily backups, if it's known. */
  backupPassphrase: string | undefined;
  /** How much of the encrypted files, and of the last backup, to read, in bytes; `Infinity` for all. */
  maxBytes: number;
  /** Opens every row and file, too. */
  isDeep?: boolean;
  /** Another URL that users use, to be checked too. */
  url?: string;
}

/** Runs all checks. An invalid configuration ends them. */
export async function runDoctorChecks(request: DoctorRequest): Promise<Finding[]> {
  const { readConfig, backupPassphrase, maxBytes, isDeep, url } = request;
  let own: DoctorConfig;
  try {
    own = readConfig();
  } catch (error) {
    return [createProblem("config_bad", { error: getErrorMessage(error) })];
  }
  const sessionKey = await Deno.readFile(`${own.dataDir}/session-key`).catch(() => undefined);
  const running = await findRunningServer(own, sessionKey);
  const config = running ?? own;
  const { dataDir, backupDir, modelsDir, tlsCert } = config;
  const caCert = tlsCert === null ? undefined : await Deno.readTextFile(tlsCert).catch(() => undefined);
  const question = { sessionKey, caCert } satisfies Partial<ServerQuestion>;
  return [
    createOk("config_ok"),
    ...await checkFiles(config),
    ...checkCertificate(tlsCert),
    ...await checkReachability(config),
    ...await checkData({ ...config, passphrase: backupPassphrase, maxBytes, isDeep }),
    ...await checkDisk([dataDir, backupDir, modelsDir].filter((folder) => folder !== null)),
    ...await checkTools(listTools(config)),
    ...(running === undefined ? await checkLeftModel(dataDir) : []),
    ...await checkServer({
      ...question,
      ...findLocalServer(config),
      namesClient: mustNameClient(config),
      isExpected: false,
    }),
    ...(url === undefined ? [] : await checkServer({ ...question, url, isExpected: true })),
  ];
}

/** Checks that the files and folders in the configuration exist. */
async function checkFiles(
  { tlsCert, tlsKey, storageKeyFile, hubTokenFile, cardDirs }: DoctorConfig,
): Promise<Finding[]> {
  const named: [string, string | null][] = [
    ...[["tls_cert", tlsCert], ["tls_key", tlsKey], ["storage_key_file", storageKeyFile]] as [string, string | null][],
    ["hub_token_file", hubTokenFile],
    ...cardDirs.map((folder): [string, string] => ["card_dirs", folder]),
  ];
  const findings = await Promise.all(
    named.map(([key, path]) =>
      path === null ? [] : runCheck("named_file_missing", { key, path }, async () => {
        const { isDirectory } = await Deno.stat(path);
        if (!isDirectory) (await Deno.open(path)).close();
        return [];
      })
    ),
  );
  return findings.flat();
}

function listTools({ ytDlpPath, llamaServerPath, tailscaledPath }: DoctorConfig): Tool[] {
  return [
    { program: "yt-dlp", key: "yt_dlp_path", configured: ytDlpPath, missing: "no_yt_dlp" },
    { program: "llama-server", key: "llama_server_path", configured: llamaServerPath, missing: "no_llama_server" },
    {
      program: "tailscaled",
      key: "tailscaled_path",
      configured: tailscaledPath,
      otherFolders: TAILSCALED_FOLDERS,
      missing: "no_tailscaled",
    },
  ];
}

/** An external program and its configuration key. */
interface Tool {
  program: string;
  key: string;
  /** Configured path. */
  configured: string | null;
  /** Searched after PATH. */
  otherFolders?: readonly string[];
  /** Code of the finding if it's missing. */
  missing: RemediedCode;
}

const EXPIRES_SOON_MS = 14 * 24 * 60 * 60 * 1000;

/** Checks how long the certificate is valid. */
function checkCertificate(path: string | null): Finding[] {
  const certificate = path === null ? undefined : readCertificate(path);
  if (certificate === undefined) return []; // `checkFiles` reports an unreadable file.
  const [fromMs, untilMs] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  const params = { from: day(fromMs), until: day(untilMs) };
  if (Date.now() < fromMs || Date.now() > untilMs) return [createProblem("certificate_expired", params)];
  const isSoon = untilMs - Date.now() < EXPIRES_SOON_MS;
  return [isSoon ? note("certificate_expires", params) : createOk("certificate_ok", params)];
}

const GIB = 1024 ** 3;
const LITTLE_BYTES = 1 * GIB;
const TOO_LITTLE_BYTES = GIB / 8;

/** Checks the free space of the data and backup folders. */
async function checkDisk(folders: readonly string[]): Promise<Finding[]> {
  const findings = await Promise.all(
    folders.map((folder) =>
      runCheck("disk_unknown", { path: folder }, async () => {
        const { bavail, bsize } = await statfs(await findExistingParent(folder));
        const free = bavail * bsize;
        const params = { path: folder, free: (free / GIB).toFixed(1) };
        if (free < TOO_LITTLE_BYTES) return [createProblem("disk_full", params)];
        return [free < LITTLE_BYTES ? note("disk_little", params) : createOk("disk_ok", params)];
      })
    ),
  );
  return findings.flat();
}

/** Checks the programs. */
export async function checkTools(tools: readonly Tool[]): Promise<Finding[]> {
  return await Promise.all(tools.map(async ({ program, key, configured, otherFolders, missing }) => {
    const path = configured ?? await findOnPath(program, otherFolders);
    if (configured !== null && !await isExecutable(configured)) {
      return createProblem("no_program", { key, path: configured });
    }
    if (path !== undefined) return createOk("program_ok", { program, path });
    return note(missing, { program, key });
  }));
}

async function isExecutable(path: string): Promise<boolean> {
  return await Deno.stat(path).then(
    ({ isFile, mode }) => isFile && (Deno.build.os === "windows" || ((mode ?? 0) & 0o111) !== 0),
    () => false,
  );
}

/** Reports a model server that runs without Parlor. */
async function checkLeftModel(dataDir: string): Promise<Finding[]> {
  const left = await new LeftServerFile(dataDir).load();
  if (left === undefined || !await isStillRunning(left)) return [];
  return [note("model_left", { model: left.settings.path, pid: left.pid })];
}

/** A missing folder will be created on the disk of its parent. */
async function findExistingParent(folder: string): Promise<string> {
  while (!await pathExists(folder) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}
