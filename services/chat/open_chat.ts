/** Opens chat: assembling prompts, calling the model, saving replies, and generating titles and summaries when idle. */
import type { Attachments } from "../attachments/attachments.ts";
import type { ImagePool } from "../attachments/images/image_pool.ts";
import type { CloseHook, Lazy } from "../async/lazy.ts";
import type { Characters } from "../characters/characters.ts";
import type { ConversationServices } from "../conversations/open_conversations.ts";
import { DocumentUseStore } from "../documents/document.ts";
import type { DocumentServices } from "../documents/open_documents.ts";
import type { ContextSizes } from "../llm/context_sizes.ts";
import type { UpstreamClient } from "../llm/upstream_client.ts";
import type { MemoryServices } from "../memories/memories.ts";
import type { LorebookServices } from "../lorebooks/lorebooks.ts";
import type { Personas } from "../personas/personas.ts";
import type { Presets } from "../presets/presets.ts";
import type { RegexScripts } from "../regex_scripts/regex_scripts.ts";
import type { ModelRouter } from "../llm/model_router.ts";
import type { ToolCallStore } from "../tools/tool_call_store.ts";
import type { ToolRegistry } from "../tools/tool_registry.ts";
import type { DocumentReader } from "../prompts/document_choice.ts";
import type { OwnerSettings } from "../settings/settings.ts";
import { TokenCounter, TokenRatios } from "../prompts/token_counter.ts";
import type { Core } from "../core/open_core.ts";
import type { LoreSettings } from "../prompts/compose_context.ts";
import { Prompts } from "../prompts/prompts.ts";
import { type PromptContextDeps, PromptContexts } from "../prompts/prompt_context.ts";
import { CallBuilder, type CallBuilderDeps } from "./call_builder.ts";
import { ChatPreviewer, createLorebookTest, type LorebookTest } from "./previews.ts";
import { CallSender, type ReplyPictures, ReplyRunner } from "./reply_runner.ts";
import { ChatService, StatelessChat } from "./chat_service.ts";
import { MemoryReading } from "./memory_reading.ts";
import { ChatScripts, type ChatScriptsDeps } from "./message_scripts.ts";
import { MessageWriter } from "./message_writer.ts";
import { QueueSender } from "./queue_sender.ts";
import { Replies } from "./replies.ts";
import { ReplySaver } from "./reply_saver.ts";
import { listChatTools, ToolFallback } from "./call_tools.ts";
import { ReplyResumes } from "../conversations/live_replies.ts";
import type { ResumeState } from "./tools/tool_round.ts";
import type { ToolLimits, ToolRunDeps } from "./tools/tool_run.ts";
import { type GoingOnDeps, Repeats, resumeUnfinishedReplies, resumeWaitingReplies } from "./going_on.ts";
import { IdleQueue, Titles } from "./idle_tasks.ts";
import { Journal } from "./journal/journal.ts";
import { OverflowRecovery } from "./overflow_recovery.ts";
import { Summaries } from "./summaries.ts";

/** Dependencies of `openChat`. */
export interface ChatDeps extends ConversationServices, LorebookServices {
  attachments: Attachments;
  images: ImagePool;
  cards: Characters;
  personas: Personas;
  presets: Presets;
  regexScripts: RegexScripts;
  /** See `ChatScriptsDeps`. */
  findModel: ChatScriptsDeps["findModel"];
  upstream: UpstreamClient;
  contextSizes: ContextSizes;
  modelRouter: ModelRouter;
  /** Notifies other devices of replies. */
  push: ToolRunDeps["push"] & { replyCompleted(reply: { conversationId: string }): void };
  /** Opens the documents. */
  documents: Lazy<DocumentServices>;
  memory: MemoryServices;
  /** Opens the tools. */
  tools: () => Promise<ToolRegistry>;
  callStore: ToolCallStore;
  addToGallery(pictures: ReplyPictures): Promise<void>;
  /** Limits of replies that call tools, for tests. */
  toolLimits?: Partial<ToolLimits>;
  /** How long no reply may run before titles and summaries are generated; `Infinity` for never. */
  titleIdleMs: number | undefined;
  /** How long a reply waits for token counts of its server, for tests. */
  modelFactsMs: number | undefined;
}

