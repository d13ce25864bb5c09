/** Notes that the owner can read: their fields, their scopes, and the comparison of two texts. */
import { AppError } from "../errors.ts";
import { isId } from "../storage/ids.ts";
import { isJsonObject } from "../json/type_guards.ts";
import { estimateTokens } from "../llm/token_count.ts";

/** Kinds of scopes, from the narrowest to the widest. */
export const SCOPE_KINDS = ["character", "persona", "folder", "everything"] as const;
export type MemoryScopeKind = (typeof SCOPE_KINDS)[number];

/** The chats to which a note applies. */
export interface MemoryScope {
  kind: MemoryScopeKind;
  /** Id of the character or persona, or name of the folder. Absent for everything. */
  id?: string;
  /** For a character's note: applies only with this persona, so that a character has separate memories of each. */
  personaId?: string;
}

/** The message that a note comes from. */
export interface MemorySource {
  conversationId: string;
  messageId?: string;
}

/** The fields of a note. */
export interface MemoryFields {
  text: string;
  scope: MemoryScope;
  pinned: boolean;
  source?: MemorySource;
}

/** A stored note. Has no fields if it can't be read. */
export interface Memory {
  id: string;
  version: number;
  createdAtMs: number;
  updatedAtMs: number;
  fields: MemoryFields | undefined;
}

/** The parts of a chat that scopes refer to. */
export interface MemoryChat {
  characterId?: string;
  personaId?: string;
  folder?: string;
}

/** Maximum length of a note's text in UTF-16 units. */
export const MAX_MEMORY_TEXT = 2_000;
/** Maximum length of a folder name. */
export const MAX_FOLDER = 1_000;

/** The scope of a note for all chats. */
export const EVERYTHING: MemoryScope = { kind: "everything" };

/** Returns whether a note is sent in a chat. */
export function isFor({ kind, id, personaId }: MemoryScope, chat: MemoryChat): boolean {
  switch (kind) {
    case "everything":
      return true;
    case "character":
      return id === chat.characterId && (personaId === undefined || personaId === chat.personaId);
    case "persona":
      return id === chat.personaId;
    case "folder":
      return id === chat.folder;
  }
}

/** Returns the rank of a scope: narrower scopes are lower. */
function rankScope({ kind, personaId }: MemoryScope): number {
  return SCOPE_KINDS.indexOf(kind) + (personaId === undefined ? 0.5 : 0);
}

/** Parses a scope in stored or imported data. @returns `undefined` if it isn't one. */
export function parseScope(value: unknown): MemoryScope | undefined {
  if (!isJsonObject(value)) return undefined;
  const { id, personaId } = value;
  const kind = SCOPE_KINDS.find((one) => one === value.kind);
  if (kind === undefined || kind === "everything") return kind && { kind };
  if (typeof id !== "string" || id === "" || (kind === "folder" ? id.length > MAX_FOLDER : !isId(id))) return undefined;
  return { kind, id, ...(kind === "character" && typeof personaId === "string" && isId(personaId) && { personaId }) };
}

/** Trims the text of a note. @throws {AppError} `invalid_request` if it's empty or too long. */
export function parseMemoryText(value: string): string {
  const text = value.replaceAll("\r", "").trim().toWellFormed();
  if (text === "") throw invalidText("A memory can't be empty");
  if (text.length > MAX_MEMORY_TEXT) throw invalidText(`A memory can have at most ${MAX_MEMORY_TEXT} characters`);
  return text;
}

function invalidText(message: string): AppError {
  return new AppError("invalid_request", message, { issues: [{ path: "text", message }] });
}

