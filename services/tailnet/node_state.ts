/** The state of the node: stored settings, status and timeouts. */
import { type Config, saveConfigKey } from "../config/config.ts";
import type { PurposeSealer } from "../crypto/sealer.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import type { Log } from "../log.ts";
import type { Database } from "../storage/database/database.ts";

/** The node's names, from the control server. */
export interface NodeNames {
  fqdn: string;
  /** Domain of the tailnet's machines. */
  suffix: string;
}

/** The owner's settings for the node. */
export interface NodeSettings {
  enabled: boolean;
  hostname: string;
}

/** Writes one key of the configuration file. @throws {AppError} `conflict` if a flag or the environment sets it. */
export type SaveKey = (key: "tailnet_enabled" | "tailnet_hostname", value: boolean | string) => Promise<void>;

/** Values in the configuration at startup. */
export interface ConfiguredNode extends NodeSettings {
  /** True if a flag or the environment sets it, so that it can't be changed. */
  isEnabledFixed: boolean;
  isHostnameFixed: boolean;
}

interface Stored {
  /** Stays after the node is turned off, because the passkeys of its tailnet depend on it. */
  own?: NodeNames;
  /** Settings that couldn't be written to the configuration file. */
  wanted?: Partial<NodeSettings>;
  /** True if the node was turned off, but the server may have stopped before its state was deleted. */
  isWipeDue?: boolean;
}

/** Key in table `setting`. */
const KEY = "tailnet_node";

/** Stores the settings in config.toml, where the owner finds them, and in app.db if they can't be written there. */
export class NodeMemory {
  readonly #db: Database;
  readonly #sealer: PurposeSealer;
  readonly #save: SaveKey;
  readonly #wanted: NodeSettings;
  #own: NodeNames | undefined;
  #version = 0;
  #stored: Stored = {};

