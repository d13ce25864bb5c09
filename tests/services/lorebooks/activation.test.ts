import { afterAll, expect, test } from "vitest";
import { activate, type Activation, type ActivationInput } from "../../../services/lorebooks/activation.ts";
import type { BookOrder } from "../../../services/lorebooks/activation_rules.ts";
import { Sandbox } from "../../../services/platform/sandbox/sandbox.ts";
import { SandboxKeyMatcher } from "../../../services/lorebooks/key_matcher.ts";
import type { Lorebook, LorebookEntry, LorebookScope } from "../../../services/lorebooks/lorebook_document.ts";
import { PATIENCE_MS } from "../../helpers/app/patience.ts";

// These tests check the results: on a busy machine, the time limit would be reached first.
const sandbox = new Sandbox();
afterAll(() => sandbox.close());
const matcher = new SandboxKeyMatcher(sandbox, { patternMs: PATIENCE_MS, callMs: PATIENCE_MS });

type Fields = Partial<LorebookEntry> & { more?: Record<string, unknown> };

/** An entry of a card's lorebook; `more` are SillyTavern's extensions. */
function entry(content: string, keys: string[], { more = {}, ...fields }: Fields = {}): LorebookEntry {
  return { keys, content, enabled: true, insertion_order: 100, use_regex: true, extensions: more, ...fields };
}

function book(entries: LorebookEntry[], fields: Partial<Lorebook> = {}, scope: LorebookScope = "global", id = "b1") {
  return { id, name: `Book ${id}`, scope, book: { extensions: {}, ...fields, entries } };
}

type Changes = Omit<Partial<ActivationInput>, "messages"> & { says?: string | string[] };

function scan(entries: LorebookEntry[], { says = "The dragon sleeps.", ...changes }: Changes = {}) {
  const texts = typeof says === "string" ? [says] : says;
  return activate({
    books: [book(entries)],
    messages: texts.map((text, n) => ({ role: n % 2 === 0 ? "user" : "assistant", text })),
    countTokens: (text) => text.length,
    random: () => 0,
    matcher,
    ...changes,
  });
}

/** Those of the same order as they were found: in the prompt, the last one comes first. */
const contents = ({ entries }: Activation) =>
  entries.toReversed().sort((a, b) => a.order - b.order).map(({ content }) => content);

test("activates an entry by one of its keys and reports which", async () => {
  const { entries } = await scan([entry("Fire", ["wyrm", "Dragon"]), entry("Water", ["kraken"])]);
  expect(entries).toEqual([{
    bookId: "b1",
    bookName: "Book b1",
    entryId: "#0",
    entryName: "wyrm",
    content: "Fire",
    position: "before_char",
    order: 100,
    tokens: 4,
    reason: { kind: "key", key: "Dragon" },
  }]);
});

test.each<[string, Partial<LorebookEntry>, string]>([
  ["its comment", { comment: "Weather", name: "Rain", keys: ["storm"] }, "Weather"],
  ["its name", { name: "Rain", keys: ["storm"] }, "Rain"],
  ["its first key", { keys: ["storm", "rain"] }, "storm"],
  ["the start of its content", {}, "It rains."],
])("names an entry by %s", async (_, fields, name) => {
  const { entries } = await scan([entry("\nIt rains.\nIt pours.", [], { constant: true, ...fields })]);
  expect(entries.map(({ entryName }) => entryName)).toEqual([name]);
});

test.each<[string, string, Fields, string, boolean]>([
  ["letter case does not count", "DRAGON", {}, "a dragon", true],
  ["unless the entry says so", "DRAGON", { case_sensitive: true }, "a dragon", false],
  ["and says so of the same case", "DRAGON", { case_sensitive: true }, "a DRAGON", true],
  ["SillyTavern's own place for it", "DRAGON", { more: { case_sensitive: true } }, "a dragon", false],
  ["part of a word counts", "drag", {}, "a dragon", true],
  ["unless whole words are asked for", "drag", { more: { match_whole_words: true } }, "a dragon", false],
  ["a whole word between marks", "dragon", { more: { match_whole_words: true } }, "(dragon)", true],
  ["an accented letter is one of a word", "caf", { more: { match_whole_words: true } }, "the café", false],
  ["a letter of two units is one of a word", "ab", { more: { match_whole_words: true } }, "ab𝔠", false],
  ["scripts without spaces have no whole words", "竜", { more: { match_whole_words: true } }, "青い竜が眠る", true],
  [
    "several words are looked for as they stand",
    "red dragon",
    { more: { match_whole_words: true } },
    "red dragons",
    true,
  ],
  ["marks that mean something in patterns are plain text", "C++", {}, "I write C++ now", true],
  ["so are brackets", "(cat)", {}, "a (cat) here", true],
  ["composed and decomposed letters are the same", "caf\u00e9", {}, "the cafe\u0301", true],
  ["a pattern", "/dra(g|k)on/", {}, "a drakon", true],
  ["a pattern's own flags", "/DRAGON/i", {}, "a dragon", true],
  ["without them case counts", "/DRAGON/", {}, "a dragon", false],
  ["looking behind", "/(?<=blue )dragon/", {}, "a blue dragon", true],
  ["a broken pattern finds nothing", "/dra(gon/", {}, "a dragon dra(gon", false],
  ["a path is no pattern", "/usr/bin/env", {}, "run /usr/bin/env", true],
  ["no pattern where the entry says no", "/dragon/", { use_regex: false }, "a dragon", false],
  ["its text then", "/dragon/", { use_regex: false }, "a /dragon/", true],
  ["a disabled entry never", "dragon", { enabled: false, constant: true }, "a dragon", false],
])("keys: %s", async (_, key, fields, text, isFound) => {
  expect(contents(await scan([entry("x", [key], fields)], { says: text }))).toEqual(isFound ? ["x"] : []);
});

