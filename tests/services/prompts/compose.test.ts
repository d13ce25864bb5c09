import { expect, test } from "vitest";
import { composeBlocks } from "../../../services/prompts/compose.ts";
import { type LayoutItem, type PromptLayout, toPromptPreset } from "../../../services/prompts/prompt.ts";
import { BUILTIN_PRESET, readPreset } from "../../../services/presets/preset.ts";
import { Macros } from "../../../services/prompts/macros/macros.ts";
import type { ChatNote, PromptCharacter, PromptContext, PromptLore } from "../../../services/prompts/prompt_context.ts";
import { createSeededRandom } from "../../../services/prompts/participants.ts";
import { insertAtDepths, toPromptEntries } from "../../../services/prompts/prompt_messages.ts";

const { layout: BUILTIN } = toPromptPreset(
  readPreset({ id: "b", name: "B", isBuiltin: true }, BUILTIN_PRESET),
  "normal",
);
const ADA: PromptCharacter = {
  id: "ada",
  name: "Ada",
  description: "Ada counts.",
  personality: "kind",
  scenario: "A mill.",
  examples: "Ada: One.",
  systemPrompt: "",
  instructions: "",
  version: "1",
  creatorNotes: "",
  greetings: [],
};
const scene = (more: Partial<PromptContext> = {}): PromptContext => ({
  character: ADA,
  persona: { name: "Sam", description: "Sam asks." },
  layout: BUILTIN,
  action: "reply",
  hasNames: false,
  ...more,
});
const lore = (entry: string, more: Partial<PromptLore> = {}): PromptLore => ({
  book: "b",
  bookName: "B",
  entry,
  title: entry,
  reason: { kind: "constant" },
  content: `Lore ${entry}.`,
  position: "before_char",
  depth: 0,
  role: "system",
  order: 0,
  ...more,
});
function compose(asked: PromptContext, entries: PromptLore[] = [], disabled?: string[], isTurnMissing = false) {
  const { character, persona } = asked;
  const fields = {
    personality: character?.personality ?? "",
    scenario: asked.scenario ?? character?.scenario ?? "",
    description: character?.description ?? "",
  };
  const clock = { nowMs: 0 };
  const char = character?.name ?? "";
  const macros = new Macros({ char, user: persona.name, fields, clock, random: createSeededRandom("c"), chat: {} });
  const fresh = { random: createSeededRandom("turn"), clock };
  return composeBlocks({
    context: asked,
    lore: entries,
    disabled: new Set(disabled),
    needsUserMessage: isTurnMissing,
    macros,
    fresh,
  });
}
const layout = (items: LayoutItem[], more: Partial<PromptLayout> = {}): PromptLayout => ({
  items,
  formats: BUILTIN.formats,
  names: "group" as const,
  ...more,
});
const NOTE: ChatNote = { text: "Note.", depth: 1, role: "system", position: "in_chat", isOmitted: false };
const texts = (blocks: { text: string }[]) => blocks.map(({ text }) => text);

test("card prompts override the preset's, conversation prompts override the card's, and each can insert the other", () => {
  const main: LayoutItem = { identifier: "main", role: "system", content: "Preset." };
  const jailbreak: LayoutItem = { identifier: "jailbreak", role: "system", content: "Behind." };
  const history: LayoutItem = { identifier: "chatHistory", role: "system" };
  const character = { ...ADA, systemPrompt: "Card. {{original}}", instructions: "{{original}} Card behind." };
  const asked = scene({ character, systemPrompt: "Chat. {{original}}", layout: layout([main, history, jailbreak]) });
  const blocks = compose(asked);
  expect(blocks.leading[0]!.text).toBe("Chat. Card. Preset.");
  expect(texts(blocks.trailing)).toEqual(["Behind. Card behind."]);
  const fixed = layout([{ ...main, forbidsOverrides: true }, history, { ...jailbreak, forbidsOverrides: true }]);
  const held = compose({ ...asked, systemPrompt: undefined, layout: fixed });
  expect([held.leading[0]!.text, ...texts(held.trailing)]).toEqual(["Preset.", "Behind."]);
  const off = compose({ ...asked, systemPrompt: undefined }, [], ["system_prompt", "post_history_instructions"]);
  expect([off.leading[0]!.text, ...texts(off.trailing)]).toEqual(["Card.", "Card behind."]);
  expect(compose({ ...asked, layout: layout([history]) }).leading[0]!.text).toBe("Chat.");
});

