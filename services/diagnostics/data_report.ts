/** The owner's view of the installation: disk usage, backups and problems. */
import type { DoctorConfig } from "./doctor.ts";
import type { Finding } from "./finding.ts";
import { AppError } from "../errors.ts";
import type { BackupFile, Backups } from "../backup/backups.ts";
import type { FindingsAnswer, FindingsRequest } from "./diagnostics_worker.ts";
import { measureSpace, type SpaceUsed } from "./disk_usage.ts";

/** Disk usage and backups. */
export interface DataReport {
  used: SpaceUsed;
  /** `null` if automatic backups are off. */
  backupDir: string | null;
  /** Number of daily backups to keep. */
  backupKeep: number;
  /** Newest first. */
  backups: BackupFile[];
}

/** The configuration it needs. */
export interface UpkeepConfig extends DoctorConfig {
  backupKeep: number;
  port: number;
}

/** Reports on the data and the installation. */
export class Upkeep {
  readonly #config: UpkeepConfig;
  readonly #backups: Pick<Backups, "list">;
  #looking: Promise<Finding[]> | undefined;

  constructor(config: UpkeepConfig, backups: Pick<Backups, "list">) {
    this.#config = config;
    this.#backups = backups;
  }

  /** Measures the data and lists the backups. @throws {AppError} if a folder can't be read. */
  async data(): Promise<DataReport> {
    const { dataDir, modelsDir, backupDir, backupKeep } = this.#config;
    const [used, backups] = await Promise.all([measureSpace(dataDir, modelsDir), this.#backups.list()]);
    return { used, backupDir, backupKeep, backups };
  }

  /** Checks the installation like `parlor doctor`. Concurrent calls share one check. @throws {AppError} `internal` */
  findings(): Promise<Finding[]> {
    return this.#looking ??= this.#look().finally(() => this.#looking = undefined);
  }

  async #look(): Promise<Finding[]> {
    const config = plainConfigOf(this.#config);
    const isTls = config.tlsCert !== null;
    const name = isTls ? config.allowedHosts.find((host) => /[a-z]/i.test(host) && !host.startsWith("*")) : undefined;
    const localUrl = `${isTls ? "https" : "http"}://${name ?? "localhost"}:${this.#config.port}`;
    const worker = new Worker(new URL("./diagnostics_worker.ts", import.meta.url), { type: "module" });
    const { promise, resolve, reject } = Promise.withResolvers<FindingsAnswer>();
    worker.onmessage = ({ data }: MessageEvent<FindingsAnswer>) => resolve(data);
    worker.onerror = (event) => {
      event.preventDefault(); // an unhandled error event would end the process
      reject(new AppError("internal", `Can't check the installation: ${event.message}`));
    };
    try {
      worker.postMessage({ config, localUrl } satisfies FindingsRequest);
      const answer = await promise;
      if ("findings" in answer) return answer.findings;
      throw new AppError("internal", `Can't check the installation: ${answer.failure}`);
    } finally {
      worker.terminate();
    }
  }
}

/** Copies the values that the Worker needs; the whole configuration can't be cloned. */
function plainConfigOf(config: UpkeepConfig): DoctorConfig {
  const { host, pairing, loopbackAuthBypass, allowedHosts, trustedProxies, tlsCert, requireAuth } = config;
  const { dataDir, storageKeyFile, backupDir, tlsKey, hubTokenFile, cardDirs, modelsDir } = config;
  const { tailscaledPath, ytDlpPath, llamaServerPath, guardAllow, tailnetSuffix } = config;
  return {
    host,
    pairing,
    loopbackAuthBypass,
    allowedHosts,
    trustedProxies,
    tlsCert,
    requireAuth,
    dataDir,
    storageKeyFile,
    backupDir,
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
