/** `parlor upgrade --check` asks whether there is a newer version. Parlor never installs one itself. */
import { takeOptions } from "./cli_environment.ts";
import { AppError } from "../errors.ts";
import { dropProxyEnvironment } from "../http/guard/target_policy.ts";
import { fetchRelease, isNewer } from "../releases/releases.ts";

/** Text of `parlor upgrade --help`. */
export const UPGRADE_HELP = `Usage: parlor upgrade --check [options of parlor serve]

Asks releases_url for the newest version and prints it. Parlor doesn't install it: replace the executable, or pull the new
image. Needs no running server.
Exits with code 0 if this is the newest version, 10 if there is a newer one, and 1 if that can't be found out.`;

/** Exit code if there is a newer version, so that scripts can tell. */
const NEWER_FOUND = 10;

/** Configuration of the command. */
interface UpgradeConfig {
  releasesUrl: string | null;
  releasesProxy: string | null;
  guardAllow: readonly string[];
}

/** Environment of the command. */
interface UpgradeContext {
  readConfig(rest: string[]): UpgradeConfig;
  version: string;
  print(text: string): void;
}

/** @returns The exit code. @throws {AppError} with a message for the terminal */
export async function runUpgrade(args: readonly string[], context: UpgradeContext): Promise<number> {
  const { readConfig, version, print } = context;
  const { options, rest } = takeOptions(args, { check: false }, { wordCount: 0, usage: "parlor upgrade --check" });
  const { releasesUrl: url, releasesProxy: proxy, guardAllow } = readConfig(rest);
  if (!options.has("check")) {
    throw new AppError("invalid_request", "Parlor doesn't upgrade itself. Use parlor upgrade --check; see --help");
  }
  if (url === null) {
    throw new AppError("not_available", "This build has no address for new versions. Set releases_url");
  }
  dropProxyEnvironment();
  const { openGuard } = await import("../http/guard/guarded_fetch.ts");
  const guard = await openGuard({ allow: [...guardAllow], exactOrigins: [url] });
  const found = await fetchRelease({ url, proxy }, { openGuard: () => Promise.resolve(guard) })
    .finally(() => guard.close());
  if (!isNewer(found.version, version)) {
    print(`Parlor ${version} is the newest version`);
    return 0;
  }
  print(
    `Parlor ${found.version} is available; this is ${version}${found.url === undefined ? "" : `. See ${found.url}`}`,
  );
  return NEWER_FOUND;
}