  /** @param options.sealer For the purpose "settings". */
  constructor(options: { db: Database; sealer: PurposeSealer; save: SaveKey; configured: ConfiguredNode; log: Log }) {
    this.#db = options.db;
    this.#sealer = options.sealer;
    this.#save = options.save;
    this.#read(options.log);
    this.#own = this.#stored.own;
    const { enabled, hostname, isEnabledFixed, isHostnameFixed } = options.configured;
    const { wanted: unsaved = {} } = this.#stored;
    this.#wanted = {
      enabled: isEnabledFixed ? enabled : unsaved.enabled ?? enabled,
      hostname: isHostnameFixed ? hostname : unsaved.hostname ?? hostname,
    };
  }

  get wanted(): Readonly<NodeSettings> {
    return this.#wanted;
  }

  /** Last known values, even of a node that was turned off. */
  get own(): NodeNames | undefined {
    return this.#own;
  }

  /** Whether the state of a node that was turned off may still exist. */
  get isWipeDue(): boolean {
    return this.#stored.isWipeDue ?? false;
  }

  async noteWipe(isDue: boolean): Promise<void> {
    await this.#write({ ...this.#stored, isWipeDue: isDue || undefined });
  }

  /** Changes settings. @throws {AppError} `conflict` if a flag or the environment sets them; nothing is changed then */
  async changeSettings(change: Partial<NodeSettings>): Promise<void> {
    const keys = { hostname: "tailnet_hostname", enabled: "tailnet_enabled" } as const;
    for (const [name, key] of Object.entries(keys) as [keyof NodeSettings, (typeof keys)[keyof NodeSettings]][]) {
      const value = change[name];
      if (value === undefined || value === this.#wanted[name]) continue;
      const unsaved: Partial<NodeSettings> = { ...this.#stored.wanted };
      try {
        await this.#save(key, value);
        delete unsaved[name];
      } catch (error) {
        if (error instanceof AppError && error.code === "conflict") throw error;
        Object.assign(unsaved, { [name]: value });
      }
      await this.#write({ ...this.#stored, wanted: unsaved });
      Object.assign(this.#wanted, { [name]: value });
    }
  }

  /** Remembers the node's names. They apply even if they can't be saved. */
  async saveNames(own: NodeNames): Promise<void> {
    this.#own = own;
    await this.#write({ ...this.#stored, own });
  }

  #read(log: Log): void {
    const row = findRow(this.#db);
    if (row === undefined) return;
    this.#version = row.version;
    try {
      this.#stored = openRow(row, this.#sealer);
    } catch (error) {
      // The names are known again once the node runs. Until then, its address is closed.
      log("error", "Can't read the stored state of the tailnet node", { error: getErrorMessage(error) });
    }
  }

  async #write(stored: Stored): Promise<void> {
    if (JSON.stringify(stored) === JSON.stringify(this.#stored)) return;
    const version = this.#version + 1;
    const sealed = this.#sealer.sealNow(createAad(version), JSON.stringify(stored));
    const sql = "INSERT OR REPLACE INTO setting (key, version, sealed) VALUES (?, ?, ?)";
    await this.#db.write([{ sql, params: [KEY, version, sealed] }]);
    this.#version = version;
    this.#stored = stored;
  }
}

/** Reads the node's last known names from a database file. @throws If the row can't be decrypted */
export function readOwnNames(db: Pick<Database, "get">, sealer: PurposeSealer): NodeNames | undefined {
  const row = findRow(db);
  return row === undefined ? undefined : openRow(row, sealer).own;
}

interface Row {
  version: number;
  sealed: Uint8Array;
}

function findRow(db: Pick<Database, "get">): Row | undefined {
  return db.get<Row>("SELECT version, sealed FROM setting WHERE key = ?", KEY);
}

function openRow({ version, sealed }: Row, sealer: PurposeSealer): Stored {
  return JSON.parse(new TextDecoder().decode(sealer.openNow(createAad(version), sealed)));
}

function createAad(version: number) {
  return { table: "setting", id: KEY, field: "value", version };
}

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

// The status of the tailnet node, and timeouts.

/** All states. */
export const TAILNET_STATES = ["disabled", "starting", "needs_auth", "running", "stopped", "error"] as const;

/** State of the node. */
export type TailnetState = (typeof TAILNET_STATES)[number];

/** The observable status of a node. */
export interface NodeView {
  state: TailnetState;
  /** `"parlor.fox-owl.ts.net"`; `null` if it isn't reachable. */
  fqdn: string | null;
  /** Its URL, without a trailing slash. */
  url: string | null;
  /** URL for signing in the node. Secret: anyone who has it can add the node to their own tailnet. */
  authUrl: string | null;
  /** A complete sentence. If the state is `running`, why there is no HTTPS. */
  error: string | null;
}

/** The complete status. */
export interface TailnetStatus extends NodeView {
  enabled: boolean;
  mode: "off" | "userspace";
  /** The desired name. The tailnet may assign another one. */
  hostname: string;
  /** Port of `url`. */
  port: number | null;
}

/** Creates a view. Omitted fields are `null`. */
export function createView(state: TailnetState, rest: Partial<NodeView> = {}): NodeView {
  return { state, fqdn: null, url: null, authUrl: null, error: null, ...rest };
}

/** Timeouts and intervals, in milliseconds. */
export interface NodeTimes {
  /** From the start of the program to its first response. */
  socketMs: number;
  /** Between two polls of a node that is starting. */
  pollMs: number;
  /** Between two polls of a running node, which reports changes itself. */
  watchMs: number;
  /** Time limit for a response of the node. */
  responseTimeoutMs: number;
  /** After this time, a sign-in without a URL is requested again and its reason shown. */
  loginMs: number;
  /** Time limit for a certificate, which takes a minute the first time. */
  certificateMs: number;
  /** Until a refused certificate is requested again. */
  certificateAgainMs: number;
  /** First delay before a restart. It doubles each time. */
  restartMs: number;
  /** Time limit for logging out at the control server. */
  logoutMs: number;
  /** Time to wait for the response to a client that turned the node off over the tailnet. */
  farewellMs: number;
}

/** Defaults for a real node. */
export const NODE_TIMES: NodeTimes = {
  socketMs: 15_000,
  pollMs: 1_000,
  watchMs: 30_000,
  responseTimeoutMs: 10_000,
  loginMs: 15_000,
  certificateMs: 120_000,
  certificateAgainMs: 60 * 60_000,
  restartMs: 1_000,
  logoutMs: 3_000,
  farewellMs: 250,
};