test.each<[number, string[], string, boolean]>([
  [0, ["gold", "fire"], "dragon gold", true],
  [0, ["gold", "fire"], "dragon", false],
  [1, ["gold", "fire"], "dragon gold", true],
  [1, ["gold", "fire"], "dragon gold fire", false],
  [2, ["gold", "fire"], "dragon", true],
  [2, ["gold", "fire"], "dragon gold", false],
  [3, ["gold", "fire"], "dragon gold", false],
  [3, ["gold", "fire"], "dragon gold fire", true],
])("secondary keys with logic %i: %j in %j", async (selectiveLogic, secondary_keys, says, isFound) => {
  const one = entry("x", ["dragon"], { selective: true, secondary_keys, more: { selectiveLogic } });
  const found = await scan([one], { says });
  expect(contents(found)).toEqual(isFound ? ["x"] : []);
  if (!isFound) expect(found.dropped).toMatchObject([{ reason: "secondary_keys", key: "dragon" }]);
});

test("ignores secondary keys of entries that aren't selective", async () => {
  expect(contents(await scan([entry("x", ["dragon"], { selective: false, secondary_keys: ["gold"] })]))).toEqual(["x"]);
});

test("activates constant entries without a key, within the budget", async () => {
  const found = await scan(
    [entry("always", [], { constant: true }), entry("too long for it", [], { constant: true })],
    {
      says: "nothing",
      budgetTokens: 10,
    },
  );
  expect(contents(found)).toEqual(["always"]);
  expect(found.entries[0]!.reason).toEqual({ kind: "constant" });
  expect(found.dropped).toMatchObject([{ reason: "budget" }]);
});

test("scans the newest messages: two by default, or the depth of the book or entry", async () => {
  const says = ["dragon", "b", "c"];
  const one = entry("x", ["dragon"]);
  expect(contents(await scan([one], { says }))).toEqual([]);
  expect(contents(await scan([one], { says, books: [book([one], { scan_depth: 3 })] }))).toEqual(["x"]);
  const own = entry("x", ["dragon"], { more: { scan_depth: 3 } });
  expect(contents(await scan([own], { says }))).toEqual(["x"]);
  const none = entry("x", ["dragon"], { more: { scan_depth: 0 } });
  expect(contents(await scan([none], { says: "dragon" }))).toEqual([]);
});

test("doesn't match keys across messages, and scans names", async () => {
  expect(contents(await scan([entry("x", ["dragon sleeps"])], { says: ["sleeps", "dragon"] }))).toEqual([]);
  const messages = [{ role: "user", text: "hello", name: "Smaug" }];
  const found = await activate({
    books: [book([entry("x", ["smaug"])])],
    messages,
    matcher,
    random: () => 0,
    countTokens: () => 1,
  });
  expect(contents(found)).toEqual(["x"]);
});

test("scans other texts for entries that ask for them", async () => {
  const scanTexts = [{ source: "persona" as const, text: "a knight" }, { source: "always" as const, text: "the note" }];
  const found = await scan([
    entry("asks", ["knight"], { more: { match_persona_description: true } }),
    entry("does not", ["knight"]),
    entry("note", ["the note"]),
  ], { scanTexts });
  expect(contents(found)).toEqual(["asks", "note"]);
});

test.each<[number | undefined, string | undefined, string]>([
  [undefined, undefined, "before_char"],
  [undefined, "after_char", "after_char"],
  [0, "after_char", "before_char"],
  [1, undefined, "after_char"],
  [2, "after_char", "note_top"],
  [3, "after_char", "note_bottom"],
  [4, "after_char", "at_depth"],
  [5, "after_char", "before_examples"],
  [6, "after_char", "after_examples"],
])("position %s and %s is %s", async (position, plain, expected) => {
  const fields = { position: plain, more: { position, depth: 7, role: 2 } };
  const [found] = (await scan([entry("x", ["dragon"], fields)])).entries;
  expect(found!.position).toBe(expected);
  expect(found!.depth).toBe(expected === "at_depth" ? 7 : undefined);
  expect(found!.role).toBe(expected === "at_depth" ? "assistant" : undefined);
});

test("orders entries, lowest first", async () => {
  const found = await scan([
    entry("third", ["dragon"], { insertion_order: 30 }),
    entry("first", ["dragon"], { insertion_order: -5 }),
    entry("second", ["dragon"], { insertion_order: 5 }),
  ]);
  expect(contents(found)).toEqual(["first", "second", "third"]);
});