/** What chat consists of. */
export interface ChatServices {
  /** Starts replies in conversations. */
  chat: ChatService;
  /** Answers requests that store nothing. */
  stateless: StatelessChat;
  /** The running and the stored replies. */
  replies: Replies;
  /** Queues messages until the running reply has ended. */
  queue: QueueSender;
  previewer: ChatPreviewer;
  /** Tests which entries of a lorebook a conversation or text activates. */
  lorebookTest: LorebookTest;
  /** Reads idle chats for notes. */
  memoryReading: MemoryReading;
  /** Runs regex scripts on what is shown or edited. */
  scripts: ChatScripts;
}

/** Opens chat. */
export async function openChat(core: Core, deps: ChatDeps, onClose: (hook: CloseHook) => void): Promise<ChatServices> {
  const { db, sealer, events, log, now, folders, settings, getOwnerName } = core;
  const { store, blocks, variants, reader, live, locks, conversationWriter, unfinished } = deps;
  const { attachments, images, cards, personas, presets, lorebooks, keyMatcher, upstream, modelRouter } = deps;
  const { contextSizes } = deps;
  const journal = await Journal.open(folders.replies, sealer.forPurpose("journal"));
  onClose(() => journal.close());
  const ratios = new TokenRatios({ db, sealer: sealer.forPurpose("settings"), log });
  onClose(() => ratios.close());
  const idle = new IdleQueue({ live, events, idleMs: deps.titleIdleMs });
  onClose(() => idle.close());
  const idleDeps = { store, blocks, conversationWriter, log, idle, client: upstream };
  const titles = new Titles({ ...idleDeps, isEnabled: () => settings.get().settings.auto_title });
  const summaries = new Summaries({
    ...idleDeps,
    cards,
    personas,
    getOwnerName,
    isEnabled: () => settings.get().settings.auto_summary,
  });
  const memoryReading = new MemoryReading({
    ...deps.memory,
    ...idleDeps,
    modelRouter,
    cards,
    personas,
    events,
    getOwnerName,
    settings: () => settings.get().settings,
    now,
  });
  onClose(() => memoryReading.close());
  const getLoreSettings = () => toLoreSettings(settings.get().settings);
  const getOwner = () => ({
    name: getOwnerName(),
    personaId: settings.get().settings.default_persona_id ?? undefined,
  });
  const { prompts, scenes } = openPrompts({
    upstream,
    modelFactsMs: deps.modelFactsMs,
    contextSizes,
    ratios,
    now,
    personas,
    presets,
    cards,
    lorebooks,
    matcher: keyMatcher,
    regexScripts: deps.regexScripts,
    getLoreSettings,
    memories: {
      listUsable: () => deps.memory.proposals.listUsable(),
      getBudgetPercent: () => settings.get().settings.memory_budget_percent,
    },
    openDocuments: async () => toDocumentReader(await deps.documents()),
    getOwner,
  });
  const promptDeps = { attachments, images };
  const { callStore } = deps;
  const chatTools = { store, registry: deps.tools, callStore };
  const fallback = new ToolFallback(now);
  const callDeps: CallBuilderDeps = {
    uses: new DocumentUseStore({ db, events }),
    store,
    blocks,
    scenes,
    prompts,
    modelRouter,
    images: promptDeps,
    tools: {
      list: (conversationId, signal) => listChatTools(chatTools, conversationId, signal),
      isRefusedBy: (route) => fallback.find(route) !== undefined,
    },
    now,
  };
  const calls = new CallBuilder(callDeps);
  const sender = new CallSender({ client: upstream, ratios });
  const overflow = new OverflowRecovery({ sizes: contextSizes, ratios });
  const saver = new ReplySaver({ store, conversationWriter, reader, variants, log, now });
  const conversationSealer = sealer.forPurpose("conversations");
  const tools: ToolRunDeps = {
    ...chatTools,
    conversationWriter,
    reader,
    images: promptDeps,
    resumes: new ReplyResumes<ResumeState>(db, conversationSealer),
    journal,
    events,
    log,
    now,
    limits: deps.toolLimits,
    push: deps.push,
  };
  const goingOn: GoingOnDeps = {
    store,
    blocks,
    conversationWriter,
    live,
    locks,
    journal,
    modelRouter,
    tools,
    getRunner: () => runner,
    getSetting: () => settings.get().settings.continue_after_restart,
  };
  const runner = new ReplyRunner({
    images: promptDeps,
    addToGallery: deps.addToGallery,
    live,
    events,
    log,
    modelRouter,
    calls,
    sender,
    saver,
    fallback,
    overflow,
    repeats: new Repeats(goingOn),
    onEnd: (reply, request) => queue.replyEnded(reply, request),
    listeners: [prompts, titles, summaries, deps.push],
  });
  const replies = new Replies({ db, store, reader, variants, live, locks, blocks, callStore });
  const writer = new MessageWriter({ db, store, blocks, variants, conversationWriter, reader, images: promptDeps });
  const { queues } = deps;
  const chat = new ChatService({ store, locks, journal, writer, calls, runner, replies, queues, tools, now });
  const queue = new QueueSender({ store, blocks, queues, locks, live, writer, calls, chat, log });
  onClose(async () => {
    await chat.close();
    await queue.close();
  });
  await resumeUnfinishedReplies(goingOn, unfinished);
  await resumeWaitingReplies(db, goingOn);
  return {
    chat,
    stateless: new StatelessChat({ calls, sender, overflow }),
    replies,
    queue,
    previewer: new ChatPreviewer(callDeps),
    lorebookTest: createLorebookTest({
      ...{ store, blocks, lorebooks, keyMatcher, characters: cards, personas, presets },
      ...{ modelRouter, prompts, getOwner, getLoreSettings },
    }),
    memoryReading,
    scripts: new ChatScripts({ store, scenes, presets, regexScripts: deps.regexScripts, findModel: deps.findModel }),
  };
}

