/**
 * Composes the blocks of a prompt in order (docs/protocols/cards.md#prompt-order). Without side effects: the same input
 * produces the same blocks.
 */
import { byteLength } from "./macros/macro_budget.ts";
import {
  type BlockAtDepth,
  type BlockPart,
  formatLoreName,
  type LayoutItem,
  type PromptBlock,
  type PromptBlocks,
} from "./prompt.ts";
import type { MacroContext, Macros } from "./macros/macros.ts";
import { NOTE_DEPTH } from "./participants.ts";
import type { ChatNote, PromptContext, PromptLore } from "./prompt_context.ts";

/** Input of `composeBlocks`. */
export interface ComposeInput {
  context: PromptContext;
  /** Active lorebook entries, lowest order first. */
  lore: readonly PromptLore[];
  /** Prompts that are disabled by an active entry. */
  disabled?: ReadonlySet<string>;
  /** True if the user hasn't written anything since the last reply. */
  needsUserMessage?: boolean;
  macros: Macros;
  /** Notes of the owner, formatted. */
  memory?: string;
  /** Random source and clock for text that changes with every message anyway. */
  fresh: Pick<MacroContext, "random" | "clock">;
}

/** Macro options of one text. */
interface TextOptions extends Pick<MacroContext, "field" | "source" | "self" | "isBeforeLore"> {
  /** Depth in the history, for text that is inserted there. */
  depth?: number;
}

/** SillyTavern's order of prompts at a depth that have no own one, and of notes and entries. */
const DEFAULT_ORDER = 100;

/** Composes all blocks. */
export function composeBlocks(composition: ComposeInput): PromptBlocks {
  return new Composer(composition).compose();
}

class Composer {
  readonly #context: PromptContext;
  readonly #lore: readonly PromptLore[];
  readonly #disabled: ReadonlySet<string>;
  readonly #needsUserMessage: boolean;
  readonly #macros: Macros;
  readonly #memory: string;
  readonly #fresh: ComposeInput["fresh"];
  readonly #blocks: PromptBlocks = { leading: [], inserted: [], trailing: [] };
  /** True once the history has been placed. */
  #isAfterHistory = false;

  constructor(
    { context, lore, disabled = new Set(), needsUserMessage = false, macros, fresh, memory = "" }: ComposeInput,
  ) {
    this.#context = context;
    this.#lore = lore;
    this.#disabled = disabled;
    this.#needsUserMessage = needsUserMessage;
    this.#macros = macros;
    this.#memory = memory;
    this.#fresh = fresh;
  }

  compose(): PromptBlocks {
    const { items } = this.#context.layout;
    // A preset may omit `main`, and with it the card's. The conversation's system prompt is still sent.
    if (!items.some(({ identifier }) => identifier === "main")) {
      this.#addMain({ identifier: "main", role: "system", forbidsOverrides: true });
    }
    for (const item of items) this.#add(item);
    if (!items.some(({ identifier }) => identifier === "chatHistory")) this.#beginHistory();
    this.#addNotes();
    this.#addEnd();
    return this.#blocks;
  }