test("of entries with the same order, those found later come first", async () => {
  const persona = book([entry("persona 1", ["dragon"]), entry("persona 2", ["dragon"])], {}, "persona", "p");
  const card = book([entry("card", ["dragon"]), entry("recursed", ["second"])], {}, "character", "c");
  const chat = book([entry("chat and a second", ["dragon"])], {}, "chat", "h");
  const found = await scan([entry("global", ["dragon"])], {
    books: [book([entry("global", ["dragon"])]), persona, card, chat],
  });
  expect(found.entries.map(({ content }) => content)).toEqual([
    "recursed",
    "global",
    "card",
    "persona 2",
    "persona 1",
    "chat and a second",
  ]);
});

test("an entry for an outlet has the outlet's name", async () => {
  const { entries } = await scan([entry("It rains.", ["dragon"], { more: { position: 7, outlet_name: "weather" } })]);
  expect(entries).toMatchObject([{ position: "outlet", outlet: "weather" }]);
});

test("an entry with scan depth 0 scans nothing, not even active entries and the card", async () => {
  const sources = { match_character_description: true };
  const found = await scan([
    entry("The dragon has a cave.", ["sleeps"]),
    entry("shallow", ["dragon"], { more: { scan_depth: 0, ...sources } }),
    entry("constant", [], { constant: true, more: { scan_depth: 0 } }),
    entry("deep", ["cave"], { more: { scan_depth: 1 } }),
  ], { scanTexts: [{ source: "description", text: "A dragon." }] });
  expect(contents(found).sort()).toEqual(["The dragon has a cave.", "constant", "deep"]);
});

test("drops the lowest priority first, and admits nothing less important after that", async () => {
  const entries = [
    entry("a".repeat(5), ["dragon"], { priority: 1, insertion_order: 900 }),
    entry("b".repeat(6), ["dragon"], { priority: 3 }),
    entry("c".repeat(8), ["dragon"], { priority: 2 }),
    entry("d", ["dragon"], { priority: 0 }),
  ];
  const found = await scan(entries, { budgetTokens: 12 });
  expect(contents(found)).toEqual(["bbbbbb"]);
  expect(found.dropped.map(({ reason }) => reason)).toEqual(["budget", "budget", "budget"]);
  expect(found.tokens).toBe(6);
});

test("without priorities drops the lowest order first; entries can ignore the budget", async () => {
  const found = await scan([
    entry("low", ["dragon"], { insertion_order: 1 }),
    entry("high", ["dragon"], { insertion_order: 2 }),
    entry("outside", ["dragon"], { insertion_order: 0, more: { ignore_budget: true } }),
  ], { budgetTokens: 4 });
  expect(contents(found)).toEqual(["outside", "high"]);
});

test("limits each book by its own budget, and prefers chat books", async () => {
  const small = book([entry("1111", ["dragon"]), entry("2222", ["dragon"])], { token_budget: 4 }, "global", "small");
  const chat = book([entry("chat", ["dragon"], { insertion_order: 1 })], {}, "chat", "chat");
  expect(contents(await scan([], { books: [small, chat] }))).toEqual(["chat", "1111"]);
  expect(contents(await scan([], { books: [small, chat], budgetTokens: 4 }))).toEqual(["chat"]);
});

test.each<[BookOrder, string[], string[]]>([
  ["character_first", ["c1", "c2"], ["g2", "c2", "g1", "c1", "p"]],
  ["global_first", ["g1", "g2"], ["c2", "g2", "c1", "g1", "p"]],
  ["evenly", ["g1", "c1"], ["c2", "g2", "c1", "g1", "p"]],
])("books of characters and those for all chats: %s", async (bookOrder, fitting, all) => {
  const constant = (name: string, insertion_order: number) => entry(name, [], { constant: true, insertion_order });
  const books = [
    book([constant("g2", 10), constant("g1", 20)], {}, "global", "g"),
    book([constant("c2", 10), constant("c1", 20)], {}, "character", "c"),
    book([constant("p", 30)], {}, "persona", "p"),
  ];
  const find = async (budgetTokens?: number) => {
    const { entries } = await scan([], { books, bookOrder, budgetTokens: budgetTokens ?? 100 });
    return entries.map(({ content }) => content);
  };
  expect(await find()).toEqual(all);
  expect((await find(5)).toSorted()).toEqual([...fitting, "p"].toSorted());
});

test("what a lorebook has twice is sent twice, and what two lorebooks have is sent once", async () => {
  const twice = [entry("same", ["dragon"]), entry("same", ["sleeps"]), entry("", ["dragon"])];
  const found = await scan([], { books: [book(twice), book([entry("same", ["sleeps"])], {}, "global", "b2")] });
  expect(contents(found)).toEqual(["same", "same"]);
  expect(found.dropped).toMatchObject([{ reason: "duplicate", key: "sleeps", entry: { bookId: "b2" } }]);
});

