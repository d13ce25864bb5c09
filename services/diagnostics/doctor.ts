/** `parlor doctor`: checks everything that can keep an installation from working, and says how to fix it. */
import { messageOf } from "../errors.ts";
import { dataFindings, type DataPlace } from "./data_checks.ts";
import { type Finding, looking, ok, problem } from "./finding.ts";
import { diskFindings, type Tool, toolFindings } from "./machine_checks.ts";
import { type ReachConfig, reachFindings } from "./reachability_checks.ts";
import { serverFindings } from "./server_checks.ts";

/** The configuration it checks. */
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

/** What to check. */
export interface DoctorRequest {
  /** Reads the configuration. @throws {AppError} with the message a start would end with. */
  config(): DoctorConfig;
  /** URL of the server of this data folder, from its configuration. */
  localUrl(): string;
  /** Another URL that users use, to be checked too. */
  url?: string;
}

/** Runs all checks. An invalid configuration ends them. */
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

/** Checks that the files and folders in the configuration exist. */
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
