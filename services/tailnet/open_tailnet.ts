/** Puts the parts of this room together. */
import type { Config } from "../config.ts";
import { saveConfigKey } from "../config_file.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { fileError } from "../storage/atomic_file.ts";
import type { DataDir } from "../storage/data_dir.ts";
import type { Database } from "../storage/database.ts";
import { NodeMemory } from "./node_memory.ts";
import { removeNodeSocket } from "./socket_path.ts";
import { Tailnet, type TailnetOptions } from "./tailnet.ts";

/** Below the data folder; the specification names it. */
const STATE_FOLDER = "tsnet";

/** @param options.sealer For the purpose "settings". */
export function openTailnet(
  options: Pick<TailnetOptions, "events" | "log" | "times"> & {
    config: Config;
    dataDir: DataDir;
    db: Database;
    sealer: PurposeSealer;
  },
): Tailnet {
  const { config, dataDir, db, sealer, events, log, times } = options;
  const isFixed = (key: "tailnet_enabled" | "tailnet_hostname") =>
    config.sources[key] === "flag" || config.sources[key] === "environment";
  return new Tailnet({
    memory: new NodeMemory({
      ...{ db, sealer, log },
      save: (key, value) => saveConfigKey(config, key, value),
      configured: {
        enabled: config.tailnetEnabled,
        hostname: config.tailnetHostname,
        isEnabledFixed: isFixed("tailnet_enabled"),
        isHostnameFixed: isFixed("tailnet_hostname"),
      },
    }),
    controlUrl: config.tailnetControlUrl,
    programPath: config.tailscaledPath,
    ensureStateFolder: () => dataDir.ensureFolder(STATE_FOLDER),
    async wipeState() {
      const folder = dataDir.file(STATE_FOLDER);
      await removeNodeSocket(folder);
      try {
        await Deno.remove(folder, { recursive: true });
      } catch (cause) {
        if (!(cause instanceof Deno.errors.NotFound)) throw fileError(`Cannot remove "${folder}"`, cause);
      }
    },
    ...{ events, log, times },
  });
}
