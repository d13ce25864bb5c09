/** Opens what is remembered of the node, which the start needs before the node itself. */
import type { Config } from "../config/config.ts";
import { saveConfigKey } from "../config/config_file.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { Log } from "../log.ts";
import type { Database } from "../storage/database/database.ts";
import { NodeMemory } from "./node_state.ts";

/** @param options.sealer For the purpose "settings". */
export function openNodeMemory(
  { config, ...parts }: { config: Config; db: Database; sealer: PurposeSealer; log: Log },
): NodeMemory {
  const isFixed = (key: "tailnet_enabled" | "tailnet_hostname") =>
    config.sources[key] === "flag" || config.sources[key] === "environment";
  return new NodeMemory({
    ...parts,
    save: (key, value) => saveConfigKey(config, key, value),
    configured: {
      enabled: config.tailnetEnabled,
      hostname: config.tailnetHostname,
      isEnabledFixed: isFixed("tailnet_enabled"),
      isHostnameFixed: isFixed("tailnet_hostname"),
    },
  });
}
