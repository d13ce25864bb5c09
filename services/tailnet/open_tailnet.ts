/** Puts the parts of this room together. */
import type { Config } from "../config/config.ts";
import { fileError } from "../storage/atomic_file.ts";
import type { DataDir } from "../storage/data_dir.ts";
import { removeNodeSocket } from "./socket_path.ts";
import { Tailnet, type TailnetOptions } from "./tailnet.ts";

/** Below the data folder; the specification names it. */
const STATE_FOLDER = "tsnet";

/** Opens the room. The node itself waits for `begin`. */
export function openTailnet(
  { config, dataDir, ...parts }: Pick<TailnetOptions, "memory" | "events" | "log" | "times"> & {
    config: Config;
    dataDir: DataDir;
  },
): Tailnet {
  return new Tailnet({
    ...parts,
    controlUrl: config.tailnetControlUrl,
    programPath: config.tailscaledPath,
    ensureStateFolder: () => dataDir.ensureFolder(STATE_FOLDER),
    async wipeState() {
      const folder = dataDir.file(STATE_FOLDER);
      await removeNodeSocket(folder);
      try {
        await Deno.remove(folder, { recursive: true });
      } catch (cause) {
        if (!(cause instanceof Deno.errors.NotFound)) throw fileError(`Can't remove "${folder}"`, cause);
      }
    },
  });
}