test("follows the order of a preset, with custom prompts before, inside and after the history, and its prefill", () => {
  const items: LayoutItem[] = [
    { identifier: "scenario", role: "system" },
    { identifier: "own", name: "Style", role: "user", content: "Write for {{user}}." },
    { identifier: "main", role: "system", content: "Be {{char}}." },
    { identifier: "deep", role: "assistant", content: "Deep.", depth: 2, order: 5 },
    { identifier: "chatHistory", role: "system" },
    { identifier: "charDescription", role: "system" },
  ];
  const blocks = compose(scene({ layout: layout(items, { prefill: "{{char}}:" }) }));
  expect(blocks.leading.map(({ part, role, text, title }) => [part, role, text, title])).toEqual([
    ["scenario", "system", "[The scene: A mill.]", undefined],
    ["preset", "user", "Write for Sam.", "Style"],
    ["main", "system", "Be Ada.", undefined],
    ["chat_begins", "system", "[A new chat begins]", undefined],
  ]);
  expect(blocks.inserted).toMatchObject([{ text: "Deep.", depth: 2, role: "assistant" }]);
  expect(texts(blocks.trailing)).toEqual(["Ada counts."]);
  expect(blocks.prefill?.text).toBe("Ada:");
  expect(compose(scene({ layout: layout(items, { prefill: "x" }), action: "continue" })).prefill).toBeUndefined();
});

test("sends the preset's text in place of an empty user message, and a separate prefill for impersonation", () => {
  const words = { ...BUILTIN.formats, emptyUserMessage: "(silence)" };
  const items: LayoutItem[] = [
    { identifier: "chatHistory", role: "system" },
    { identifier: "jailbreak", role: "system", content: "Behind." },
  ];
  const asked = scene({ layout: layout(items, { formats: words, prefill: "{{user}}:" }) });
  expect(compose(asked, [], [], true).trailing.map(({ role, text }) => [role, text])).toEqual([
    ["user", "(silence)"],
    ["system", "Behind."],
  ]);
  const { trailing, prefill } = compose({ ...asked, action: "impersonate" });
  expect([...trailing.map(({ part }) => part), prefill?.text]).toEqual(["instructions", "impersonate", "Sam:"]);
});

test("sends preset prompts only for their generation types", () => {
  const prompts = [{ identifier: "own", content: "Only then.", injection_trigger: ["continue"] }];
  const prompt_order = [{ order: [{ identifier: "own", enabled: true }, { identifier: "main", enabled: false }] }];
  const preset = readPreset({ id: "p", name: "P", isBuiltin: false }, {
    prompts,
    prompt_order,
    rest: {},
    dialect: "chat_completion",
    sampler: { temperature: 0.5, top_p: 1, max_tokens: 77, context_size: 3000 },
  });
  const items = (generation: string) =>
    toPromptPreset(preset, generation).layout.items.map(({ identifier }) => identifier);
  expect(items("continue")).toEqual(["own", "chatHistory"]);
  expect(items("normal")).toEqual(["chatHistory"]);
  expect(toPromptPreset(preset, "normal")).toMatchObject({
    params: { temperature: 0.5, max_tokens: 77 },
    contextSize: 3000,
  });
});

test("places lorebook entries at their positions, also around a missing author's note", () => {
  const entries = [
    lore("before"),
    lore("after", { position: "after_char" }),
    lore("example", { position: "before_examples", content: "<START>\nOne.\n<START>\nTwo." }),
    lore("last", { position: "after_examples" }),
    lore("top", { position: "note_top" }),
    lore("bottom", { position: "note_bottom" }),
    lore("deep", { position: "at_depth", depth: 3, role: "user" }),
    lore("empty", { content: " " }),
  ];
  const { leading, inserted } = compose(scene({ note: NOTE }), entries);
  expect(texts(leading.filter(({ part }) => part === "lorebook" || part === "description"))).toEqual([
    ...["Lore before.", "Ada counts.", "Lore after."],
  ]);
  expect(texts(leading.filter(({ part }) => part === "examples")).map((text) => text.split("\n")[1])).toEqual([
    ...["One.", "Two.", "Ada: One.", "Lore last."],
  ]);
  expect(inserted.map(({ text, depth, role }) => [text, depth, role])).toEqual([
    ["Lore top.", 1, "system"],
    ["Note.", 1, "system"],
    ["Lore bottom.", 1, "system"],
    ["Lore deep.", 3, "user"],
  ]);
  expect(compose(scene(), entries).inserted.map(({ depth }) => depth)).toEqual([4, 4, 3]);
});

test.each(
  [
    ["before_main", ["Lore top.", "Note.", "Lore bottom.", "Main."]],
    ["after_main", ["Main.", "Lore top.", "Note.", "Lore bottom."]],
  ] as const,
)("an author's note %s is next to the main prompt with its entries", (position, expected) => {
  const items: LayoutItem[] = [
    { identifier: "main", role: "system", content: "Main." },
    { identifier: "chatHistory", role: "system" },
  ];
  const entries = [lore("top", { position: "note_top" }), lore("bottom", { position: "note_bottom" })];
  const asked = scene({ note: { ...NOTE, role: "user", position }, layout: layout(items) });
  const { leading, inserted } = compose(asked, entries);
  expect(texts(leading).slice(0, 4)).toEqual(expected);
  expect(leading.find(({ part }) => part === "note")!.role).toBe("user");
  expect(inserted).toEqual([]);
});

