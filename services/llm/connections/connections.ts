/** The owner's connection profiles: stored sealed, one of them active, each key bound to its origin. */
import type { PurposeSealer } from "../../crypto/sealer.ts";
import type { EventHub } from "../../events/event_hub.ts";
import { SealedProfiles } from "../../storage/documents/sealed_profiles.ts";
import type { Database } from "../../storage/database/database.ts";
import {
  type Connection,
  type ConnectionContent,
  connectionFrom,
  type ConnectionInput,
  contentFrom,
} from "./connection.ts";
import type { UpstreamTarget, UpstreamTimeouts } from "../provider.ts";
import { type ExpectedVersion } from "../../storage/preconditions.ts";

export type { Connection, ConnectionInput } from "./connection.ts";

// Rows of `setting`, sealed for the purpose "connections".
const ACTIVE = "active_connection";
const DEMO_INSTALLED = "demo_installed";
const DEMO_ID = "demo";

/** What the profiles need. */
export interface ConnectionsOptions {
  db: Database;
  /** For the purpose "connections". */
  sealer: PurposeSealer;
  events: EventHub;
  now?: () => number;
  /** Used where a profile has no limits of its own. */
  timeouts: UpstreamTimeouts;
}

/**
 * Opens the profiles; a fresh data directory gets the demo connection, active.
 *
 * A profile that cannot be opened stays in the list, marked, and harms no other.
 */
export async function openConnections(options: ConnectionsOptions): Promise<Connections> {
  const profiles = await SealedProfiles.open<ConnectionContent>({
    ...options,
    ...{ kind: "connection", activeKey: ACTIVE, what: "connection" },
  });
  const connections = new Connections(profiles, options.timeouts);
  await connections.installDemoOnce();
  return connections;
}

/** The profiles, in memory as stored; every write is on disk before it shows. */
export class Connections {
  readonly #profiles: SealedProfiles<ConnectionContent>;
  readonly #timeouts: UpstreamTimeouts;

  /** Use openConnections. */
  constructor(profiles: SealedProfiles<ConnectionContent>, timeouts: UpstreamTimeouts) {
    this.#profiles = profiles;
    this.#timeouts = timeouts;
  }

  /** Gives all profiles, the newest first. */
  list(): Connection[] {
    return this.#profiles.list().map((record) => connectionFrom(record, this.#profiles.activeId));
  }

  /** Gives a profile that can be used. */
  find(id: string): Connection | undefined {
    const record = this.#profiles.find(id);
    return record?.content === undefined ? undefined : connectionFrom(record, this.#profiles.activeId);
  }

  /** Gives the active profile. */
  active(): Connection | undefined {
    const { activeId } = this.#profiles;
    return activeId === undefined ? undefined : this.find(activeId);
  }

  /**
   * Creates or replaces a profile. The first one that is there becomes active.
   *
   * @param expectedVersion Refuses unless this version stands.
   * @throws {AppError} `invalid_request`, `address_not_allowed`, `revision_mismatch`
   */
  async put(
    input: ConnectionInput,
    expectedVersion?: ExpectedVersion,
  ): Promise<{ connection: Connection; isNew: boolean }> {
    const { record, isNew } = await this.#profiles.put(input.id, (before) => contentFrom(input, before), {
      expectedVersion,
    });
    return { connection: connectionFrom(record, this.#profiles.activeId), isNew };
  }

  /** Removes a profile. When it was active, none is: another might cost money. @throws {AppError} `not_found` */
  remove(id: string, expectedVersion?: ExpectedVersion): Promise<void> {
    return this.#profiles.remove(id, expectedVersion);
  }

  /** Forgets the stored key and keeps the profile. @throws {AppError} `not_found` */
  clearKey(id: string, expectedVersion?: ExpectedVersion): Promise<void> {
    return this.#profiles.change(id, ({ key, ...content }) => key === undefined ? undefined : content, expectedVersion);
  }

  /** Makes a profile the active one. @throws {AppError} `not_found`, `conflict` when it cannot be read */
  async activate(id: string): Promise<Connection> {
    return connectionFrom(await this.#profiles.activate(id), this.#profiles.activeId);
  }

  /** Gives what a call through a profile needs, its key included. @throws {AppError} `not_found`, `conflict` */
  targetFor(id: string): UpstreamTarget {
    return this.#target(this.#profiles.content(id));
  }

  /**
   * Gives what a test of an unsaved profile needs. The `id` of a saved one lends its key, to the same origin only.
   *
   * @throws {AppError} `invalid_request`, `address_not_allowed`
   */
  targetForUnsaved(input: ConnectionInput): UpstreamTarget {
    const stored = input.id === undefined ? undefined : this.#profiles.find(input.id)?.content;
    return this.#target(contentFrom(input, stored));
  }

  /** Gives a fresh installation its demo; once deleted it does not come back. */
  async installDemoOnce(): Promise<void> {
    if (this.#profiles.readSetting(DEMO_INSTALLED) !== undefined) return;
    await this.#profiles.put(DEMO_ID, () => contentFrom({ kind: "demo", name: "Demo" }, undefined), {
      beside: [this.#profiles.setting(DEMO_INSTALLED, "true")],
    });
  }

  #target(content: ConnectionContent): UpstreamTarget {
    const { kind, baseUrl, key, contextSize } = content;
    const timeouts = { ...this.#timeouts, ...content.timeouts };
    return { kind, baseUrl, apiKey: key?.value, timeouts, contextSize };
  }
}