test("in a group, a sticky entry whose cooldown isn't over takes the place and isn't active", async () => {
  const timed = { sticky: 3, cooldown: 2 };
  const entries = [
    entry("other", ["dragon"], { more: { group: "beasts" } }),
    entry("stays", ["owl"], { id: 7, more: { ...timed, group: "beasts" } }),
    entry("alone", ["owl"], { id: 8, more: timed }),
  ];
  const state = { "b1/7": 3, "b1/8": 3 };
  const cooling = await scan(entries, { state, messageCount: 4 });
  expect(contents(cooling)).toEqual(["alone"]);
  expect(Object.fromEntries(cooling.dropped.map(({ entry, reason }) => [entry.entryId, reason])))
    .toEqual({ "#0": "group", "7": "cooldown" });
  expect(contents(await scan(entries, { state, messageCount: 5 }))).toEqual(["stays", "alone"]);
});

test("constant entries come before others only by their order, and sticky ones first", async () => {
  const entries = [
    entry("constant", [], { constant: true, insertion_order: 1 }),
    entry("found", ["dragon"], { insertion_order: 2 }),
    entry("stays", ["owl"], { id: 7, insertion_order: 0, more: { sticky: 9 } }),
  ];
  expect(contents(await scan(entries, { budgetTokens: 9 }))).toEqual(["found"]);
  const state = { "b1/7": 3 };
  expect(contents(await scan(entries, { budgetTokens: 10, state, messageCount: 5 }))).toEqual(["stays", "found"]);
});

test("what ignores the budget uses it, and a full budget ends the recursion", async () => {
  const free = (content: string, keys: string[]) => entry(content, keys, { more: { ignore_budget: true } });
  const entries = [free("a dragon egg", ["dragon"]), entry("low", ["dragon"], { insertion_order: 1 })];
  expect(contents(await scan(entries, { budgetTokens: 14 }))).toEqual(["a dragon egg"]);
  const more = [...entries, free("a hen", ["egg"])];
  expect(contents(await scan(more, { budgetTokens: 14 }))).toEqual(["a dragon egg"]);
  expect(contents(await scan(more, { budgetTokens: 99 }))).toEqual(["low", "a dragon egg", "a hen"]);
});

test("scans more messages until enough entries are active, and their content in between", async () => {
  const says = ["An owl.", "A fox.", "A hen.", "A cat.", "Nothing."];
  const entries = [
    entry("cat", ["cat"]),
    entry("hen and straw", ["hen"]),
    entry("fox", ["fox"]),
    entry("owl", ["owl"]),
    entry("straw", ["straw"]),
  ];
  expect(contents(await scan(entries, { says }))).toEqual(["cat"]);
  expect(contents(await scan(entries, { says, minActivations: 2 }))).toEqual(["cat", "hen and straw", "straw"]);
  expect(contents(await scan(entries, { says, minActivations: 4 }))).toEqual([
    ...["cat", "hen and straw", "straw", "fox"],
  ]);
  const most = { says, minActivations: 9, minActivationsDepth: 3 };
  expect(contents(await scan(entries, most))).toEqual(["cat", "hen and straw", "straw", "fox"]);
  expect(contents(await scan(entries, { says, minActivations: 9 }))).toHaveLength(5);
  // As in SillyTavern, a limit of steps counts these scans, too.
  expect(contents(await scan(entries, { says, minActivations: 9, maxRecursion: 0 })))
    .toEqual(contents(await scan(entries, { says, maxRecursion: 0 })));
  expect(contents(await scan(entries, { says, minActivations: 9, maxRecursion: 1 })))
    .not.toEqual(contents(await scan(entries, { says, minActivations: 9, maxRecursion: 2 })));
  const own = [entry("owl", ["owl"], { more: { scan_depth: 1 } })];
  expect(contents(await scan(own, { says, minActivations: 9 }))).toEqual([]);
  const ofBook = book([entry("hen", ["hen"])], { scan_depth: 1 });
  expect(contents(await scan([], { says, books: [ofBook], minActivations: 1 }))).toEqual(["hen"]);
});

test("rolls a probability once per entry, and only below 100 percent", async () => {
  const asked: string[] = [];
  const random = (name: string) => {
    asked.push(name);
    return 0.5;
  };
  const found = await scan([
    entry("40", ["dragon"], { id: 1, more: { probability: 40, useProbability: true } }),
    entry("60", ["dragon"], { id: 2, more: { probability: 60, useProbability: true } }),
    entry("unused", ["dragon"], { id: 3, more: { probability: 0, useProbability: false } }),
    entry("0", ["dragon"], { id: 4, more: { probability: 0 } }),
  ], { random });
  expect(contents(found)).toEqual(["60", "unused"]);
  expect(asked.sort()).toEqual(["b1/1", "b1/2", "b1/4"]);
  expect(found.dropped.map(({ reason }) => reason)).toEqual(["probability", "probability"]);
});

test("scans active entries recursively, as far as entries and books allow", async () => {
  const chain = [
    entry("the hoard", ["dragon"]),
    entry("gold coins", ["hoard"]),
    entry("the mint", ["gold"], { more: { exclude_recursion: true } }),
  ];
  const found = await scan(chain);
  expect(contents(found)).toEqual(["the hoard", "gold coins"]);
  expect(found.entries[0]!.reason).toEqual({ kind: "recursion", key: "hoard" });
  expect(contents(await scan(chain, { books: [book(chain, { recursive_scanning: false })] }))).toEqual(["the hoard"]);
  const quiet = [entry("the hoard", ["dragon"], { more: { prevent_recursion: true } }), chain[1]!];
  expect(contents(await scan(quiet))).toEqual(["the hoard"]);
});

