/**
 * Chooses the notes that a prompt has space for. The choice and its order depend on the notes alone, so the prompt starts the
 * same from turn to turn, and the server's cache stays valid.
 */
import { estimateTokens } from "../llm/token_estimate.ts";
import { appliesTo, type Memory, type MemoryChat, type MemoryFields, rankScope } from "./memory.ts";

/** A note in a prompt. */
export interface ChosenMemory {
  id: string;
  text: string;
  tokens: number;
}

/** The notes of a prompt. */
export interface MemoryChoice {
  /** Oldest first: a new note comes last and leaves the text before it as it was. */
  sent: ChosenMemory[];
  /** Ids of notes that exceed the budget. */
  leftOut: string[];
}

/** A readable note, and when it was last confirmed. */
export type UsableMemory = Memory & { fields: MemoryFields; usedAtMs: number };

/** For the line break and the dash of a note. */
const LINE_TOKENS = 2;

/**
 * Chooses notes: pinned ones first, then by scope, the narrowest first, then those that were written or confirmed last.
 *
 * Tokens are estimated without the ratio that is learned from a model's replies: that changes during a chat, and a note at
 * the edge of the budget would come and go.
 *
 * @param budget Tokens for all notes together.
 */
export function chooseMemories(all: readonly UsableMemory[], chat: MemoryChat, budget: number): MemoryChoice {
  const wanted = all.filter(({ fields }) => appliesTo(fields.scope, chat)).sort((a, b) =>
    Number(b.fields.pinned) - Number(a.fields.pinned) ||
    rankScope(a.fields.scope) - rankScope(b.fields.scope) ||
    b.usedAtMs - a.usedAtMs || compareAge(a, b)
  );
  const sent: (ChosenMemory & { note: UsableMemory })[] = [];
  const leftOut: string[] = [];
  let left = budget;
  for (const note of wanted) {
    const text = toLine(note.fields.text);
    const tokens = Math.ceil(estimateTokens(text)) + LINE_TOKENS;
    if (tokens > left) leftOut.push(note.id);
    else {
      left -= tokens;
      sent.push({ id: note.id, text, tokens, note });
    }
  }
  sent.sort((a, b) => compareAge(a.note, b.note));
  return { sent: sent.map(({ note: _, ...chosen }) => chosen), leftOut };
}

/** Formats notes for a prompt. They are text that the owner accepted, not instructions of the system. */
export function formatMemories(sent: readonly ChosenMemory[]): string {
  return sent.length === 0 ? "" : `[Notes from earlier chats:\n${sent.map(({ text }) => `- ${text}`).join("\n")}\n]`;
}

function compareAge(a: UsableMemory, b: UsableMemory): number {
  return a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1);
}

/** A note is one line: what looks like the next note isn't one. */
function toLine(text: string): string {
  return text.replace(/\s*\n\s*/g, " / ");
}
