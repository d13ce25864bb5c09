/** Who talks with whom, and about what: everything a prompt is made of beside the messages. */
import type { EntryPosition } from "../lorebooks/activation.ts";
import type { PromptLayout } from "./prompt_layout.ts";
import type { LoreSource } from "./prompt_blocks.ts";

/** The parts of a character's card that reach the prompt (docs/protocols/cards.md#card-versions). */
export interface SceneCharacter {
  id: string;
  /** Its nickname where it has one. */
  name: string;
  description: string;
  personality: string;
  scenario: string;
  examples: string;
  /** Takes the place of the main prompt. */
  systemPrompt: string;
  /** Takes the place of the post-history instructions. */
  instructions: string;
  version: string;
  /** A note of the card, set into the history. */
  note?: SceneNote;
}

/** A text at a depth. */
export interface SceneNote {
  text: string;
  /** Messages that stand behind it. */
  depth: number;
  role: string;
}

/** What a conversation keeps of its begin. */
export interface SceneSummary {
  text: string;
  /** The last message that it tells of. */
  upTo?: string;
}

/** One scene. */
export interface Scene {
  character?: SceneCharacter;
  /** Names of all characters of a conversation with several. */
  group?: string[];
  /** True where each message has the name of whoever said it before it. */
  hasNames: boolean;
  persona: { name: string; description: string };
  layout: PromptLayout;
  /** What the conversation says over preset and card. */
  systemPrompt?: string;
  scenario?: string;
  note?: SceneNote;
  summary?: SceneSummary;
  /** `continue` goes on with the last message, `impersonate` writes for the owner. */
  action: "reply" | "continue" | "impersonate";
}

/** An entry of a lorebook that goes out. */
export interface SceneLore extends LoreSource {
  /** Ready to be sent. */
  content: string;
  position: EntryPosition;
  depth: number;
  role: string;
  order: number;
  /** To be left out first where there is not room for everything. */
  isFirstToGo?: boolean;
}
