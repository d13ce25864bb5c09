/**
 * What the running server does: where it listens, and its configuration, also what came from flags and the environment
 * of its process. It's in the data folder, so that `parlor doctor` finds it.
 */
import { resolve } from "node:path";
import { getErrorMessage } from "../errors.ts";
import { asObject } from "../json/type_guards.ts";
import { writeFileAtomic } from "../storage/atomic_file.ts";
import type { DoctorConfig } from "./doctor.ts";

/** Name of the file; in no backup. */
const FILE_NAME = "server.json";
/** As long as the checks of the server may take: on a busy machine, the first request after its start takes seconds. */
const RESPONSE_TIMEOUT_MS = 15_000;

/** Backup settings of the configuration can be changed while the server runs, unless a flag or the environment sets them. */
type SavedConfig =
  & Omit<DoctorConfig, "dataDir" | "backupDir" | "backupSchedule">
  & Partial<Pick<DoctorConfig, "backupDir" | "backupSchedule">>;

const PATHS = [
  ...["tlsCert", "tlsKey", "storageKeyFile", "hubTokenFile", "modelsDir"] as const,
  ...["tailscaledPath", "ytDlpPath", "llamaServerPath"] as const,
];

/** Copies the values that checks need. */
export function toPlainConfig(config: DoctorConfig): Omit<DoctorConfig, "backupDir" | "backupSchedule"> {
  const { host, port, pairing, loopbackAuthBypass, allowedHosts, trustedProxies, tlsCert, requireAuth } = config;
  const { dataDir, storageKeyFile, backupDirMustBeMount, tlsKey, hubTokenFile, cardDirs, modelsDir } = config;
  const { tailscaledPath, ytDlpPath, llamaServerPath, guardAllow, tailnetSuffix } = config;
  return {
    host,
    port,
    pairing,
    loopbackAuthBypass,
    allowedHosts,
    trustedProxies,
    tlsCert,
    requireAuth,
    dataDir,
    storageKeyFile,
    backupDirMustBeMount,
    tlsKey,
    hubTokenFile,
    cardDirs,
    modelsDir,
    tailscaledPath,
    ytDlpPath,
    llamaServerPath,
    guardAllow,
    tailnetSuffix,
  };
}

/**
 * Saves what the server does, once it listens. A failure doesn't stop it.
 *
 * @param options.port The one it listens on.
 * @param options.fixed Backup settings that can't change while it runs.
 */
export async function saveRunningServer(
  config: DoctorConfig,
  options: { port: number; fixed: Partial<Pick<DoctorConfig, "backupDir" | "backupSchedule">> },
  onError: (message: string) => void,
): Promise<void> {
  const { dataDir, ...plain } = toPlainConfig(config);
  // Relative to the folder in which it was started.
  const paths = Object.fromEntries(PATHS.map((key) => [key, plain[key] === null ? null : resolve(plain[key])]));
  const cardDirs = plain.cardDirs.map((path) => resolve(path));
  const saved = { ...plain, ...paths, cardDirs, port: options.port, ...options.fixed } satisfies SavedConfig;
  await writeFileAtomic(`${dataDir}/${FILE_NAME}`, JSON.stringify(saved)).catch((error) =>
    onError(getErrorMessage(error))
  );
}

/** Removes what was saved, when the server ends. */
export async function removeRunningServer(dataDir: string): Promise<void> {
  await Deno.remove(`${dataDir}/${FILE_NAME}`).catch(() => {});
}

/**
 * Returns the configuration of the server that runs on a data folder; `undefined` if none responds, such as after a kill.
 *
 * @param own The configuration of this process.
 * @param sessionKey The key of the data folder, by which its server is recognized.
 */
export async function findRunningServer<Config extends DoctorConfig>(
  own: Config,
  sessionKey: Uint8Array | undefined,
): Promise<Config | undefined> {
  if (sessionKey === undefined) return undefined;
  try {
    const { config, answer } = await askRunningServer(own, sessionKey, "/api/jobs");
    await answer.body?.cancel();
    return answer.ok ? config : undefined;
  } catch {
    return undefined;
  }
}

/** What the server of a data folder answered. */
interface ServerAnswer<Config> {
  /** The configuration with which it runs. */
  config: Config;
  /** Where it is. */
  url: string;
  answer: Response;
}

/**
 * Asks the server that runs on a data folder, as its operator.
 *
 * @param own The configuration of this process.
 * @param sessionKey The key of the data folder.
 * @throws If the folder names no server, or nothing responds there.
 */
export async function askRunningServer<Config extends DoctorConfig>(
  own: Config,
  sessionKey: Uint8Array,
  path: string,
  method = "GET",
): Promise<ServerAnswer<Config>> {
  const text = await Deno.readTextFile(`${own.dataDir}/${FILE_NAME}`);
  // Written by the server itself, into a folder that only its user can write to.
  const config: Config = { ...own, ...asObject(JSON.parse(text)) as unknown as SavedConfig };
  // Only here: the server itself loads this file at its start.
  const [{ findLocalServer, mustNameClient, openLocalClient }, { createOperatorProof }] = await Promise.all([
    import("./local_server.ts"),
    import("../crypto/storage_key.ts"),
  ]);
  const { url, connectTo } = findLocalServer(config);
  using local = openLocalClient({ connectTo });
  const answer = await local.fetch(url + path, {
    method,
    headers: {
      Authorization: `Bearer ${createOperatorProof(sessionKey, Date.now())}`,
      ...(mustNameClient(config) && { "X-Forwarded-For": "127.0.0.1" }),
    },
    signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
  });
  return { config, url, answer };
}
