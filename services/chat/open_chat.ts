/** Opens chat: assembling prompts, calling the model, saving replies, and generating titles and summaries when idle. */
import type { Attachments } from "../attachments/attachments.ts";
import type { ImagePool } from "../attachments/images/image_pool.ts";
import type { CloseHook } from "../async/lazy.ts";
import type { Characters } from "../characters/characters.ts";
import type { ConversationServices } from "../conversations/open_conversations.ts";
import type { UpstreamClient } from "../llm/upstream_client.ts";
import type { LorebookRoom } from "../lorebooks/open_lorebooks.ts";
import type { Personas } from "../personas/personas.ts";
import type { Presets } from "../presets/presets.ts";
import type { ModelRouter } from "../llm/model_router.ts";
import { CallBuilder } from "./call_builder.ts";
import { CallSender } from "./call_sender.ts";
import { ChatService } from "./chat_service.ts";
import { MessageWriter } from "./message_writer.ts";
import { Replies } from "./replies.ts";
import { ReplyRunner } from "./reply_runner.ts";
import { ReplySaver } from "./reply_saver.ts";
import { IdleQueue } from "./idle_queue.ts";
import { Journal } from "./journal/journal.ts";
import { Summaries } from "./summaries.ts";
import { Titles } from "./titles.ts";
import { openPrompts } from "../prompts/open_prompts.ts";
import { TokenRatios } from "../prompts/tokens/token_ratios.ts";
import type { Core } from "../core/open_core.ts";

/** Dependencies of `openChat`. */
export interface ChatDeps extends ConversationServices, LorebookRoom {
  attachments: Attachments;
  images: ImagePool;
  cards: Characters;
  personas: Personas;
  presets: Presets;
  upstream: UpstreamClient;
  modelRouter: ModelRouter;
  /** How long no reply may run before titles and summaries are generated; `Infinity` for never. */
  titleIdleMs: number | undefined;
}

/** Opens chat. */
export async function openChat(core: Core, deps: ChatDeps, onClose: (hook: CloseHook) => void): Promise<ChatService> {
  const { db, sealer, events, log, now, folders, settings, getOwnerName } = core;
  const { store, blocks, variants, reader, live, locks, conversations } = deps;
  const { attachments, images, cards, personas, presets, lorebooks, keyMatcher, upstream, modelRouter } = deps;
  const journal = await Journal.open(folders.replies, sealer.forPurpose("journal"));
  onClose(() => journal.close());
  const ratios = new TokenRatios({ db, sealer: sealer.forPurpose("settings"), log });
  onClose(() => ratios.close());
  const idle = new IdleQueue({ live, events, idleMs: deps.titleIdleMs });
  onClose(() => idle.close());
  const idleDeps = { db, store, blocks, conversations, locks, log, idle, client: upstream };
  const titles = new Titles({ ...idleDeps, isWanted: () => settings.get().settings.auto_title });
  const summaries = new Summaries({
    ...idleDeps,
    cards,
    personas,
    ownerName: getOwnerName,
    isWanted: () => settings.get().settings.auto_summary,
  });
  const { prompts, scenes } = openPrompts({
    upstream,
    ratios,
    now,
    personas,
    presets,
    cards,
    lorebooks,
    matcher: keyMatcher,
    owner: () => ({
      name: getOwnerName(),
      personaId: settings.get().settings.default_persona_id ?? undefined,
    }),
  });
  const partDeps = { attachments, images };
  const calls = new CallBuilder({ store, blocks, scenes, prompts, modelRouter, images: partDeps, now });
  const sender = new CallSender({ client: upstream, ratios });
  const saver = new ReplySaver({ conversations, variants, log, now });
  const chat = new ChatService({
    store,
    locks,
    journal,
    writer: new MessageWriter({ db, store, blocks, variants, conversations, images: partDeps }),
    calls,
    sender,
    runner: new ReplyRunner({ live, events, log, modelRouter, calls, sender, saver, listeners: [titles, summaries] }),
    replies: new Replies({ db, store, reader, variants, live, locks }),
    now,
  });
  onClose(() => chat.close());
  return chat;
}
