/** Orders the pieces of a scene (docs/protocols/cards.md#prompt-order). Pure: the same scene gives the same pieces. */
import { byteLength } from "./macros/macro_budget.ts";
import type { LayoutItem } from "./prompt_layout.ts";
import type { MacroPlace, Macros } from "./macros/macros.ts";
import { type BlockPart, loreName, type PlacedBlock, type PromptBlock, type PromptBlocks } from "./prompt_blocks.ts";
import type { Scene, SceneLore } from "./prompt_context.ts";

/** What the pieces are made with. */
export interface Composition {
  scene: Scene;
  /** Entries that fired, the lowest order first. */
  lore: readonly SceneLore[];
  /** The owner's prompts that an entry switches off. */
  disabled?: ReadonlySet<string>;
  /** True where the owner has said nothing since the last answer. */
  isTurnMissing?: boolean;
  macros: Macros;
  /** Chance and time for what moves with every turn anyhow. */
  fresh: Pick<MacroPlace, "random" | "clock">;
}

/** What is special about a text. */
interface TextOptions extends Pick<MacroPlace, "field" | "source" | "self"> {
  /** Where it goes into the history. */
  depth?: number;
}

/** Where entries around a note go when there is no note; SillyTavern's own default. */
const NOTE_DEPTH = 4;

/** Gives all pieces. */
export function composeBlocks(composition: Composition): PromptBlocks {
  return new Composer(composition).compose();
}

class Composer {
  readonly #scene: Scene;
  readonly #lore: readonly SceneLore[];
  readonly #disabled: ReadonlySet<string>;
  readonly #isTurnMissing: boolean;
  readonly #macros: Macros;
  readonly #fresh: Composition["fresh"];
  readonly #blocks: PromptBlocks = { leading: [], inserted: [], trailing: [] };
  /** The history is behind us. */
  #isBehind = false;

  constructor({ scene, lore, disabled = new Set(), isTurnMissing = false, macros, fresh }: Composition) {
    this.#scene = scene;
    this.#lore = lore;
    this.#disabled = disabled;
    this.#isTurnMissing = isTurnMissing;
    this.#macros = macros;
    this.#fresh = fresh;
  }

  compose(): PromptBlocks {
    const { items } = this.#scene.layout;
    // A preset may leave it out; what the owner wrote for this conversation goes out all the same.
    if (!items.some(({ identifier }) => identifier === "main")) this.#addMain({ identifier: "main", role: "system" });
    for (const item of items) this.#add(item);
    if (!items.some(({ identifier }) => identifier === "chatHistory")) this.#beginHistory();
    this.#addNotes();
    this.#addEnd();
    return this.#blocks;
  }

