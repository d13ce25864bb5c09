/** Who speaks next where several characters take part: by hand, in turn, or who is spoken of and who likes to talk. */
import { AppError } from "../errors.ts";
import type { LoadedParticipant } from "../prompts/participants.ts";
import { createSeededRandom } from "../prompts/seeded_random.ts";

/** How the order comes about. */
export type ReplyOrder = "natural" | "list" | "manual";

/** What decides. */
export interface SpeakerQuestion {
  cast: readonly LoadedParticipant[];
  order: ReplyOrder;
  /** Text of the last message. */
  lastText: string;
  /** Who said something last, where that was a character. */
  lastSpeaker?: string;
  /** True where the last message is that character's. */
  isLastMessageTheirs: boolean;
  /** Who has spoken since the owner last did. */
  spokenSince: readonly string[];
  /** The same chance as long as nothing more is said. */
  seed: string;
}

/** Scripts without gaps between words, where a name ends anywhere. */
const HAS_WIDE = /[\u2e80-\uffff]/;
/** A shorter part of a name is often an article. */
const SHORTEST_PART = 3;
/** What is looked for of a name, each by a pattern of its own: a card may have a name of a megabyte. */
const MAX_PARTS = 20;
const LONGEST_PART = 200;

/**
 * Gives who wants to speak, the first at once and the others after that. Where several take part, nobody is named and the
 * order is by hand, that is none.
 */
export function nextSpeakers(question: SpeakerQuestion): string[] {
  const { cast, order, lastSpeaker } = question;
  const present = cast.filter(({ isMuted }) => !isMuted);
  if (cast.length <= 1) return present.map(({ id }) => id);
  if (order === "manual") return [];
  if (order === "list") {
    const last = cast.findIndex(({ id }) => id === lastSpeaker);
    const inTurn = [...cast.slice(last + 1), ...cast.slice(0, last + 1)].filter(({ isMuted }) => !isMuted);
    const silent = inTurn.filter(({ id }) => !question.spokenSince.includes(id));
    // Each of them answers a turn of the owner's; whoever asks for one reply more gets the next one's.
    return (silent.length > 0 ? silent : inTurn.slice(0, 1)).map(({ id }) => id);
  }
  return natural(question, present);
}

/**
 * Gives who speaks.
 *
 * @param wanted Named by hand; also somebody who is muted.
 * @throws {AppError} `invalid_request` when nobody can
 */
export function chooseSpeaker(question: SpeakerQuestion, wanted: string | undefined): string | undefined {
  const { cast } = question;
  if (wanted !== undefined) {
    if (cast.some(({ id }) => id === wanted)) return wanted;
    throw refused(`Character "${wanted}" does not take part in this conversation`);
  }
  if (cast.length === 0) return undefined;
  const [first] = nextSpeakers(question);
  if (first !== undefined) return first;
  throw refused(
    cast.every(({ isMuted }) => isMuted)
      ? "Every character of this conversation is muted"
      : "The order of this conversation is by hand: name who speaks",
  );
}

function natural(
  { lastText, lastSpeaker, isLastMessageTheirs, spokenSince, seed }: SpeakerQuestion,
  present: LoadedParticipant[],
) {
  const random = createSeededRandom(`speakers\n${seed}`);
  const others = present.filter(({ id }) => !isLastMessageTheirs || id !== lastSpeaker);
  const silent = others.filter(({ id }) => !spokenSince.includes(id));
  const mentioned = silent.map((member) => ({ member, at: mentionOf(member, lastText) })).filter(({ at }) => at >= 0)
    .sort((a, b) => a.at - b.at).map(({ member }) => member);
  const talkative = silent.filter((member) => !mentioned.includes(member))
    .map((member) => ({ member, drawn: random(member.id) }))
    .filter(({ member, drawn }) => drawn < member.talkativeness)
    .sort((a, b) => a.drawn - b.drawn).map(({ member }) => member);
  const wanting = [...mentioned, ...talkative];
  // Somebody answers a turn of the owner's, and whoever asks for one reply more.
  const fallback = silent.length > 0 ? silent : others.length > 0 ? others : present;
  if (wanting.length === 0 && fallback.length > 0) wanting.push(weighted(fallback, random("nobody")));
  return wanting.map(({ id }) => id);
}

/** Gives where a text speaks of somebody, or -1. */
function mentionOf({ names }: LoadedParticipant, text: string): number {
  const parts = names.flatMap((name) => [
    name,
    ...name.split(/\s+/, MAX_PARTS).filter((part) => part.length >= SHORTEST_PART),
  ]).filter((part) => part.length <= LONGEST_PART);
  const places = parts.map((part) => placeOf(part, text)).filter((place) => place >= 0);
  return places.length === 0 ? -1 : Math.min(...places);
}

function placeOf(name: string, text: string): number {
  if (HAS_WIDE.test(name)) return text.indexOf(name);
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return text.search(new RegExp(`(?<![\\p{L}\\p{N}_])${escaped}(?![\\p{L}\\p{N}_])`, "iu"));
}

function weighted(members: readonly LoadedParticipant[], chance: number): LoadedParticipant {
  const weights = members.map(({ talkativeness }) => Math.max(talkativeness, 0.01));
  let left = chance * weights.reduce((sum, weight) => sum + weight, 0);
  return members.find((_, n) => (left -= weights[n]!) < 0) ?? members.at(-1)!;
}

function refused(message: string): AppError {
  return new AppError("invalid_request", message, { issues: [{ path: "character_id", message }] });
}
