/** In which order the pieces of a prompt stand, and the words around them; see preset_layout.ts for where both come from. */

/** One item of the order: a piece that everybody knows by its name, or a text of its own. */
export interface LayoutItem {
  /** `main`, `charDescription`, `chatHistory`, … as presets name them, or a name of its own. */
  identifier: string;
  name?: string;
  role: "system" | "user" | "assistant";
  /** What a piece says that is not filled from card, persona or lorebooks. */
  content?: string;
  /** Set into the history with so many messages behind it; in its place in the order without. */
  depth?: number;
  /** Among those of one depth. */
  order?: number;
  /** True where a card must not put its own text in the place of this one. */
  isFixed?: boolean;
  /** True where it says nothing without a character. */
  needsCharacter?: boolean;
}

/** Words around the pieces. `{{…}}` are macros; `{0}` is what stands in the middle. */
export interface LayoutFormats {
  personality: string;
  scenario: string;
  lore: string;
  chatBegins: string;
  groupChatBegins: string;
  exampleBegins: string;
  groupNudge: string;
  impersonation: string;
  /** The owner's turn where there is none. */
  emptyTurn: string;
}

/** The order and the words. */
export interface PromptLayout {
  /** Those that are switched on, in their order. */
  items: LayoutItem[];
  formats: LayoutFormats;
  /** The begin of every answer. */
  prefill?: string;
  /**
   * How a continuation is asked for by a sentence: the sentence, sent last, and what stands between the answer and what
   * is added. Without it the answer itself stands last, as the begin of what the model writes.
   */
  continuation?: { nudge: string; joint: string };
  /** System messages that follow one another become one, also where they come from different parts. */
  squashesSystem?: boolean;
  /** Where the name of whoever speaks stands before a message. */
  names: "group" | "always" | "never";
}
