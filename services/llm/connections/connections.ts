/** The owner's connection profiles. They are stored sealed; one of them can be active. */
import type { PurposeSealer } from "../../crypto/sealer.ts";
import type { EventHub } from "../../events/event_hub.ts";
import { SealedProfiles } from "../../storage/documents/sealed_profiles.ts";
import type { Database } from "../../storage/database/database.ts";
import {
  type Connection,
  type ConnectionContent,
  type ConnectionInput,
  parseConnection,
  toConnection,
} from "./connection.ts";
import type { CallTimeouts } from "../../http/timeouts.ts";
import type { UpstreamTarget } from "../provider.ts";
import { type ExpectedVersion } from "../../storage/preconditions.ts";

export type { Connection, ConnectionInput } from "./connection.ts";

// Keys of the table `setting`; the values are sealed for the purpose "connections".
const ACTIVE = "active_connection";
const DEMO_INSTALLED = "demo_installed";
const DEMO_ID = "demo";

/** The dependencies of the profiles. */
export interface ConnectionsDeps {
  db: Database;
  /** For the purpose "connections". */
  sealer: PurposeSealer;
  events: EventHub;
  now?: () => number;
  /** Used unless a profile sets its own. */
  timeouts: CallTimeouts;
}

/**
 * Opens the profiles. A new data folder gets the demo connection, which is active.
 *
 * A profile that can't be decrypted stays in the list, marked as unreadable.
 */
export async function openConnections(deps: ConnectionsDeps): Promise<Connections> {
  const profiles = await SealedProfiles.open<ConnectionContent>({
    ...deps,
    kind: "connection",
    activeKey: ACTIVE,
    what: "connection",
  });
  const connections = new Connections(profiles, deps.timeouts);
  await connections.installDemoOnce();
  return connections;
}

/** The profiles, kept in memory. A write is visible once it is on disk. */
export class Connections {
  readonly #profiles: SealedProfiles<ConnectionContent>;
  readonly #timeouts: CallTimeouts;

  /** Use openConnections. */
  constructor(profiles: SealedProfiles<ConnectionContent>, timeouts: CallTimeouts) {
    this.#profiles = profiles;
    this.#timeouts = timeouts;
  }

  /** Lists all profiles, newest first. */
  list(): Connection[] {
    return this.#profiles.list().map((record) => toConnection(record, this.#profiles.activeId));
  }

  /** Finds a profile that is readable. */
  find(id: string): Connection | undefined {
    const record = this.#profiles.find(id);
    return record?.content === undefined ? undefined : toConnection(record, this.#profiles.activeId);
  }

  /** Finds the active profile. */
  findActive(): Connection | undefined {
    const { activeId } = this.#profiles;
    return activeId === undefined ? undefined : this.find(activeId);
  }

  /**
   * Creates or replaces a profile. The first profile becomes active.
   *
   * @param expectedVersion The version the stored profile must have.
   * @throws {AppError} `invalid_request`, `address_not_allowed`, `revision_mismatch`
   */
  async put(
    input: ConnectionInput,
    expectedVersion?: ExpectedVersion,
  ): Promise<{ connection: Connection; isNew: boolean }> {
    const { record, isNew } = await this.#profiles.put(input.id, (stored) => parseConnection(input, stored), {
      expectedVersion,
    });
    return { connection: toConnection(record, this.#profiles.activeId), isNew };
  }

  /** Deletes a profile. If it was active, none is active afterwards: another one might cost money. @throws {AppError} `not_found` */
  remove(id: string, expectedVersion?: ExpectedVersion): Promise<void> {
    return this.#profiles.remove(id, expectedVersion);
  }

  /** Deletes the stored key of a profile. @throws {AppError} `not_found` */
  clearKey(id: string, expectedVersion?: ExpectedVersion): Promise<void> {
    return this.#profiles.change(id, ({ key, ...content }) => key === undefined ? undefined : content, expectedVersion);
  }

  /** Makes a profile the active one. @throws {AppError} `not_found`; `conflict` if it is unreadable */
  async activate(id: string): Promise<Connection> {
    return toConnection(await this.#profiles.activate(id), this.#profiles.activeId);
  }

  /** Returns the target of a profile, including its key. @throws {AppError} `not_found`; `conflict` if it is unreadable */
  getTarget(id: string): UpstreamTarget {
    return this.#toTarget(this.#profiles.content(id));
  }

  /**
   * Returns the target of unsaved input. The id of a saved profile supplies its key if the origin is the same.
   *
   * @throws {AppError} `invalid_request`, `address_not_allowed`
   */
  getUnsavedTarget(input: ConnectionInput): UpstreamTarget {
    const stored = input.id === undefined ? undefined : this.#profiles.find(input.id)?.content;
    return this.#toTarget(parseConnection(input, stored));
  }

  /** Adds the demo to a new installation. It does not come back once it is deleted. */
  async installDemoOnce(): Promise<void> {
    if (this.#profiles.readSetting(DEMO_INSTALLED) !== undefined) return;
    await this.#profiles.put(DEMO_ID, () => parseConnection({ kind: "demo", name: "Demo" }, undefined), {
      beside: [this.#profiles.setting(DEMO_INSTALLED, "true")],
    });
  }

  #toTarget(content: ConnectionContent): UpstreamTarget {
    const { kind, baseUrl, key, contextSize } = content;
    const timeouts = { ...this.#timeouts, ...content.timeouts };
    return { kind, baseUrl, apiKey: key?.value, timeouts, contextSize };
  }
}