function toDocumentReader({ documents, passages }: DocumentServices): DocumentReader {
  return {
    find: (id) => documents.find(id),
    waitUntilRead: (id, signal) => documents.waitUntilRead(id, signal),
    readPages: (id, ranges) => documents.readPages(id, ranges),
    rank: (ids, query) => passages.rank(ids, query),
    listPassages: (id) => passages.list(id),
  };
}

/** Dependencies of prompt assembly. */
interface PromptServicesDeps extends PromptContextDeps {
  upstream: UpstreamClient;
  contextSizes: ContextSizes;
  ratios: TokenRatios;
  openDocuments(): Promise<DocumentReader>;
  modelFactsMs: number | undefined;
}

/** The services that assemble prompts. */
interface PromptServices {
  prompts: Prompts;
  scenes: PromptContexts;
}

/** Creates the services. */
function openPrompts(deps: PromptServicesDeps): PromptServices {
  const { upstream, contextSizes, ratios, openDocuments, modelFactsMs, ...parts } = deps;
  return {
    prompts: new Prompts(new TokenCounter(upstream, ratios, modelFactsMs), contextSizes, openDocuments),
    scenes: new PromptContexts(parts),
  };
}

/** Returns the settings as lorebooks use them. */
function toLoreSettings(settings: OwnerSettings): LoreSettings {
  return {
    keepsFound: settings.keep_found_lore,
    budgetPercent: settings.lore_budget_percent,
    budgetTokens: settings.lore_budget_tokens ?? undefined,
    minActivations: settings.lore_min_activations,
    minActivationsDepth: settings.lore_min_activations_depth ?? undefined,
    maxRecursion: settings.lore_max_recursion ?? undefined,
    scansNames: settings.lore_scans_names,
    bookOrder: settings.lore_order,
  };
}
