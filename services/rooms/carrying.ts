/** What comes in from other programs, and what is carried away. */
import { Exports } from "../exports/exports.ts";
import { Imports } from "../imports/imports.ts";
import type { Undo } from "../on_demand.ts";
import type { ConversationRoom } from "./conversations.ts";
import type { Ground } from "./ground.ts";
import type { Library } from "./library.ts";

/** Both ways. */
export interface CarryingRoom {
  /** Brings in what other programs, or another Parlor, held. */
  imports: Imports;
  /** What is carried away. */
  exports: Exports;
}

/** Opens the room. */
export async function openCarrying(
  { jobs, now, version, folders }: Ground,
  { library, room }: { library: Library; room: ConversationRoom },
  onClose: (undo: Undo) => void,
): Promise<CarryingRoom> {
  const { personas, presets, attachments, characters, lorebooks, userName } = library;
  const { arrivals, reader, messages, store } = room;
  const documents = { personas, presets, attachments, characters, lorebooks };
  const imports = await Imports.open({ ...documents, ...{ jobs, arrivals, now, folder: folders.uploads } });
  onClose(() => imports.close());
  const conversationIds = () => store.ids();
  const exports = new Exports({ ...documents, ...{ reader, messages, userName, now, version, conversationIds } });
  return { imports, exports };
}
