/** Whether the first-run wizard has ended. */
import type { EventHub } from "../events/event_hub.ts";
import type { RememberedFlag } from "./persistent_flag.ts";
import type { Surroundings } from "./setup_environment.ts";

/** The first-run flag. */
export interface Setup {
  isCompleted(): boolean;
  readonly surroundings: Surroundings;
  /** @throws {AppError} `conflict` when a flag or the environment says otherwise. */
  complete(): Promise<void>;
}

/** Opens the first-run wizard's state. */
export function createSetup(
  { flag, events, surroundings }: { flag: RememberedFlag; events: EventHub; surroundings: Surroundings },
): Setup {
  return {
    surroundings,
    isCompleted: () => flag.isSet(),
    async complete() {
      if (flag.isSet()) return;
      await flag.set();
      events.publish({ kind: "setup", id: "setup_completed" });
    },
  };
}
