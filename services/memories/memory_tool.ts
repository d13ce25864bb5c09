/**
 * A tool by which a model proposes a note in the middle of a chat. It only adds a proposal, which the owner accepts or
 * dismisses, so it is allowed without asking. Offered while proposals are on.
 */
import { createHash } from "node:crypto";
import { AppError } from "../errors.ts";
import type { JsonObject } from "../json/type_guards.ts";
import type { SealedSetting } from "../storage/documents/sealed_json.ts";
import type { Tool, ToolCallOptions, ToolOutput, ToolPermission, ToolSource } from "../tools/tool_registry.ts";
import { MAX_MEMORY_TEXT, type MemoryScope } from "./memory.ts";
import type { MemoryProposals, MemoryUse, ProposalOutcome } from "./memory_proposals.ts";

/** Id of the tool's server. */
const MEMORY_SERVER_ID = "memory";

/** The chat that a call comes from. */
export interface ToolChat {
  /** False if nothing shall be learned from it. */
  learns: boolean;
  characterId?: string;
  personaId?: string;
}

/** Dependencies of the tool. */
export interface MemoryToolDeps {
  proposals: MemoryProposals;
  use: SealedSetting<MemoryUse>;
  /** Whether the owner wants proposals. */
  isWanted(): boolean;
  /** Finds a chat; `undefined` if it's gone. */
  findChat(id: string): Promise<ToolChat | undefined>;
}

const NAME = "propose_memory";
const DESCRIPTION =
  "Proposes a short note to remember in later chats: a lasting fact about the user, a preference, or something to come " +
  "back to. The user decides whether it is kept. Use it rarely, and never for passwords or numbers of cards and accounts.";
const INPUT_SCHEMA: JsonObject = {
  type: "object",
  properties: {
    text: { type: "string", description: "One fact in one short sentence", minLength: 1, maxLength: MAX_MEMORY_TEXT },
    scope: {
      type: "string",
      enum: ["everything", "character"],
      description: "character: only between the user and the character of this chat",
    },
  },
  required: ["text"],
  additionalProperties: false,
};
const FINGERPRINT = createHash("sha256").update(JSON.stringify([DESCRIPTION, INPUT_SCHEMA])).digest("hex");

const ANSWERS: Record<ProposalOutcome, string> = {
  proposed: "Proposed. The user will decide.",
  known: "There is such a note or proposal already.",
  decided: "The user has decided about this before.",
  invalid: "The text is empty or too long.",
  full: "Too many proposals are waiting for the user.",
};

/** The tool as a source. */
export class MemoryTool implements ToolSource {
  readonly #deps: MemoryToolDeps;

  constructor(deps: MemoryToolDeps) {
    this.#deps = deps;
  }

  listTools(): Promise<{ tools: Tool[]; unavailable: [] }> {
    return Promise.resolve({ tools: this.#deps.isWanted() ? [this.#create()] : [], unavailable: [] });
  }

  findTool(serverId: string, name: string): Promise<Tool | undefined> {
    const isThis = serverId === MEMORY_SERVER_ID && name === NAME && this.#deps.isWanted();
    return Promise.resolve(isThis ? this.#create() : undefined);
  }

  async callTool(_tool: Tool, args: JsonObject, { conversationId, messageId }: ToolCallOptions): Promise<ToolOutput> {
    const { proposals, findChat, isWanted } = this.#deps;
    if (!isWanted()) throw new AppError("not_found", "Proposals of notes are off");
    const { text, scope } = args;
    const chat = conversationId === undefined ? undefined : await findChat(conversationId);
    if (chat === undefined || !chat.learns) return toOutput("Nothing is remembered from this chat.", true);
    if (typeof text !== "string") return toOutput(ANSWERS.invalid, true);
    const outcome = await proposals.add({
      text,
      scope: scope === "character" ? toCharacterScope(chat) : { kind: "everything" },
      source: { conversationId: conversationId!, messageId },
    });
    return toOutput(ANSWERS[outcome], outcome === "invalid");
  }

  async setPermission(_tool: Tool, toolPermission: ToolPermission): Promise<void> {
    await this.#deps.use.change((before) => ({ ...before, toolPermission }));
  }

  #create(): Tool {
    return {
      serverId: MEMORY_SERVER_ID,
      serverName: "Memory",
      name: NAME,
      description: DESCRIPTION,
      inputSchema: INPUT_SCHEMA,
      hints: { readOnly: false, destructive: false },
      permission: this.#deps.use.load().content.toolPermission ?? "allow",
      fingerprint: FINGERPRINT,
    };
  }
}

function toCharacterScope({ characterId, personaId }: ToolChat): MemoryScope {
  if (characterId === undefined) return { kind: "everything" };
  return { kind: "character", id: characterId, ...(personaId && { personaId }) };
}

function toOutput(text: string, isError: boolean): ToolOutput {
  return { parts: [{ type: "text", text }], isError, truncated: false };
}
