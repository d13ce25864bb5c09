/** `parlor doctor`: looks at everything that can keep an installation from working, and says what to do about it. */
import { messageOf } from "../errors.ts";
import { dataFindings, type DataPlace } from "./data_checks.ts";
import { type Finding, looking, ok, problem } from "./finding.ts";
import { diskFindings, type Tool, toolFindings } from "./machine_checks.ts";
import { type ReachConfig, reachFindings } from "./reachability_checks.ts";
import { serverFindings } from "./server_checks.ts";

/** What of the configuration is looked at. */
export interface DoctorConfig extends ReachConfig, DataPlace {
  backupDir: string | null;
  modelsDir: string | null;
  tlsKey: string | null;
  hubTokenFile: string | null;
  cardDirs: readonly string[];
  tailscaledPath: string | null;
  ytDlpPath: string | null;
  llamaServerPath: string | null;
}

/** What to look at. */
export interface DoctorRequest {
  /** Reads the configuration. @throws {AppError} with the sentence that a start would end with */
  config(): DoctorConfig;
  /** Where the server of this data folder is to be found, by its configuration. */
  localUrl(): string;
  /** An address under which users reach it, to be tried as well. */
  url?: string;
}

/** Looks at everything. A configuration that cannot be read ends it. */
export async function examine({ config: readConfig, localUrl, url }: DoctorRequest): Promise<Finding[]> {
  let config: DoctorConfig;
  try {
    config = readConfig();
  } catch (error) {
    return [problem("config_bad", { error: messageOf(error) })];
  }
  const { dataDir, backupDir, modelsDir, tlsCert } = config;
  const sessionKey = await Deno.readFile(`${dataDir}/session-key`).catch(() => undefined);
  const caCert = tlsCert === null ? undefined : await Deno.readTextFile(tlsCert).catch(() => undefined);
  const question = { sessionKey, caCert };
  return [
    ok("config_ok"),
    ...await fileFindings(config),
    ...await reachFindings(config),
    ...await dataFindings(config),
    ...await diskFindings([dataDir, backupDir, modelsDir].filter((folder) => folder !== null)),
    ...await toolFindings(toolsOf(config)),
    ...await serverFindings({ ...question, url: localUrl(), isExpected: false }),
    ...(url === undefined ? [] : await serverFindings({ ...question, url, isExpected: true })),
  ];
}

/** Files and folders that the configuration names have to be there. */
async function fileFindings(
  { tlsCert, tlsKey, storageKeyFile, hubTokenFile, cardDirs }: DoctorConfig,
): Promise<Finding[]> {
  const named: [string, string | null][] = [
    ...[["tls_cert", tlsCert], ["tls_key", tlsKey], ["storage_key_file", storageKeyFile]] as [string, string | null][],
    ["hub_token_file", hubTokenFile],
    ...cardDirs.map((folder): [string, string] => ["card_dirs", folder]),
  ];
  const findings = await Promise.all(
    named.map(([key, path]) =>
      path === null ? [] : looking("named_file_missing", { key, path }, async () => {
        const { isDirectory } = await Deno.stat(path);
        if (!isDirectory) (await Deno.open(path)).close();
        return [];
      })
    ),
  );
  return findings.flat();
}

function toolsOf({ ytDlpPath, llamaServerPath, tailscaledPath }: DoctorConfig): Tool[] {
  return [
    { program: "yt-dlp", key: "yt_dlp_path", configured: ytDlpPath, missing: "no_yt_dlp" },
    { program: "llama-server", key: "llama_server_path", configured: llamaServerPath, missing: "no_llama_server" },
    { program: "tailscaled", key: "tailscaled_path", configured: tailscaledPath, missing: "no_tailscaled" },
  ];
}
