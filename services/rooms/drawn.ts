/** What models make beside replies: pictures, portraits, and characters out of a description. */
import { MessagePictures } from "../chat/message_pictures.ts";
import { createAskModel } from "../chat/side_question.ts";
import { Portraits } from "../characters/portraits.ts";
import { Creator } from "../creator/creator.ts";
import type { BackendLimits } from "../images/backend.ts";
import { type ImageRoom, openImages } from "../images/open_images.ts";
import type { Undo } from "../on_demand.ts";
import type { AnsweringRoom } from "./answering.ts";
import type { ConversationRoom } from "./conversations.ts";
import type { Ground } from "./ground.ts";
import type { Library } from "./library.ts";

/** Everything that is made. */
export interface DrawnRoom {
  /** Pictures that image backends draw. */
  drawn: ImageRoom;
  portraits: Portraits;
  /** Characters that a model writes. */
  creator: Creator;
}

/** Opens the room. Nothing is asked of any backend before somebody wants something. */
export async function openDrawn(
  { db, sealer, events, jobs, trash, versions, dataDir, now }: Ground,
  rooms: {
    library: Library;
    room: ConversationRoom;
    answering: AnsweringRoom;
    limits: Partial<BackendLimits> | undefined;
  },
  onClose: (undo: Undo) => void,
): Promise<DrawnRoom> {
  const { library: { attachments, images, avatars, characters }, room, answering: { chatUpstream }, limits } = rooms;
  const { store, blocks, live, conversations } = room;
  const { room: drawn, painter, close } = await openImages({
    ...{ db, dataDir, events, jobs, trash, versions, attachments, pictures: images, avatars, now, limits },
    sealer: sealer.forPurpose("images"),
    messages: new MessagePictures({ store, blocks, live, events, conversations }),
    ask: createAskModel(chatUpstream),
  });
  onClose(close);
  return {
    drawn,
    portraits: new Portraits({ jobs, characters, painter }),
    creator: new Creator({ jobs, upstream: chatUpstream, characters, attachments, images }),
  };
}