test("stops recursion at its limit, and cycles by themselves", async () => {
  const links = Array.from({ length: 30 }, (_, n) => entry(`link${n + 1}.`, [n === 0 ? "dragon" : `link${n}.`]));
  expect(contents(await scan(links))).toHaveLength(30);
  expect(contents(await scan(links, { maxRecursion: 2 }))).toHaveLength(3);
  const circle = [entry("dragon egg", ["dragon"]), entry("dragon hen", ["egg"])];
  expect(contents(await scan(circle))).toEqual(["dragon egg", "dragon hen"]);
});

test("activates delayed entries only during recursion; secondary keys may match there", async () => {
  const waits = entry("late", ["dragon"], { more: { delay_until_recursion: true } });
  const first = entry("first", ["dragon"]);
  const found = await scan([first, waits]);
  expect(contents(found)).toEqual(["first", "late"]);
  expect(found.entries[0]!.reason).toEqual({ kind: "key", key: "dragon" });
  expect(contents(await scan([first, waits], { maxRecursion: 0 }))).toEqual(["first"]);
  // The lowest level takes part in recursion, and starts none. Further levels get scans of their own.
  expect(contents(await scan([waits]))).toEqual([]);
  const level = (n: number) => entry(`level ${n}`, ["dragon"], { more: { delay_until_recursion: n } });
  expect(contents(await scan([level(5)]))).toEqual([]);
  expect(contents(await scan([level(5), level(2), level(9)]))).toEqual(["level 5", "level 2", "level 9"]);
  // Levels count even if none of their entries can become active.
  const disabled = entry("disabled", [], { enabled: false, more: { delay_until_recursion: true } });
  expect(contents(await scan([level(5), disabled]))).toEqual(["level 5"]);
  const onSwipes = entry("on swipes", [], { more: { delay_until_recursion: 9, triggers: ["swipe"] } });
  expect(contents(await scan([waits, onSwipes]))).toEqual(["late"]);
  const both = [
    entry("and gold", ["sleeps"]),
    entry("x", ["dragon"], { selective: true, secondary_keys: ["gold"] }),
  ];
  expect(contents(await scan(both))).toEqual(["and gold", "x"]);
});

test("matches hidden keys only during recursion", async () => {
  const found = await scan([
    entry("open {{hidden_key: secret door}}", ["dragon"]),
    entry("inside", ["secret door"]),
  ], { expand: (text) => text.replace(/\{\{[^}]*\}\}/g, "") });
  expect(contents(found)).toEqual(["open ", "inside"]);
});

test("keeps a sticky entry active, then cools down, then allows it again", async () => {
  const one = entry("x", ["dragon"], { more: { sticky: 4, cooldown: 2 } });
  let state = {};
  const at = async (turn: number, says: string) => {
    const found = await scan([one], { says, messageCount: turn, state });
    state = JSON.parse(JSON.stringify(found.state));
    return found;
  };
  expect((await at(1, "dragon")).entries[0]!.reason.kind).toBe("key");
  expect((await at(3, "nothing")).entries[0]!.reason.kind).toBe("sticky");
  const resting = await at(5, "dragon");
  expect(resting.entries).toEqual([]);
  expect(resting.dropped).toMatchObject([{ reason: "cooldown", key: "dragon" }]);
  expect((await at(7, "nothing")).entries).toEqual([]);
  expect((await at(9, "dragon")).entries[0]!.reason.kind).toBe("key");
  expect((await at(12, "nothing")).entries[0]!.reason.kind).toBe("sticky");
});

test("the cooldown begins when it's seen that an entry isn't sticky any more", async () => {
  const one = entry("x", ["dragon"], { more: { sticky: 1, cooldown: 4 } });
  let state = {};
  const isActive = async (messageCount: number) => {
    const found = await scan([one], { messageCount, state });
    state = JSON.parse(JSON.stringify(found.state));
    return found.entries.length === 1;
  };
  const seen: boolean[] = [];
  for (const count of [1, 3, 5, 7, 9, 11]) seen.push(await isActive(count));
  expect(seen).toEqual([true, false, false, true, false, false]);
});

test("forgets activations of regenerated replies and deleted messages", async () => {
  const one = entry("x", ["dragon"], { more: { cooldown: 10 } });
  const { state } = await scan([one], { messageCount: 5 });
  expect(state).toEqual({ "b1/#0": 5 });
  expect(contents(await scan([one], { messageCount: 5, state }))).toEqual(["x"]);
  expect(contents(await scan([one], { messageCount: 3, state }))).toEqual(["x"]);
  expect(contents(await scan([one], { messageCount: 7, state }))).toEqual([]);
});

