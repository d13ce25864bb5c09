import { expect, test } from "vitest";
import { chooseNextSpeakers, chooseSpeaker, type SpeakerChoiceInput } from "../../../services/chat/reply_context.ts";
import { parseCard } from "../../../services/characters/card/card.ts";
import type { LoadedParticipant } from "../../../services/prompts/participants.ts";

const member = (name: string, more: Partial<LoadedParticipant> = {}): LoadedParticipant => ({
  id: name.toLowerCase().replace(/\W/g, ""),
  name,
  names: [name],
  talkativeness: 0,
  isMuted: false,
  card: parseCard({ name, description: "d" }),
  ...more,
});
const CAST = [member("Ada Byron"), member("Bob"), member("日本")];
const question = (more: Partial<SpeakerChoiceInput> = {}): SpeakerChoiceInput => ({
  participants: CAST,
  order: "natural",
  lastText: "",
  wroteLastMessage: false,
  spokenIds: [],
  seed: "c1\n1",
  ...more,
});

test.each([
  ["Hello ADA!", ["adabyron"]],
  ["Bob? And Ada?", ["bob", "adabyron"]],
  ["Byron's engine", ["adabyron"]],
  ["日本さん、ada", ["", "adabyron"]],
  ["bobsled adamant", undefined],
])("after %j it is the turn of %j", (lastText, wanted) => {
  const speakers = chooseNextSpeakers(question({ lastText }));
  if (wanted === undefined) expect(speakers).toHaveLength(1);
  else expect(speakers).toEqual(wanted);
});

test("skips characters that have spoken since the user, until none is left", () => {
  const own = { lastText: "Bob, I am Bob", lastSpeaker: "bob", wroteLastMessage: true };
  expect(chooseNextSpeakers(question({ ...own, spokenIds: ["bob"] }))).not.toContain("bob");
  const all = { ...own, spokenIds: ["bob", "adabyron", ""] };
  expect(chooseNextSpeakers(question(all))).toHaveLength(1);
  expect(chooseNextSpeakers(question(all))).not.toContain("bob");
});

test("chooses talkative characters more often, and deterministically", () => {
  const cast = [member("Ada", { talkativeness: 0.9 }), member("Bob", { talkativeness: 0.1 })];
  const counts = { ada: 0, bob: 0 };
  for (let n = 0; n < 200; n++) {
    const asked = question({ participants: cast, seed: `c1\n${n}` });
    expect(chooseNextSpeakers(asked)).toEqual(chooseNextSpeakers(asked));
    counts[chooseNextSpeakers(asked)[0] as "ada"]++;
  }
  expect(counts.ada).toBeGreaterThan(3 * counts.bob);
  expect(counts.bob).toBeGreaterThan(0);
});

test("goes around in list order, skips muted characters, and lets each answer once", () => {
  const cast = [member("Ada"), member("Bob", { isMuted: true }), member("Cy"), member("Di")];
  const after = (lastSpeaker?: string, spokenIds: string[] = []) =>
    chooseNextSpeakers(question({ participants: cast, order: "list", lastSpeaker, spokenIds }));
  expect([after(), after("gone")]).toEqual([["ada", "cy", "di"], ["ada", "cy", "di"]]);
  expect([after("ada"), after("di")]).toEqual([["cy", "di", "ada"], ["ada", "cy", "di"]]);
  expect([after("ada", ["ada"]), after("cy", ["cy", "ada"])]).toEqual([["cy", "di"], ["di"]]);
  expect(after("di", ["di", "cy", "ada"])).toEqual(["ada"]);
});

test("lets only the named character speak in manual order, also a muted one, but no stranger", () => {
  const cast = [member("Ada"), member("Bob", { isMuted: true })];
  expect(() => chooseSpeaker(question({ participants: cast, order: "manual" }), undefined)).toThrow(/manual order/);
  expect(chooseSpeaker(question({ participants: cast, order: "manual" }), "bob")).toBe("bob");
  expect(() => chooseSpeaker(question({ participants: cast }), "cy")).toThrow(/isn't part of this conversation/);
  const silent = cast.map((one) => ({ ...one, isMuted: true }));
  expect(() => chooseSpeaker(question({ participants: silent }), undefined)).toThrow(/muted/);
  expect(chooseSpeaker(question({ participants: [] }), undefined)).toBeUndefined();
});

test("matches only the first words of a one-megabyte name", { tags: ["F01"] }, () => {
  const long = member(`Zoe ${"xyz ".repeat(250_000)}`, { id: "long" });
  const endless = member("y".repeat(1_000_000), { id: "endless" });
  // A pattern for each of its words would search the text 250,000 times.
  const lastText = `${"a ".repeat(200_000)}Zoe?`;
  expect(chooseNextSpeakers(question({ participants: [long, endless], lastText }))).toEqual(["long"]);
});