  #add(item: LayoutItem): void {
    const { character, persona, layout: { formats } } = this.#context;
    switch (item.identifier) {
      case "main":
        return this.#addMain(item);
      case "worldInfoBefore":
        return this.#addLore("before_char");
      case "worldInfoAfter":
        return this.#addLore("after_char");
      case "personaDescription":
        return persona.placement === undefined ? this.#put(item, "persona", this.#expandPersona()) : undefined;
      case "charDescription":
        return this.#put(
          item,
          "description",
          this.#expandText(character?.description, "description", { self: "description" }),
        );
      case "charPersonality":
        return this.#put(item, "personality", this.#format(character?.personality, formats.personality, "personality"));
      case "scenario": {
        const scenario = this.#context.scenario ?? character?.scenario;
        return this.#put(item, "scenario", this.#format(scenario, formats.scenario, "scenario"));
      }
      case "dialogueExamples":
        return this.#addExamples();
      case "chatHistory":
        return this.#beginHistory();
      case "jailbreak":
        return this.#addInstructions(item);
      default:
        return this.#put(
          item,
          "preset",
          this.#expandPresetText(item, `preset:${item.identifier}`, "preset"),
          item.name,
        );
    }
  }

  /**
   * The conversation's prompt overrides the card's, which overrides the preset's. Each can insert the overridden one as
   * `{{original}}`.
   */
  #addMain(item: LayoutItem): void {
    const { character, systemPrompt, clientSystem } = this.#context;
    let text = this.#disabled.has("system_prompt") ? "" : this.#expandPresetText(item, "main", "main");
    if (character?.systemPrompt && !item.forbidsOverrides) {
      text = this.#override(character.systemPrompt, "main", "card", text);
    }
    if (systemPrompt) text = this.#override(systemPrompt, "main", "chat", text);
    const { position } = this.#getNotePlace();
    if (position === "before_main") this.#pushNote();
    this.#put(item, "main", text);
    this.#put(item, "main", cleanText(clientSystem ?? ""));
    if (position === "after_main") this.#pushNote();
  }

  #getNotePlace(): Required<Pick<ChatNote, "depth" | "role" | "position">> {
    const { depth = NOTE_DEPTH, role = "system", position = "in_chat" } = this.#context.note ?? {};
    return { depth, role, position };
  }

  /** Returns the author's note with the entries around it. */
  #listNote(): Pick<PromptBlock, "part" | "text" | "title" | "lore" | "isDroppedFirst">[] {
    const { note } = this.#context;
    if (note?.isOmitted) return [];
    const listAround = (position: PromptLore["position"]) =>
      this.#lore.filter((entry) => entry.position === position).map((entry) => ({
        ...{ part: "lorebook" as const, text: cleanText(entry.content), ...toLoreFields(entry) },
      }));
    const { depth, position } = this.#getNotePlace();
    const place: TextOptions = position === "in_chat" ? { depth } : {};
    const text = this.#expandText(note?.text, "note", place);
    const { placement } = this.#context.persona;
    const listPersona = (position: string) =>
      placement?.position === position ? [{ part: "persona" as const, text: this.#expandPersona(place) }] : [];
    const blocks = [
      ...listPersona("note_top"),
      ...listAround("note_top"),
      { part: "note" as const, text },
      ...listAround("note_bottom"),
      ...listPersona("note_bottom"),
    ];
    return blocks.filter((block) => block.text !== "");
  }

  #expandPersona(place: TextOptions = {}): string {
    return this.#expandText(this.#context.persona.description, "persona", { self: "persona", ...place });
  }

  #pushNote(): void {
    const { role } = this.#getNotePlace();
    this.#formatSection().push(...this.#listNote().map((block) => ({ ...block, role })));
  }

  #addInstructions(item: LayoutItem): void {
    const own = this.#disabled.has("post_history_instructions")
      ? ""
      : this.#expandText(item.content, "instructions", { source: item.name });
    const card = item.forbidsOverrides ? undefined : this.#context.character?.instructions;
    this.#put(item, "instructions", card ? this.#override(card, "instructions", "card", own) : own, item.name);
  }

  #addLore(position: PromptLore["position"]): void {
    const entries = this.#lore.map((entry) => ({ entry, text: cleanText(entry.content) }))
      .filter(({ entry, text }) => entry.position === position && text !== "");
    const { before, after } = this.#formatLore(entries.map(({ text }) => text), entries[0]?.entry);
    for (const [n, { entry, text }] of entries.entries()) {
      const whole = `${n === 0 ? before : ""}${text}${n === entries.length - 1 ? after : ""}`;
      this.#formatSection().push({ part: "lorebook", role: "system", text: whole, ...toLoreFields(entry) });
    }
  }

  /** Returns the text before and after all entries of a position. */
  #formatLore(texts: readonly string[], first: PromptLore | undefined): { before: string; after: string } {
    const { lore: format } = this.#context.layout.formats;
    const [before, ...more] = format.split("{0}");
    if (first === undefined || more.length === 0) return { before: "", after: "" };
    // The format may be long and repeat the text many times.
    const text = texts.join("\n");
    const source = formatLoreName(first.bookName, first.title);
    const bytes = byteLength(format) + (more.length - 1) * byteLength(text);
    if (!this.#macros.allows(bytes, { field: "lorebook", source })) return { before: "", after: "" };
    return { before: before!, after: more.join(text) };
  }

  /** Adds the card's examples, between those of lorebook entries. */
  #addExamples(): void {
    const begin = this.#expandText(this.#context.layout.formats.exampleBegins, "examples:begin", { field: "examples" });
    const add = (text: string, more: Partial<PromptBlock> = {}) => {
      for (const dialogue of splitExampleDialogues(text)) {
        const whole = begin !== "" && this.#macros.allows(byteLength(begin), { field: "examples" })
          ? `${begin}\n${dialogue}`
          : dialogue;
        this.#formatSection().push({ part: "examples", role: "system", text: whole, ...more });
      }
    };
    const addLore = (position: PromptLore["position"]) => {
      for (const entry of this.#lore) {
        if (entry.position !== position) continue;
        add(cleanText(entry.content), toLoreFields(entry));
      }
    };
    addLore("before_examples");
    add(this.#expandText(this.#context.character?.examples, "mesexamples", { field: "examples", self: "mesexamples" }));
    addLore("after_examples");
  }

  /**
   * Ends the part before the history. Notes follow the card, and documents follow them. The summary comes last, so that a new one invalidates as little of the prompt
   * cache as possible.
   */
  #beginHistory(): void {
    if (this.#isAfterHistory) return;
    const { summary, character, group, action, layout: { formats } } = this.#context;
    // Braces in notes are plain text.
    this.#push("memory", "system", this.#memory);
    if (character !== undefined) {
      const begin = group === undefined ? formats.chatBegins : formats.groupChatBegins;
      this.#push("chat_begins", "system", this.#expandText(begin, "chat_begins"));
    }
    const text = this.#formatSummary(summary?.text);
    if (text !== "") {
      this.#formatSection().push({
        part: "summary",
        role: "system",
        text,
        replacesHistory: summary?.upTo !== undefined,
      });
    }
    this.#isAfterHistory = true;
    if (this.#needsUserMessage) {
      this.#push("preset", "user", this.#expandText(formats.emptyUserMessage, "empty", { field: "preset" }));
    }
    if (group !== undefined && action !== "impersonate") {
      this.#push("speaker", "system", this.#expandText(formats.groupNudge, "speaker", { depth: 0 }));
    }
  }

  #formatSummary(text: string | undefined): string {
    const summary = cleanText(text ?? "");
    return summary === "" ? "" : `[What happened before the messages that follow: ${summary}]`;
  }

  /** Adds the author's note with the entries around it, the card's note, the persona and entries at a depth. */
  #addNotes(): void {
    const { depth, role, position } = this.#getNotePlace();
    if (position === "in_chat") {
      for (const block of this.#listNote()) {
        this.#blocks.inserted.push({ ...block, role, depth, order: DEFAULT_ORDER });
      }
    }
    const own = this.#context.character?.note;
    if (own) {
      const text = this.#expandText(own.text, "character_note", { depth: own.depth, isBeforeLore: true });
      this.#insert("character_note", own.role, text, own.depth, DEFAULT_ORDER);
    }
    const { placement } = this.#context.persona;
    if (placement?.position === "at_depth") {
      const text = this.#expandPersona({ depth: placement.depth });
      this.#insert("persona", placement.role, text, placement.depth, DEFAULT_ORDER);
    }
    for (const entry of this.#lore) {
      if (entry.position !== "at_depth") continue;
      const { content, role: entryRole, depth: entryDepth } = entry;
      this.#insert("lorebook", entryRole, cleanText(content), entryDepth, DEFAULT_ORDER, toLoreFields(entry));
    }
  }

  #addEnd(): void {
    const { action, layout: { formats, prefill, continuation } } = this.#context;
    if (action === "impersonate") {
      this.#push("impersonate", "system", this.#expandText(formats.impersonation, "impersonate", { depth: 0 }));
    }
    if (action === "continue") {
      this.#push("continue", "system", this.#expandText(continuation?.nudge, "continue", { depth: 0 }));
    }
    const begin = this.#expandText(prefill, "prefill", { depth: 0 });
    if (begin !== "" && action !== "continue") {
      this.#blocks.prefill = { part: "prefill", role: "assistant", text: begin };
    }
  }

  #insert(
    part: BlockPart,
    role: string,
    text: string,
    depth: number,
    order: number,
    more?: Partial<BlockAtDepth>,
  ): void {
    if (text !== "") this.#blocks.inserted.push({ part, role, text, depth, order, ...more });
  }

  #put({ role, depth, order }: LayoutItem, part: BlockPart, text: string, title?: string): void {
    if (depth !== undefined) this.#insert(part, role, text, depth, order ?? DEFAULT_ORDER, title ? { title } : {});
    else this.#push(part, role, text, title);
  }

  #push(part: BlockPart, role: string, text: string, title?: string): void {
    if (text !== "") this.#formatSection().push({ part, role, text, ...(title && { title }) });
  }

  #formatSection(): PromptBlock[] {
    return this.#isAfterHistory ? this.#blocks.trailing : this.#blocks.leading;
  }

  #expandPresetText(
    { content, depth, needsCharacter, name, identifier }: LayoutItem,
    location: string,
    field: BlockPart,
  ): string {
    if (needsCharacter && this.#context.character === undefined) return "";
    return this.#expandText(content, location, { depth, field, source: name ?? identifier });
  }

  #override(text: string, field: BlockPart, source: string, original: string): string {
    const location = `${field}:${source}`;
    const more = {
      isBeforeLore: source === "card",
      ...this.#formatFreshness(undefined),
    } satisfies Partial<MacroContext>;
    return cleanText(this.#macros.expand(text, { location, field, source, original, ...more }));
  }

  /** Formats a field. A format that exceeds the macro budget is skipped, and the field is sent without it. */
  #format(text: string | undefined, format: string, field: "personality" | "scenario"): string {
    const chance = this.#formatFreshness(undefined);
    const expanded = this.#macros.expand(text ?? "", { location: field, self: field, ...chance });
    if (cleanText(expanded) === "" || format.trim() === "") return cleanText(expanded);
    const context = {
      location: `${field}:format`,
      field,
      expanded: { [field]: expanded },
      ...chance,
    } satisfies MacroContext;
    return cleanText(this.#macros.tryExpand(format, context) ?? expanded);
  }

  #expandText(text: string | undefined, location: string, options: TextOptions = {}): string {
    const { depth, ...more } = options;
    return text ? cleanText(this.#macros.expand(text, { location, ...more, ...this.#formatFreshness(depth) })) : "";
  }

  /**
   * Returns the random source and clock for a text. Text inside or after the history may change freely: the prompt
   * cache ends before it.
   */
  #formatFreshness(depth: number | undefined): ComposeInput["fresh"] {
    return this.#isAfterHistory || depth !== undefined ? this.#fresh : {};
  }
}

/** Returns the fields that identify the lorebook entry of a block. */
function toLoreFields({ book, bookName, entry, title, reason, isDroppedFirst }: PromptLore): Partial<PromptBlock> {
  const lore = { book, bookName, entry, title, reason };
  return { ...(title && { title }), lore, ...(isDroppedFirst && { isDroppedFirst: isDroppedFirst }) };
}

function cleanText(text: string): string {
  return text.replaceAll("\r", "").trim();
}

/** Splits example dialogue at `<START>`. @returns The dialogues without the markers. */
function splitExampleDialogues(text: string): string[] {
  return text.replaceAll("\r", "").split(/^[ \t]*<START>[ \t]*$|<START>/gim).map((dialogue) => dialogue.trim())
    .filter((dialogue) => dialogue !== "");
}
