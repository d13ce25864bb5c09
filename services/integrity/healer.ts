/** Restores what can't be read: from its earlier versions, else from the newest backup that has it whole. */
import { Mutex } from "../async/locks.ts";
import { AppError, getErrorMessage } from "../errors.ts";
import { type EventHub, RESTORED } from "../events/event_hub.ts";
import type { Log } from "../log.ts";
import type { Database } from "../storage/database/database.ts";
import type { Integrity } from "./integrity.ts";

/** Items with earlier versions. */
export interface VersionedItems {
  listVersions(id: string): Promise<{ n: number; createdAtMs: number }[]>;
  restoreVersion(id: string, n: number): Promise<unknown>;
}

/** Dependencies. */
export interface HealerDeps {
  db: Database;
  integrity: Integrity;
  /** Opens the service of a folder with earlier versions. */
  openVersioned(folder: string): Promise<VersionedItems | undefined>;
  /** Lists the paths of backups, the newest first. */
  listBackups(): Promise<string[]>;
  backupPassphrase: string | undefined;
  events: EventHub;
  log: Log;
}

/** How an item was restored. */
export interface Healing {
  from: "version" | "backup" | "manifest";
  /** When the version or backup was made; now for the manifest. ISO 8601, UTC. */
  madeAt: string;
}

/** Restores damaged items, one after another. */
export class Healer {
  readonly #deps: HealerDeps;
  readonly #lock = new Mutex();

  constructor(deps: HealerDeps) {
    this.#deps = deps;
  }

  /**
   * Restores an item.
   *
   * @param path As in `Damage`.
   * @param options.acceptsOlder Takes the state of a backup although messages were added or changed since.
   * @throws {AppError} `not_found` if it isn't damaged; `not_available` if there is no good copy; `conflict` if the only
   *   good copy is an older state of a chat, with its time.
   */
  heal(path: string, { acceptsOlder = false } = {}): Promise<Healing> {
    return this.#lock.run(async () => {
      const { integrity, log } = this.#deps;
      if ((await integrity.checkItems([path])).length === 0) {
        throw new AppError("not_found", `"${path}" can be read, or doesn't exist`);
      }
      const healing = await this.#restoreVersion(path) ?? await this.#restoreFromBackup(path, acceptsOlder);
      this.#publish(path);
      if ((await integrity.checkItems([path])).length > 0) {
        throw new AppError("internal", `Can't restore "${path}": a part of it still can't be read`);
      }
      log("info", "Restored what couldn't be read", { path, ...healing });
      return healing;
    });
  }

  async #restoreVersion(path: string): Promise<Healing | undefined> {
    const [folder = "", id = ""] = path.split("/");
    const versioned = await this.#deps.openVersioned(folder);
    for (const { n, createdAtMs } of await versioned?.listVersions(id).catch(() => []) ?? []) {
      try {
        await versioned!.restoreVersion(id, n);
        return { from: "version", madeAt: new Date(createdAtMs).toISOString() };
      } catch (error) {
        this.#deps.log("warn", "Can't restore a version", { path, n, error: getErrorMessage(error) });
      }
    }
  }

  async #restoreFromBackup(path: string, acceptsOlder: boolean): Promise<Healing> {
    const { db, integrity, listBackups, backupPassphrase: passphrase } = this.#deps;
    const backups = await listBackups();
    const [plan] = await integrity.planHealing({ paths: [path], backups, passphrase, acceptsOlder });
    if (plan === undefined) {
      const found = backups.length === 0 ? "there are no backups" : "no backup has a good copy of it";
      throw new AppError("not_available", `Can't restore "${path}": it has no readable version, and ${found}`);
    }
    if (plan.state === "older") {
      throw new AppError(
        "conflict",
        `The only good copy of "${path}" is that of ${plan.madeAt}: what changed since then would be lost`,
      );
    }
    if (plan.statements.length > 0) await db.write(plan.statements);
    return { from: plan.from, madeAt: plan.madeAt };
  }

  /** Whoever has it in memory reads it again, and so do open pages. */
  #publish(path: string): void {
    const [folder = "", id = ""] = path.split("/");
    this.#deps.events.publish({ kind: RESTORED, id: path });
    this.#deps.events.publish({ kind: folder.replace(/s$/, ""), id });
  }
}
