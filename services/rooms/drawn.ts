/** What models make beside replies: pictures, portraits, and characters out of a description. */
import { MessagePictures } from "../conversations/message_images.ts";
import { createAskModel } from "../chat/one_shot_completion.ts";
import { Portraits } from "../characters/portraits.ts";
import { Creator } from "../characters/generation/character_generator.ts";
import type { BackendLimits } from "../image_generation/backend.ts";
import { type ImageRoom, openImages } from "../image_generation/image_generation.ts";
import type { CloseHook } from "../async/lazy.ts";
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
  onClose: (hook: CloseHook) => void,
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
