/** Replies: how they are assembled, asked for, written and kept, and what is made of them while nobody waits. */
import { ChatService } from "../chat/chat.ts";
import { IdleQueue } from "../chat/summaries/idle_queue.ts";
import { Journal } from "../chat/journal/journal.ts";
import { Summaries } from "../chat/summaries/summaries.ts";
import { Titles } from "../chat/summaries/titles.ts";
import type { CloseHook } from "../async/lazy.ts";
import { openPrompts } from "../prompts/open_prompts.ts";
import { TokenRatios } from "../prompts/tokens/token_ratios.ts";
import type { AnsweringRoom } from "./answering.ts";
import type { ConversationRoom } from "./conversations.ts";
import type { Ground } from "./ground.ts";
import type { Library } from "./library.ts";

/**
 * Opens the room.
 *
 * @param titleIdleMs How long nobody must have been answered before a title or a summary is made; infinite for none.
 */
export async function openChat(
  { db, sealer, events, log, now, folders, settings, ownerName }: Ground,
  rooms: { library: Library; room: ConversationRoom; answering: AnsweringRoom; titleIdleMs: number | undefined },
  onClose: (hook: CloseHook) => void,
): Promise<ChatService> {
  const { library, room, answering: { upstream, chatUpstream }, titleIdleMs } = rooms;
  const { store, blocks, variants, live, locks, conversations } = room;
  const { personas, presets, pictures, lorebooks, keyMatcher, characters: cards } = library;
  const journal = await Journal.open(folders.replies, sealer.forPurpose("journal"));
  onClose(() => journal.close());
  const ratios = new TokenRatios({ db, sealer: sealer.forPurpose("settings"), log });
  onClose(() => ratios.close());
  const idle = new IdleQueue({ live, events, idleMs: titleIdleMs });
  onClose(() => idle.close());
  const idleParts = { db, store, blocks, conversations, locks, log, idle, upstream: chatUpstream };
  const titles = new Titles({ ...idleParts, isWanted: () => settings.get().settings.auto_title });
  const summaries = new Summaries({
    ...{ ...idleParts, cards, personas, ownerName },
    isWanted: () => settings.get().settings.auto_summary,
  });
  const chat = new ChatService({
    ...{ db, store, blocks, variants, conversations, live, locks, events, log, now, pictures, journal, ratios },
    ...{ upstream: chatUpstream, listeners: [titles, summaries] },
    ...openPrompts({
      ...{ upstream, ratios, now, personas, presets, cards, lorebooks, matcher: keyMatcher },
      owner: () => ({
        name: ownerName(),
        personaId: settings.get().settings.default_persona_id ?? undefined,
      }),
    }),
  });
  onClose(() => chat.close());
  return chat;
}