test("the persona's description is where its placement says, and as often", () => {
  const at = (position: "note_top" | "note_bottom" | "at_depth" | "none", more: Partial<PromptContext> = {}) => {
    const persona = { name: "Sam", description: "Sam asks.", placement: { position, depth: 3, role: "user" as const } };
    const { leading, inserted } = compose(scene({ persona, ...more }), [lore("top", { position: "note_top" })]);
    const place = ({ role, depth, text }: (typeof inserted)[number]) => `${role} ${depth}: ${text}`;
    expect(leading.filter(({ part }) => part === "persona")).toEqual([]);
    return inserted.map(place);
  };
  expect(at("none")).toEqual(["system 4: Lore top."]);
  expect(at("at_depth")).toEqual(["system 4: Lore top.", "user 3: Sam asks."]);
  expect(at("note_top")).toEqual(["system 4: Sam asks.", "system 4: Lore top."]);
  expect(at("note_bottom", { note: NOTE })).toEqual([
    ...[`${NOTE.role} ${NOTE.depth}: Lore top.`, `${NOTE.role} ${NOTE.depth}: ${NOTE.text}`],
    `${NOTE.role} ${NOTE.depth}: Sam asks.`,
  ]);
  expect(at("note_top", { note: { ...NOTE, isOmitted: true } })).toEqual([]);
});

test("a note that isn't due is omitted with the entries around it", () => {
  const entries = [lore("top", { position: "note_top" }), lore("deep", { position: "at_depth", depth: 2 })];
  const { inserted } = compose(scene({ note: { ...NOTE, isOmitted: true } }), entries);
  expect(texts(inserted)).toEqual(["Lore deep."]);
});

test("a preset's format is around all entries of a position once, and an empty one leaves the plain text", () => {
  const formats = { ...BUILTIN.formats, lore: "[Facts: {0}]", personality: "", scenario: " " };
  const items: LayoutItem[] = ["worldInfoBefore", "charPersonality", "scenario"]
    .map((identifier) => ({ identifier, role: "system" }));
  const { leading } = compose(scene({ layout: layout(items, { formats }) }), [lore("a"), lore("b")]);
  expect(texts(leading).slice(0, 4)).toEqual(["[Facts: Lore a.", "Lore b.]", "kind", "A mill."]);
  const twice = compose(scene({ layout: layout(items, { formats: { ...formats, lore: "{0}|{0}" } }) }), [
    lore("a"),
    lore("b"),
  ]);
  expect(texts(twice.leading).slice(0, 2)).toEqual(["Lore a.", "Lore b.|Lore a.\nLore b."]);
});

test("omits empty blocks, and blocks about a character if there is none", () => {
  const nobody = scene({ character: undefined, persona: { name: "Sam", description: "" } });
  expect(compose(nobody)).toEqual({ leading: [], inserted: [], trailing: [] });
  const bare = { ...ADA, description: " ", personality: "", scenario: "{{// nothing}}", examples: "<START>\r\n" };
  expect(compose(scene({ character: bare })).leading.map(({ part }) => part)).toEqual([
    "main",
    "persona",
    "chat_begins",
  ]);
});

test("orders blocks of one depth by order and role, and merges each role into one message", () => {
  const placed = (text: string, role: string, depth: number, order: number) => ({
    part: "note" as const,
    text,
    role,
    depth,
    order,
    tokens: 10,
  });
  const said = (n: number) => ({
    part: "history" as const,
    messageId: `m${n}`,
    tokens: 5,
    message: { role: "user", content: `m${n}` },
  });
  const all = insertAtDepths([said(0), said(1), said(2)], [
    placed("c", "system", 1, 100),
    placed("d", "system", 1, 100),
    placed("b", "assistant", 1, 100),
    placed("u", "user", 1, 100),
    placed("late", "assistant", 1, 101),
    placed("early", "system", 1, 99),
    placed("far", "system", 9, 0),
    placed("end", "user", 0, 0),
  ]);
  expect(all.map(({ message, tokens }) => [message.content, tokens])).toEqual([
    ...[
      ["far", 10],
      ["m0", 5],
      ["m1", 5],
      ["early", 10],
      ["b", 10],
      ["u", 10],
      ["c\n\nd", 17],
      ["late", 10],
      ["m2", 5],
      ["end", 10],
    ],
  ]);
  expect(toPromptEntries([]).length).toBe(0);
});