test("delays an entry by a number of messages", async () => {
  const one = entry("x", ["dragon"], { more: { delay: 4 } });
  expect((await scan([one], { messageCount: 3 })).dropped).toMatchObject([{ reason: "delay", key: "dragon" }]);
  expect(contents(await scan([one], { messageCount: 4 }))).toEqual(["x"]);
});

test("activates one entry per group: by weight, override or score; an active one excludes the others", async () => {
  const weighed = [
    entry("a", ["dragon"], { more: { group: "g", group_weight: 25 } }),
    entry("b", ["dragon"], { more: { group: "g, h", group_weight: 75 } }),
  ];
  expect(contents(await scan(weighed, { random: () => 0.2 }))).toEqual(["a"]);
  const second = await scan(weighed, { random: () => 0.3 });
  expect(contents(second)).toEqual(["b"]);
  expect(second.dropped).toMatchObject([{ reason: "group", key: "dragon" }]);
  const overriding = [...weighed, entry("c", ["dragon"], { more: { group: "g", group_override: true } })];
  expect(contents(await scan(overriding))).toEqual(["c"]);
  const scored = [
    entry("one key", ["dragon"], { more: { group: "g", use_group_scoring: true } }),
    entry("two keys", ["dragon", "sleeps"], { more: { group: "g", use_group_scoring: true } }),
  ];
  expect(contents(await scan(scored))).toEqual(["two keys"]);
  const later = [
    entry("first gold", ["dragon"], { more: { group: "g" } }),
    entry("x", ["gold"], { more: { group: "g" } }),
  ];
  expect(contents(await scan(later))).toEqual(["first gold"]);
});

test("an entry that loses in two groups takes no other one with it", async () => {
  const chosen = (group: string) => entry(`of ${group}`, ["dragon"], { more: { group, group_override: true } });
  const loser = entry("of both", ["dragon"], { more: { group: "g, h" } });
  const found = await scan([chosen("g"), chosen("h"), loser, entry("of none", ["dragon"])]);
  expect(contents(found)).toEqual(["of g", "of h", "of none"]);
  expect(found.dropped).toMatchObject([{ entry: { entryId: "#2" }, reason: "group" }]);
});

test("the chosen one of a group may lose by its probability; then another gets the next scan", async () => {
  const never = entry("never", ["dragon"], { more: { group: "g", group_override: true, probability: 0 } });
  const other = entry("other", ["dragon"], { more: { group: "g" } });
  expect(contents(await scan([never, other]))).toEqual([]);
  expect(contents(await scan([never, other, entry("again", ["sleeps"])]))).toEqual(["again", "other"]);
});

test("an entry without content may be the chosen one of a group", async () => {
  const nothing = entry("", ["dragon"], { more: { group: "g", group_weight: 50 } });
  const something = entry("x", ["dragon"], { more: { group: "g", group_weight: 50 } });
  const found = await scan([nothing, something, entry("egg", ["sleeps"])], { random: () => 0.2 });
  expect(contents(found)).toEqual(["egg"]);
  expect(found.dropped.map(({ reason }) => reason).sort()).toEqual(["empty", "group"]);
  expect(contents(await scan([nothing, something], { random: () => 0.7 }))).toEqual(["x"]);
});

test("all sticky entries of a group stay; of further keys, all must be found to count for the score", async () => {
  const sticky = (content: string, id: number) => entry(content, ["owl"], { id, more: { group: "g", sticky: 9 } });
  const rest = entry("new", ["dragon"], { id: 3, more: { group: "g", group_override: true } });
  const state = { "b1/1": 3, "b1/2": 3 };
  expect(contents(await scan([sticky("a", 1), sticky("b", 2), rest], { state, messageCount: 5 }))).toEqual(["a", "b"]);
  const more = { group: "s", use_group_scoring: true };
  const two = entry("two", ["dragon", "sleeps"], { more });
  const all = entry("all", ["dragon"], {
    ...{ constant: true, selective: true, secondary_keys: ["the", "owl"], more: { ...more, selectiveLogic: 3 } },
  });
  expect(contents(await scan([two, all]))).toEqual(["two"]);
});

test("limits entries to generation types", async () => {
  const entries = [entry("swipes", ["dragon"], { more: { triggers: ["swipe"] } }), entry("always", ["dragon"])];
  expect(contents(await scan(entries))).toEqual(["always"]);
  expect(contents(await scan(entries, { generation: "swipe" }))).toEqual(["swipes", "always"]);
});

const limited = (characterFilter: object) =>
  entry("limited", ["dragon"], { more: { "parlor/sillytavern": { characterFilter } } });