  #add(item: LayoutItem): void {
    const { character, persona, layout: { formats } } = this.#scene;
    switch (item.identifier) {
      case "main":
        return this.#addMain(item);
      case "worldInfoBefore":
        return this.#addLore("before_char");
      case "worldInfoAfter":
        return this.#addLore("after_char");
      case "personaDescription":
        return this.#put(item, "persona", this.#text(persona.description, "persona", { self: "persona" }));
      case "charDescription":
        return this.#put(
          item,
          "description",
          this.#text(character?.description, "description", { self: "description" }),
        );
      case "charPersonality":
        return this.#put(item, "personality", this.#framed(character?.personality, formats.personality, "personality"));
      case "scenario": {
        const scenario = this.#scene.scenario ?? character?.scenario;
        return this.#put(item, "scenario", this.#framed(scenario, formats.scenario, "scenario"));
      }
      case "dialogueExamples":
        return this.#addExamples();
      case "chatHistory":
        return this.#beginHistory();
      case "jailbreak":
        return this.#addInstructions(item);
      default:
        return this.#put(item, "preset", this.#own(item, `preset:${item.identifier}`, "preset"), item.name);
    }
  }

  /** The preset's, which the card's replaces, which the conversation's replaces; each can put in what it replaces. */
  #addMain(item: LayoutItem): void {
    const { character, systemPrompt } = this.#scene;
    let text = this.#disabled.has("system_prompt") ? "" : this.#own(item, "main", "main");
    if (character?.systemPrompt && !item.isFixed) text = this.#over(character.systemPrompt, "main", "card", text);
    if (systemPrompt) text = this.#over(systemPrompt, "main", "chat", text);
    this.#put(item, "main", text);
  }

  #addInstructions(item: LayoutItem): void {
    const own = this.#disabled.has("post_history_instructions")
      ? ""
      : this.#text(item.content, "instructions", { source: item.name });
    const card = item.isFixed ? undefined : this.#scene.character?.instructions;
    this.#put(item, "instructions", card ? this.#over(card, "instructions", "card", own) : own, item.name);
  }

  #addLore(position: SceneLore["position"]): void {
    for (const entry of this.#lore) {
      if (entry.position !== position) continue;
      const text = clean(entry.content);
      if (text === "") continue;
      this.#section().push({ part: "lorebook", role: "system", text: this.#framedLore(text, entry), ...named(entry) });
    }
  }

  #framedLore(text: string, { bookName, title }: SceneLore): string {
    const { lore: format } = this.#scene.layout.formats;
    if (format === "{0}") return text;
    // A format may be long, and name the text many times.
    const around = format.split("{0}");
    const bytes = byteLength(format) + Math.max(0, around.length - 2) * byteLength(text);
    return this.#macros.allows(bytes, { field: "lorebook", source: loreName(bookName, title) })
      ? around.join(text)
      : text;
  }

  /** Examples of the card between those of lorebooks. */
  #addExamples(): void {
    const begin = this.#text(this.#scene.layout.formats.exampleBegins, "examples:begin", { field: "examples" });
    const add = (text: string, more: Partial<PromptBlock> = {}) => {
      for (const dialogue of exampleDialogues(text)) {
        const whole = begin !== "" && this.#macros.allows(byteLength(begin), { field: "examples" })
          ? `${begin}\n${dialogue}`
          : dialogue;
        this.#section().push({ part: "examples", role: "system", text: whole, ...more });
      }
    };
    const addLore = (position: SceneLore["position"]) => {
      for (const entry of this.#lore) {
        if (entry.position !== position) continue;
        add(clean(entry.content), named(entry));
      }
    };
    addLore("before_examples");
    add(this.#text(this.#scene.character?.examples, "mesexamples", { field: "examples", self: "mesexamples" }));
    addLore("after_examples");
  }

  /** The summary stands last of what does not move, so that a new one costs least. */
  #beginHistory(): void {
    if (this.#isBehind) return;
    const { summary, character, group, layout: { formats } } = this.#scene;
    if (character !== undefined) {
      const begin = group === undefined ? formats.chatBegins : formats.groupChatBegins;
      this.#push("chat_begins", "system", this.#text(begin, "chat_begins"));
    }
    const text = this.#framedSummary(summary?.text);
    const isStandIn = summary?.upTo !== undefined;
    if (text !== "") this.#section().push({ part: "summary", role: "system", text, ...(isStandIn && { isStandIn }) });
    this.#isBehind = true;
    if (this.#isTurnMissing) this.#push("preset", "user", this.#text(formats.emptyTurn, "empty", { field: "preset" }));
  }

  #framedSummary(text: string | undefined): string {
    const said = clean(text ?? "");
    return said === "" ? "" : `[What happened before the messages that follow: ${said}]`;
  }

  /** The author's note with the entries around it, the card's note, and the entries at a depth. */
  #addNotes(): void {
    const { note, character } = this.#scene;
    const around = (position: SceneLore["position"]) => this.#lore.filter((entry) => entry.position === position);
    const depth = note?.depth ?? NOTE_DEPTH;
    const role = note?.role ?? "system";
    let order = 0;
    for (const entry of around("note_top")) this.#insertLore(entry, depth, role, order++);
    this.#insert("note", role, this.#text(note?.text, "note", { depth }), depth, order++);
    for (const entry of around("note_bottom")) this.#insertLore(entry, depth, role, order++);
    const own = character?.note;
    if (own) {
      const text = this.#text(own.text, "character_note", { depth: own.depth });
      this.#insert("character_note", own.role, text, own.depth, order++);
    }
    for (const entry of around("at_depth")) this.#insertLore(entry, entry.depth, entry.role, order++);
  }

  #addEnd(): void {
    const { group, action, layout: { formats, prefill, continuation } } = this.#scene;
    if (action === "impersonate") {
      this.#push("impersonate", "system", this.#text(formats.impersonation, "impersonate", { depth: 0 }));
    } else if (group !== undefined) {
      this.#push("speaker", "system", this.#text(formats.groupNudge, "speaker", { depth: 0 }));
    }
    if (action === "continue") {
      this.#push("continue", "system", this.#text(continuation?.nudge, "continue", { depth: 0 }));
    }
    const begin = this.#text(prefill, "prefill", { depth: 0 });
    if (begin !== "" && action !== "continue") {
      this.#blocks.prefill = { part: "prefill", role: "assistant", text: begin };
    }
  }

  #insertLore(entry: SceneLore, depth: number, role: string, order: number): void {
    this.#insert("lorebook", role, clean(entry.content), depth, order, named(entry));
  }

  #insert(
    part: BlockPart,
    role: string,
    text: string,
    depth: number,
    order: number,
    more?: Partial<PlacedBlock>,
  ): void {
    if (text !== "") this.#blocks.inserted.push({ part, role, text, depth, order, ...more });
  }

  #put({ role, depth, order }: LayoutItem, part: BlockPart, text: string, title?: string): void {
    // Prompts of a preset stand before notes of the same depth, as their numbers say among themselves.
    if (depth !== undefined) this.#insert(part, role, text, depth, (order ?? 100) - 1_000_000, title ? { title } : {});
    else this.#push(part, role, text, title);
  }

  #push(part: BlockPart, role: string, text: string, title?: string): void {
    if (text !== "") this.#section().push({ part, role, text, ...(title && { title }) });
  }

  #section(): PromptBlock[] {
    return this.#isBehind ? this.#blocks.trailing : this.#blocks.leading;
  }

  #own({ content, depth, needsCharacter, name, identifier }: LayoutItem, place: string, field: BlockPart): string {
    if (needsCharacter && this.#scene.character === undefined) return "";
    return this.#text(content, place, { depth, field, source: name ?? identifier });
  }

  #over(text: string, field: BlockPart, source: string, original: string): string {
    const place = `${field}:${source}`;
    return clean(this.#macros.expand(text, { place, field, source, original, ...this.#chance(undefined) }));
  }

  /** A format that can't be expanded is left out: the text matters more. */
  #framed(text: string | undefined, format: string, field: "personality" | "scenario"): string {
    const chance = this.#chance(undefined);
    const expanded = this.#macros.expand(text ?? "", { place: field, self: field, ...chance });
    if (clean(expanded) === "") return "";
    const place = { place: `${field}:format`, field, expanded: { [field]: expanded }, ...chance };
    return clean(this.#macros.tryExpand(format, place) ?? expanded);
  }

  #text(text: string | undefined, place: string, options: TextOptions = {}): string {
    const { depth, ...more } = options;
    return text ? clean(this.#macros.expand(text, { place, ...more, ...this.#chance(depth) })) : "";
  }

  /** What stands in or behind the history costs no cache when it says something new. */
  #chance(depth: number | undefined): Composition["fresh"] {
    return this.#isBehind || depth !== undefined ? this.#fresh : {};
  }
}

/** Gives what tells a piece of a lorebook from others. */
function named({ book, bookName, entry, title, reason, isFirstToGo }: SceneLore): Partial<PromptBlock> {
  const lore = { book, bookName, entry, title, reason };
  return { ...(title && { title }), lore, ...(isFirstToGo && { isFirstToGo }) };
}

function clean(text: string): string {
  return text.replaceAll("\r", "").trim();
}

/** Gives the example conversations, without the marks between them. */
export function exampleDialogues(text: string): string[] {
  return text.replaceAll("\r", "").split(/^[ \t]*<START>[ \t]*$|<START>/gim).map((dialogue) => dialogue.trim())
    .filter((dialogue) => dialogue !== "");
}
