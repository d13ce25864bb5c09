/** What is looked after while nobody waits for it: what is too old to keep, and what a killed process left behind. */
import { Mutex } from "../async/keyed_mutex.ts";
import { overdueRevisions } from "../conversations/revisions/revision_age.ts";
import { messageOf } from "../errors.ts";
import type { Lazy } from "../async/lazy.ts";
import type { CarryingRoom } from "./carrying.ts";
import type { ConversationRoom } from "./conversations.ts";
import type { Ground } from "./ground.ts";
import type { Library } from "./library.ts";
import type { SpeechRoom } from "./speech.ts";

/** How often what is too old to keep is looked for, beside every start. */
const DAY_MS = 24 * 60 * 60 * 1000;
/** How often attachments are looked at that nothing may refer to any more. */
const HOUR_MS = 60 * 60 * 1000;
/** From the moment that requests can be taken: whoever waits for the start is served by then. */
const BEGIN_MS = 1_000;

/** Rooms that tidy up; one in which there is nothing to do is not opened for it. */
export interface TidiedRooms {
  library: Lazy<Library>;
  conversations: Lazy<ConversationRoom>;
  speech: Lazy<SpeechRoom>;
  carrying: Lazy<CarryingRoom>;
}

/** The work, done one at a time. */
export interface Tidying {
  /** Begins with it: soon, and then again and again. */
  begin(): void;
  /** Does all of it now. What fails is logged and keeps nothing else from being done. */
  tidy(): Promise<void>;
  /** Waits for what is under way; to be called before any room closes. */
  close(): Promise<void>;
}

/** Prepares the work. */
export function openTidying(ground: Ground, rooms: TidiedRooms): Tidying {
  const { db, trash, versions, folders, log, now } = ground;
  const timers: ReturnType<typeof setTimeout>[] = [];
  const lock = new Mutex();

  const inTurn = (what: string, run: () => Promise<unknown>) => {
    return lock.run(run).catch((error) => log("error", what, { error: messageOf(error) }));
  };
  const isFilled = async (folder: string) => {
    for await (const _ of Deno.readDir(folder)) return true;
    return false;
  };

  const removeOld = () =>
    inTurn("Cannot remove what is too old to keep", async () => {
      await trash.sweep();
      await versions.sweep();
      if (overdueRevisions(db, now()).length > 0) await (await rooms.conversations()).revisions.sweep();
    });
  const removeUnused = () =>
    inTurn("Cannot remove attachments that nothing refers to", async () => {
      const hasRows = db.get("SELECT 1 FROM attachment UNION ALL SELECT 1 FROM attachment_ref LIMIT 1") !== undefined;
      if (!hasRows && !await isFilled(folders.attachments)) return;
      await (await rooms.conversations()).references.sweep();
      await (await rooms.library()).attachments.sweep();
    });
  /** Each room removes it as it opens. */
  const removeLeftovers = () =>
    inTurn("Cannot remove what an earlier process left", async () => {
      if (await isFilled(folders.replies)) await rooms.conversations();
      if (await isFilled(folders.imports)) await rooms.speech();
      if (await isFilled(folders.uploads)) await rooms.carrying();
    });
  const tidy = async () => {
    await Promise.all([removeOld(), removeUnused(), removeLeftovers()]);
  };

  return {
    tidy,
    close() {
      for (const timer of timers) clearTimeout(timer);
      return lock.settled();
    },
    begin() {
      timers.push(setTimeout(tidy, BEGIN_MS), setInterval(removeOld, DAY_MS), setInterval(removeUnused, HOUR_MS));
    },
  };
}