test.each([
  ["one of its names", { names: ["Bo", "Ayla"] }, true],
  ["another name", { names: ["Bo"] }, false],
  ["its ID", { names: ["c-ayla"] }, true],
  ["its name as a file name", { names: ["Who Dr"] }, true],
  ["one of its tags, in any case", { tags: ["Sailor", "cook"] }, true],
  ["another tag", { tags: ["cook"] }, false],
  ["its name and another tag", { names: ["Ayla"], tags: ["cook"] }, false],
  ["its name and its tag", { names: ["Ayla"], tags: ["sailor"] }, true],
  ["all but its name", { names: ["Ayla"], isExclude: true }, false],
  ["all but another name", { names: ["Bo"], isExclude: true }, true],
  ["all but its tag", { tags: ["sailor"], isExclude: true }, false],
  ["all but another tag", { tags: ["cook"], isExclude: true }, true],
  ["all but another name and its tag", { names: ["Bo"], tags: ["sailor"], isExclude: true }, false],
  ["nothing", { names: [], tags: [], isExclude: true }, true],
])("limits an entry by character: %s", async (_, filter, isActive) => {
  const character = { names: ["Ayla", "Who? Dr", "c-ayla", ""], tags: ["sailor"] };
  expect(contents(await scan([limited(filter)], { character }))).toEqual(isActive ? ["limited"] : []);
});

test("without a character, only entries for all but some characters are active; without a chat, all are", async () => {
  const entries = [limited({ names: ["Ayla"] }), {
    ...limited({ tags: ["cook"], isExclude: true }),
    content: "others",
  }];
  expect(contents(await scan(entries, { character: { names: [], tags: [] } }))).toEqual(["others"]);
  expect(contents(await scan(entries))).toEqual(["limited", "others"]);
});

test("expands macros in keys and content", async () => {
  const found = await scan([entry("{{char}} wakes", ["{{char}}"])], {
    says: "Smaug sleeps",
    expand: (text) => text.replaceAll("{{char}}", "Smaug"),
  });
  expect(contents(found)).toEqual(["Smaug wakes"]);
});

test("matches patterns that backtrack without end in linear time", { tags: ["J01"] }, async () => {
  const entries = [entry("miss", ["/(a+)+$/", "/(?:x+x+)+y/", "/(\\w+\\s?)+;/"]), entry("hit", ["/(a+)+!/"])];
  const found = await scan(entries, { says: `${"a".repeat(40)}! ${"x".repeat(60)} ${"lantern ".repeat(9)}` });
  expect(contents(found)).toEqual(["hit"]);
  expect(found.dropped).toEqual([]);
});

test("stops an endless pattern at its time limit without blocking, and doesn't try it again", async () => {
  const quick = new SandboxKeyMatcher(sandbox, { patternMs: 300, callMs: 30_000 });
  // The linear engine has no references to groups.
  const entries = [
    entry("endless", ["/(a+)+\\1$/", "/((?:x+x+)+)y\\1/"]),
    entry("other", ["/dra.on/"]),
    entry("plain", ["dragon"]),
  ];
  let ticks = 0;
  const ticking = setInterval(() => ticks++, 10);
  const says = `dragon ${"a".repeat(40)}! ${"x".repeat(60)}`;
  const found = await scan(entries, { says, matcher: quick });
  clearInterval(ticking);
  expect(contents(found)).toEqual(["other", "plain"]);
  expect(found.dropped).toMatchObject([{ reason: "too_slow", key: "/(a+)+\\1$/" }]);
  // A thread that runs the pattern itself can't do anything else.
  expect(ticks).toBeGreaterThan(1);
  const again = await scan(entries, { says: "dragon aaa", matcher: quick });
  expect(again.dropped).toMatchObject([{ reason: "too_slow" }]);
});

test("reports an invalid or too long pattern", async () => {
  const found = await scan([entry("x", ["/dra(gon/"]), entry("y", [`/${"a".repeat(3000)}/`])]);
  expect(found.dropped.map(({ reason }) => reason)).toEqual(["invalid_pattern", "invalid_pattern"]);
});

test.each([[300, "here"], [1_500, "off the serving thread"]])(
  "%i keys over a long text are looked for %s",
  async (count) => {
    const long = `${"lorem ipsum ".repeat(20_000)} dragon`;
    const keys = Array.from({ length: count - 1 }, (_, n) => entry(`e${n}`, [`missing${n}`]));
    const found = await scan([...keys, entry("last", ["Dragon"]), entry("pattern", ["/drag[o]n/"])], { says: long });
    expect(contents(found)).toEqual(["last", "pattern"]);
  },
);

test("yields to other work while scanning ten thousand entries", async () => {
  const entries = Array.from({ length: 10_000 }, (_, n) => entry(`e${n}`, [`missing${n}`, `lost${n}`]));
  let turns = 0;
  const ticking = setInterval(() => turns++);
  const found = await scan([...entries, entry("last", ["dragon"])]);
  clearInterval(ticking);
  expect(contents(found)).toEqual(["last"]);
  expect(turns).toBeGreaterThan(1);
});

test("decorators set the position of an entry and are never sent", async () => {
  const found = await scan([
    entry("@@depth 2\n@@role user\nDeep", ["dragon"]),
    entry("@@reverse_depth 1\nHigh up", ["dragon"]),
    entry("@@position after_desc\n@@ignore_on_max_context\nAfter", ["dragon"]),
    entry("@@disable_ui_prompt system_prompt\n@@unknown 1\nAlone", ["dragon"]),
    entry("@@depth 3", ["dragon"]),
  ], { messageCount: 10 });
  expect(found.entries.map(({ content, position, depth, role }) => [content, position, depth, role])).toEqual([
    ["Alone", "before_char", undefined, undefined],
    ["After", "after_char", undefined, undefined],
    ["High up", "at_depth", 9, "system"],
    ["Deep", "at_depth", 2, "user"],
  ]);
  expect(found.entries[1]!.isDroppedFirst).toBe(true);
  expect(found.disabledPrompts).toEqual(["system_prompt"]);
});