/** Words without a meaning of their own. Negations aren't among them. */
const FILLERS = new Set(
  ("a an the of to in on at is are was were be been has have had do does did and or that this it its s user users " +
    "their they them his her he she with for as by from " +
    "der die das den dem des ein eine einen einem einer ist sind war hat haben und oder im am zu mit für von sein seine ihr ihre nutzer " +
    "user's").split(" "),
);
const NEGATIONS = /^(not?|never|none|cannot|without|\w+n't|nicht|nie|kein\w*|ohne)$/;
const WORDS = /[\p{L}\p{N}]+(?:['’][\p{L}]+)?/gu;
const CJK = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;
/** Share of common words above which two texts state the same. */
const NEAR = 0.8;

/** Normalizes a text: removes differences of case, punctuation and spaces. */
function normalizeMemory(text: string): string {
  return text.normalize("NFKC").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
}

/** The meaningful words of a text, for `isSameStatement`. */
interface Meaning {
  normalized: string;
  words: Set<string>;
  /** Names and numbers among the words. If they differ, it's a different fact. */
  exact: Set<string>;
  isNegated: boolean;
}

/** Analyzes a text for `isSameStatement`. */
function readMeaning(text: string): Meaning {
  const words = new Set<string>();
  const exact = new Set<string>();
  let isNegated = false;
  for (const [match] of text.normalize("NFKC").matchAll(WORDS)) {
    const folded = match.toLowerCase().replaceAll("’", "'");
    if (NEGATIONS.test(folded)) isNegated = true;
    if (CJK.test(folded)) {
      if (/ない|ません|なかった|[ぬず]$/.test(folded)) isNegated = true;
      // Japanese and Chinese have no spaces: pairs of characters are used as words.
      for (let at = 0; at < Math.max(1, folded.length - 1); at++) words.add(folded.slice(at, at + 2));
      continue;
    }
    const word = toStem(folded.replace(/'s$/, ""));
    if (FILLERS.has(folded) || FILLERS.has(word)) continue;
    words.add(word);
    const isFirst = words.size === 1;
    if (/\p{N}/u.test(word) || (/^\p{Lu}/u.test(match) && !isFirst)) exact.add(word);
  }
  return { normalized: normalizeMemory(text), words, exact, isNegated };
}

function toStem(word: string): string {
  return /^[a-z]{5,}$/.test(word) ? word.replace(/(?:ing|ed|es|s)$/, "") : word.replace(/(?<=^[a-z]{3})s$/, "");
}

/**
 * Returns whether two texts state the same: the same text except for case and punctuation, or almost the same words.
 * Texts that differ in a name, a number or a negation state different facts.
 */
export function isSameStatement(one: string, other: string): boolean {
  const [a, b] = [readMeaning(one), readMeaning(other)];
  if (a.normalized === b.normalized) return true;
  if (a.isNegated !== b.isNegated || a.words.size === 0 || b.words.size === 0) return false;
  const common = [...a.words].filter((word) => b.words.has(word)).length;
  if (2 * common / (a.words.size + b.words.size) < NEAR) return false;
  const [onlyA, onlyB] = [
    [...a.words].filter((word) => !b.words.has(word)),
    [...b.words].filter((w) => !a.words.has(w)),
  ];
  return !(onlyA.some((word) => a.exact.has(word)) || onlyB.some((word) => b.exact.has(word)));
}

// Chooses the notes that a prompt has space for. The choice and its order only depend on the notes, so prompts start
// with the same text and the server's cache stays valid.

/** A note in a prompt. */
interface ChosenMemory {
  id: string;
  text: string;
  tokens: number;
}

/** The notes of a prompt. */
export interface MemoryChoice {
  /** Oldest first, so that a new note doesn't change the text before it. */
  sent: ChosenMemory[];
  /** IDs of notes that exceed the budget. */
  leftOut: string[];
}

/** A readable note, and when it was last confirmed. */
export type UsableMemory = Memory & { fields: MemoryFields; usedAtMs: number };

/** Number of tokens for the line break and the dash of a note. */
const LINE_TOKENS = 2;

/**
 * Chooses notes: pinned ones first, then by scope, the narrowest first, then the most recently written or confirmed.
 *
 * Token estimates don't use the ratio learned from a model's replies: it changes during a chat, and notes at the limit
 * of the budget would appear and disappear.
 *
 * @param budget Number of tokens for all notes together.
 */
export function chooseMemories(all: readonly UsableMemory[], chat: MemoryChat, budget: number): MemoryChoice {
  const candidates = all.filter(({ fields }) => isFor(fields.scope, chat)).sort((a, b) =>
    Number(b.fields.pinned) - Number(a.fields.pinned) ||
    rankScope(a.fields.scope) - rankScope(b.fields.scope) ||
    b.usedAtMs - a.usedAtMs || compareAge(a, b)
  );
  const sent: (ChosenMemory & { note: UsableMemory })[] = [];
  const leftOut: string[] = [];
  let left = budget;
  for (const note of candidates) {
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

/** Formats notes for a prompt. They're text that the owner accepted, not system instructions. */
export function formatMemories(sent: readonly ChosenMemory[]): string {
  return sent.length === 0 ? "" : `[Notes from earlier chats:\n${sent.map(({ text }) => `- ${text}`).join("\n")}\n]`;
}

function compareAge(a: UsableMemory, b: UsableMemory): number {
  return a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1);
}

/** Puts a note on one line, so that it can't look like several notes. */
function toLine(text: string): string {
  return text.replace(/\s*\n\s*/g, " / ");
}
