/** Who may come in, open before the first answer: hosts, passkeys, sessions, tokens, and the tailnet's names. */
import { createHostPolicy, type HostPolicy } from "../auth/host_names.ts";
import { type Auth, openAuth } from "../auth/auth.ts";
import { createPageOriginWatch, type PageOriginWatch } from "../auth/page_origin.ts";
import { findOpenAddresses, logOpenAddresses } from "../auth/open_addresses.ts";
import type { CloseHook } from "../async/lazy.ts";
import type { NodeMemory } from "../tailnet/node_state.ts";
import { openNodeMemory } from "../tailnet/open_node_state.ts";
import type { Ground } from "./ground.ts";

/** Everything that judges a request before its route does. */
export interface Entrance {
  auth: Auth;
  hosts: HostPolicy;
  pageOrigins: PageOriginWatch;
  /** What is remembered of the tailnet node, whose names count as ours. */
  nodeMemory: NodeMemory;
}

/** @param announce Shows something to whoever sees the terminal. */
export async function openEntrance(
  { config, dataDir, db, sealer, events, log, now }: Ground,
  announce: (text: string) => void,
  onClose: (hook: CloseHook) => void,
): Promise<Entrance> {
  const pageOrigins = createPageOriginWatch({ corsOrigins: config.corsOrigins, log });
  const nodeMemory = openNodeMemory({ config, db, log, sealer: sealer.forPurpose("settings") });
  const ownNode = () => nodeMemory.own;
  const hosts = createHostPolicy({ allowedHosts: config.allowedHosts, tailnetSuffix: config.tailnetSuffix, ownNode });
  if (config.guardAllow.length > 0) {
    log("warn", `Addresses in cards and pages may lead to ${config.guardAllow.join(", ")}, since guard_allow names it`);
  }
  const auth = await openAuth({
    paths: {
      credentials: dataDir.file("credentials.json"),
      tokens: dataDir.file("tokens.json"),
      sessionKey: dataDir.file("session-key"),
    },
    ...{ settings: config, sealer, db, events, hosts, pageOrigins, log, now },
    ownSuffix: () => nodeMemory.own?.suffix,
    announcePairingCode: (code) => announce(`Pairing code: ${code}`),
  });
  onClose(() => auth.close());
  logOpenAddresses(await findOpenAddresses(config, auth.credentials.isGated, nodeMemory.own), log);
  return { auth, hosts, pageOrigins, nodeMemory };
}
