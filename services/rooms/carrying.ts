/** What comes in from other programs, and what is carried away. */
import { Exports } from "../import_export/exports.ts";
import { Imports } from "../import_export/imports.ts";
import type { CloseHook } from "../async/lazy.ts";
import type { AnsweringRoom } from "./answering.ts";
import type { ConversationRoom } from "./conversations.ts";
import type { DrawnRoom } from "./drawn.ts";
import type { Ground } from "./ground.ts";
import type { Library } from "./library.ts";
import type { SpeechRoom } from "./speech.ts";

/** Both ways. */
export interface CarryingRoom {
  /** Brings in what other programs, or another Parlor, held. */
  imports: Imports;
  /** What is carried away. */
  exports: Exports;
}

/** Opens the room. */
export async function openCarrying(
  { budget, jobs, now, version, folders, settings }: Ground,
  rooms: {
    library: Library;
    room: ConversationRoom;
    answering: AnsweringRoom;
    drawn: DrawnRoom;
    speech: SpeechRoom;
  },
  onClose: (hook: CloseHook) => void,
): Promise<CarryingRoom> {
  const { personas, presets, attachments, characters, lorebooks, userName } = rooms.library;
  const { arrivals, reader, variants, store } = rooms.room;
  const { workflows, profiles: imageProfiles } = rooms.drawn.drawn;
  const { voices, speech: { settings: speech } } = rooms.speech;
  const { connections } = rooms.answering;
  const documents = { personas, presets, attachments, characters, lorebooks };
  const surroundings = { voices, workflows, connections, imageProfiles, settings, speech };
  const imports = await Imports.open({
    ...documents,
    ...surroundings,
    ...{ budget, jobs, arrivals, now, folder: folders.uploads },
  });
  onClose(() => imports.close());
  const conversationIds = () => store.ids();
  const exports = new Exports({
    ...documents,
    ...surroundings,
    ...{ budget, reader, variants, userName, now, version, conversationIds },
  });
  return { imports, exports };
}