test("decorators control when an entry is active", async () => {
  const says = ["dragon", "hm", "dragon"];
  const fires = async (line: string, changes: Changes = {}) =>
    contents(await scan([entry(`${line}\nx`, ["dragon"])], { says, ...changes })).length === 1;
  expect(await fires("@@activate_only_after 1")).toBe(true);
  expect(await fires("@@activate_only_after 2")).toBe(false);
  expect(await fires("@@activate_only_after 2", { assistantMessageCount: 2 })).toBe(true);
  expect(await fires("@@activate_only_every 2", { assistantMessageCount: 4 })).toBe(true);
  expect(await fires("@@activate_only_every 2", { assistantMessageCount: 5 })).toBe(false);
  expect(await fires("@@is_greeting 1", { greetingIndex: 1 })).toBe(true);
  expect(await fires("@@is_greeting 1", { greetingIndex: 0 })).toBe(false);
  expect(await fires("@@is_greeting 1")).toBe(true);
  expect(await fires("@@additional_keys hm, ha")).toBe(true);
  expect(await fires("@@additional_keys ha")).toBe(false);
  expect(await fires("@@exclude_keys ha")).toBe(true);
  expect(await fires("@@exclude_keys hm")).toBe(false);
  expect(await fires("@@scan_depth 0")).toBe(false);
  expect(await fires("@@activate", { says: "nothing" })).toBe(true);
  expect(await fires("@@dont_activate")).toBe(false);
  expect(await fires("@@dont_activate\n@@activate")).toBe(true);
});

test("decorators keep an entry active forever, or activate it once", async () => {
  const keeps = [entry("@@keep_activate_after_match\nx", ["dragon"])];
  const { state } = await scan(keeps, { messageCount: 1 });
  expect(contents(await scan(keeps, { messageCount: 999, says: "nothing", state }))).toEqual(["x"]);
  const once = [entry("@@dont_activate_after_match\nx", ["dragon"])];
  const after = (await scan(once, { messageCount: 1 })).state;
  expect(contents(await scan(once, { messageCount: 999, state: after }))).toEqual([]);
});

test("accepts keys, ids and states called __proto__", async () => {
  const one = entry("x", ["__proto__"], { id: "__proto__", more: { sticky: 2 } });
  const state = JSON.parse('{"__proto__": 5, "b1/__proto__": 1}');
  const found = await scan([one], { says: "__proto__", state, messageCount: 9 });
  expect(contents(found)).toEqual(["x"]);
  expect(Object.getPrototypeOf(found.state)).toBe(Object.prototype);
});

test(
  "a row of 100,000 combining marks is scanned as it is: composing it would take minutes",
  { tags: ["F01"] },
  async () => {
    const marks = "\u0301\u0316".repeat(50_000);
    const found = await scan([entry("Fire", ["dragon"]), entry("Long", [`e${marks}`])], {
      says: `A dragon, e${marks}.`,
    });
    expect(contents(found).sort()).toEqual(["Fire", "Long"]);
    expect(contents(await scan([entry("Café", ["cafe\u0301"])], { says: "The café." }))).toEqual(["Café"]);
  },
);

test("rejects a pattern of a million brackets without parsing it", { tags: ["F01"] }, async () => {
  const { entries, dropped } = await scan([entry("Fire", [`/${"[".repeat(1_000_000)}/`])]);
  expect(entries).toEqual([]);
  expect(dropped).toMatchObject([{ reason: "invalid_pattern" }]);
});

test("looks at thousands of groups once per entry", { tags: ["F01"] }, async () => {
  const entries = Array.from({ length: 5_000 }, (_, n) => {
    const groups = Array.from({ length: 1_000 }, (_, g) => `g${n}-${g}`);
    return entry(`Entry ${n}`, ["dragon"], { more: { group: groups.join(",") } });
  });
  expect((await scan(entries)).entries.length).toBe(5_000);
});

test("shares the text of a long chat between a thousand scan depths", { tags: ["F01"] }, async () => {
  const scanned: number[] = [];
  const counting: typeof matcher = Object.assign(Object.create(matcher), {
    match: (texts: string[], queries: Parameters<typeof matcher.match>[1]) => {
      scanned.push(texts.reduce((sum, text) => sum + text.length, 0));
      return matcher.match(texts, queries);
    },
  });
  const says = Array.from({ length: 1_000 }, (_, n) => `${n === 998 ? "A kraken. " : ""}${"x".repeat(1_000)}`);
  const entries = says.map((_, n) => entry(`Depth ${n}`, ["kraken"], { more: { scan_depth: n + 1 } }));
  const found = await scan(entries, { says, matcher: counting });
  // All depths but the first include the message; joined for each of them, the chat would be 500 MB.
  expect(found.entries.length).toBe(999);
  expect(Math.max(...scanned)).toBeLessThan(12_000_000);
});
