/** Checks who can reach the server, and which addresses don't require sign-in. */
import { join } from "node:path";
import { createCredentialStore } from "../auth/credential_store.ts";
import type { OwnNode } from "../auth/host_names.ts";
import { findOpenAddresses, type ReachSettings } from "../auth/open_addresses.ts";
import { createSealer } from "../crypto/sealer.ts";
import { findStorageKey } from "../crypto/storage_key.ts";
import { messageOf } from "../errors.ts";
import { fileExists } from "../storage/atomic_file.ts";
import { openReader } from "../storage/database/reader.ts";
import { readOwnNames } from "../tailnet/node_state.ts";
import type { DataPlace } from "./data_checks.ts";
import { type Finding, note, ok, problem } from "./finding.ts";

/** The configuration it checks. */
export interface ReachConfig extends ReachSettings {
  guardAllow: readonly string[];
}

const LOOPBACK = /^(127\.|::1$|localhost$)/;

/** Checks the configuration against the enrolled passkeys. */
export async function reachFindings(config: ReachConfig & DataPlace): Promise<Finding[]> {
  const { host, allowedHosts, trustedProxies, requireAuth, loopbackAuthBypass } = config;
  const findings: Finding[] = [];
  if (!requireAuth) {
    findings.push(
      problem("auth_off"),
    );
  }
  const { isGated, ownNode, failure } = await readEnrolment(config);
  if (failure !== undefined) findings.push(problem("credentials_unreadable", { error: failure }));
  const { loopback, names, addresses, plainNames, patterns } = await findOpenAddresses(config, isGated, ownNode);
  if (loopback.length > 0) {
    findings.push(problem("open_loopback", { addresses: loopback.join(", ") }));
  }
  if (names.length > 0) {
    findings.push(problem("open_names", { names: names.join(", ") }));
  }
  if (addresses.length > 0) {
    findings.push(problem("open_addresses", { addresses: addresses.join(", ") }));
  }
  if (patterns.length > 0) {
    findings.push(problem("open_patterns", { patterns: patterns.join(", ") }));
  }
  if (plainNames.length > 0) {
    findings.push(problem("open_plain_names", { names: plainNames.join(", ") }));
  }
  if (loopbackAuthBypass && trustedProxies.some((proxy) => LOOPBACK.test(proxy))) {
    findings.push(problem("proxy_here_without_credentials"));
  } else if (loopbackAuthBypass && requireAuth) {
    findings.push(note("machine_without_credentials"));
  }
  if (!LOOPBACK.test(host) && allowedHosts.length === 0) {
    findings.push(problem("no_name_allowed", { host }));
  }
  if (config.guardAllow.length > 0) {
    findings.push(note("guard_allow", { addresses: config.guardAllow.join(", ") }));
  }
  return findings.length > 0 ? findings : [ok("reach_ok")];
}

interface Enrolment {
  isGated(rpId: string): boolean | Promise<boolean>;
  ownNode?: OwnNode;
  /** Why `credentials.json` can't be read. */
  failure?: string;
}

/** Reads which RP IDs have passkeys, and the last known names of the tailnet node. A missing key is a finding of data_checks.ts. */
async function readEnrolment({ dataDir, storageKeyFile }: DataPlace): Promise<Enrolment> {
  const path = join(dataDir, "credentials.json");
  const key = await findStorageKey({ dataDir, storageKeyFile: storageKeyFile ?? undefined }).catch(() => undefined);
  // Without the key the server doesn't start; with a file it can't read, it gates every address.
  if (key === undefined) {
    const isAbsent = !await fileExists(path);
    return { isGated: () => !isAbsent };
  }
  const sealer = createSealer(key);
  const store = createCredentialStore({ path, sealer: sealer.forPurpose("credentials"), log: () => {} });
  const failure = await store.gatedRpIds().then(() => undefined, messageOf);
  return { isGated: store.isGated, failure, ownNode: await readOwnNode() };

  async function readOwnNode(): Promise<OwnNode | undefined> {
    const databasePath = join(dataDir, "app.db");
    if (!await fileExists(databasePath)) return undefined;
    try {
      const reader = openReader(databasePath);
      try {
        return readOwnNames(reader, sealer.forPurpose("settings"));
      } finally {
        reader.close();
      }
    } catch {
      return undefined; // data_checks.ts reports a database that can't be used
    }
  }
}
