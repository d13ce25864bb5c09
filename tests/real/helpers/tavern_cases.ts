/** Random users of SillyTavern, one character each: a card, its World Info, a preset, a chat and a message. */
import type { Random } from "../../fuzz/random.ts";

/** One character with everything that decides about its next prompt. */
export interface TavernCase {
  name: string;
  /** Fields of the form that creates a character. */
  card: Record<string, string>;
  world: World;
  /** Fields of a preset for chat completion. */
  preset: Record<string, unknown>;
  metadata: Record<string, unknown>;
  /** Messages after the greeting, by turns from the user. */
  messages: string[];
  /** What the user sends, one after another. */
  turns: string[];
  /** The persona: its image file, and what it's bound to. */
  persona: { file: string; boundTo: "chat" | "character" | "default" };
  /** World Info besides that of the card. */
  further?: { world: World; place: "charLore" | "chat" };
  /** World Info settings that apply to all books. */
  settings: Record<string, unknown>;
  /** Whether the chat is one with a second character. */
  isGroup: boolean;
  /** The character's own author's note. */
  characterNote?: { prompt: string; useChara: boolean; position: number };
  /** World Info that is selected for all chats. */
  everywhere?: World;
  /** Whether the last reply is continued. */
  isContinued: boolean;
}

/** A World Info file. */
export interface World {
  entries: Record<string, Record<string, unknown>>;
}

/** The personas of all cases besides the default one, by image file. */
export const PERSONAS = Object.fromEntries(
  ([["top", 2], ["bottom", 3], ["depth", 4], ["deep", 4], ["none", 9], ["prompt", 0]] as const).map((
    [name, position],
    n,
  ) => [
    `${name}.png`,
    {
      name: `Bea ${n}`,
      description: {
        ...{ description: `{{user}} keeps the old bridge (persona-${name}).`, position, depth: n, role: n % 3 },
      },
    },
  ]),
);
/** Tags of the first character, for limits of entries. */
export const TAGS = [{ id: "tag-red", name: "red" }, { id: "tag-grey", name: "grey" }];

/** Lists of logit bias that presets name. Only token IDs mean the same everywhere. */
export const BIASES: Record<string, { id: string; text: string; value: number }[]> = {
  "No bias": [],
  Birds: [{ id: "1", text: "[12, 340]", value: -50 }, { id: "2", text: "[7]", value: 2.5 }],
  Trees: [{ id: "3", text: "[99]", value: 100 }],
};

const WORDS = ["mill", "river", "Fox", "lantern", "old bridge"];
/** SillyTavern expands fields to nothing in the fields of a card, so only other texts have this one. */
const CONDITION = "{{if personality}}Dry.{{else}}Plain.{{/if}}";
const FORMS = [
  ...[
    "{{char}} likes the mill.",
    "{{user}} asks.",

    "{{.seen = 1}}Seen {{.seen}}.",
  ],
  ...[
    "A lantern by the river.",
    "{{reverse::abc}} {{space::2}}x",
    "Quiet.\n\nVery quiet.",
    "{{// nothing}}Short",
    "<BOT> waits.",
  ],
];
/** SillyTavern expands a greeting before it has chosen the persona and the speaker, and stores that. */
const GROUP_GREETINGS = FORMS.filter((form) => !/\{\{(user|char)\}\}|<BOT>/.test(form));
const GREETINGS = [...GROUP_GREETINGS, CONDITION];
const ROLES = ["system", "user", "assistant"];
const DEPTHS = [0, 1, 2, 4, 9];

/** Makes a case. @param name The character's name, which marks all of its texts. */
export function makeTavernCase(random: Random, name: string): TavernCase {
  let texts = 0;
  // Each text is different, so that a wrong place shows.
  const text = (forms = [...FORMS, CONDITION]) =>
    `${random.pick(forms)} (${name.toLowerCase().replace(" ", "")}-${++texts})`;
  const some = (chance: number) => random.chance(chance) ? text(FORMS) : "";
  const depthPrompt = some(0.5);
  const isGroup = random.chance(0.2);
  const makeWorld = (most: number): World => ({
    entries: Object.fromEntries(
      random.list(random.below(most), (uid) => [String(uid), makeEntry(random, uid, name, text())]),
    ),
  });
  const one: TavernCase = {
    name,
    card: {
      ch_name: name,
      ...{ description: some(0.8), personality: some(0.5), scenario: some(0.5) },
      first_mes: text(isGroup ? GROUP_GREETINGS : GREETINGS),
      mes_example: random.chance(0.4) ? `<START>\n{{user}}: ${text(FORMS)}\n{{char}}: ${text(FORMS)}` : "",
      system_prompt: random.chance(0.4) ? `${text(FORMS)} {{original}}` : "",
      post_history_instructions: random.chance(0.4) ? `{{original}} ${text(FORMS)}` : "",
      world: `World of ${name}`,
      // In a group, only who is addressed speaks.
      talkativeness: "0",
      depth_prompt_prompt: depthPrompt.replaceAll("\n", " "),
      depth_prompt_depth: String(random.pick(DEPTHS)),
      depth_prompt_role: random.pick(ROLES),
    },
    world: makeWorld(7),
    preset: makePreset(random, text),
    metadata: random.chance(0.7)
      ? {
        ...{
          note_prompt: text(),
          note_interval: random.pick([1, 1, 1, 2, 0]),
          note_position: random.pick([1, 1, 0, 2]),
        },
        ...{ note_depth: random.pick(DEPTHS), note_role: random.below(3) },
      }
      : {},
    messages: random.list(2 * random.below(3), () => text()),
    turns: random.list(
      random.pick([1, 1, 1, 2, 3]),
      () => `${isGroup ? `${name}, ` : ""}${random.pick(WORDS)} and ${random.pick(WORDS)}?`,
    ),
    persona: random.pick([
      { file: "user-default.png", boundTo: "default" },
      ...Object.keys(PERSONAS).flatMap((file) =>
        (["chat", "character"] as const).map((boundTo) => ({ file, boundTo }))
      ),
    ]),
    ...(random.chance(0.3) && { further: { world: makeWorld(4), place: random.pick(["charLore", "chat"]) } }),
    settings: {
      ...{
        world_info_min_activations: random.pick([0, 0, 2, 5]),
        world_info_min_activations_depth_max: random.pick([0, 3]),
      },
      ...{ world_info_max_recursion_steps: random.pick([0, 0, 1, 3]), world_info_include_names: random.chance(0.8) },
    },
    isGroup,
    isContinued: random.chance(0.3),
  };
  return {
    ...one,
    preset: {
      ...one.preset,
      names_behavior: random.pick([0, 0, 0, 1, 1, 2, -1]),
      bias_preset_selected: random.pick(Object.keys(BIASES)),
      ...{ continue_prefill: random.chance(0.4), continue_postfix: random.pick(["", " ", "\n", "\n\n"]) },
    },
    settings: { ...one.settings, world_info_character_strategy: random.below(3) },
    ...(random.chance(0.3) && { everywhere: makeWorld(4) }),
    ...(random.chance(0.4) && {
      characterNote: { prompt: text(), useChara: random.chance(0.8), position: random.below(3) },
    }),
  };
}

/** Gives a case another name, for another character. */
export function renameCase(one: TavernCase, name: string): TavernCase {
  return JSON.parse(JSON.stringify(one).replaceAll(one.name, name));
}

/** Leaves out one part of a case, if it's there. */
export type Omission = (one: TavernCase) => TavernCase;

/** Lists what can be left out of a case, the largest parts first. */
export function listOmissions(whole: TavernCase): Omission[] {
  const { further, everywhere, turns, isGroup, metadata, messages, persona, world, card, settings, preset } = whole;
  const plainPersona: TavernCase["persona"] = { file: "user-default.png", boundTo: "default" };
  const needed = ["ch_name", "first_mes", "world", "talkativeness", "depth_prompt_depth", "depth_prompt_role"];
  const fields = Object.keys(card).filter((field) => !needed.includes(field) && card[field] !== "");
  const [{ order }] = preset.prompt_order as [PromptOrder];
  const prompts = order.filter(({ identifier, enabled }) => enabled && identifier !== "chatHistory");
  const list = (isThere: boolean, omission: Omission) => isThere ? [omission] : [];
  return [
    ...list(further !== undefined, ({ further: _, ...one }) => one),
    ...list(everywhere !== undefined, ({ everywhere: _, ...one }) => one),
    ...list(whole.isContinued, (one) => ({ ...one, isContinued: false })),
    ...list(whole.characterNote !== undefined, ({ characterNote: _, ...one }) => one),
    ...turns.slice(1).map((): Omission => (one) => ({ ...one, turns: one.turns.slice(0, -1) })),
    ...list(isGroup, (one) => ({ ...one, isGroup: false })),
    ...list(Object.keys(metadata).length > 0, (one) => ({ ...one, metadata: {} })),
    ...list(messages.length > 0, (one) => ({ ...one, messages: one.messages.slice(0, -2) })),
    ...list(persona.boundTo !== "default", (one) => ({ ...one, persona: plainPersona })),
    ...Object.keys(world.entries).map((uid): Omission => (one) => ({ ...one, world: omitEntry(one.world, uid) })),
    ...Object.keys(further?.world.entries ?? {}).map((uid): Omission => (one) => ({
      ...one,
      ...(one.further && { further: { ...one.further, world: omitEntry(one.further.world, uid) } }),
    })),
    ...Object.keys(everywhere?.entries ?? {}).map((uid): Omission => (one) => ({
      ...one,
      ...(one.everywhere && { everywhere: omitEntry(one.everywhere, uid) }),
    })),
    ...fields.map((field): Omission => (one) => ({ ...one, card: { ...one.card, [field]: "" } })),
    ...prompts.map(({ identifier }): Omission => (one) => ({ ...one, preset: omitPrompt(one.preset, identifier) })),
    ...Object.keys(PLAIN_PRESET).filter((name) => preset[name] !== PLAIN_PRESET[name]).map(
      (name): Omission => (one) => ({
        ...one,
        preset: { ...one.preset, [name]: PLAIN_PRESET[name] },
      }),
    ),
    ...Object.keys(settings).filter((name) => settings[name]).map((name): Omission => (one) => ({
      ...one,
      settings: { ...one.settings, [name]: typeof settings[name] === "number" ? 0 : false },
    })),
  ];
}

/** Values of a preset that change nothing. */
const PLAIN_PRESET: TavernCase["preset"] = {
  ...{ names_behavior: 0, bias_preset_selected: "No bias", continue_prefill: false, continue_postfix: "" },
  ...{ wi_format: "{0}", scenario_format: "{{scenario}}", personality_format: "{{personality}}" },
  squash_system_messages: false,
};

/** One order of a preset's prompts. */
interface PromptOrder {
  order: { identifier: string; enabled: boolean }[];
}

function omitEntry({ entries }: World, uid: string): World {
  const { [uid]: _, ...fewer } = entries;
  return { entries: fewer };
}

function omitPrompt(preset: TavernCase["preset"], omitted: string): TavernCase["preset"] {
  const [{ order, ...rest }] = preset.prompt_order as [PromptOrder];
  const fewer = order.map((item) => item.identifier === omitted ? { ...item, enabled: false } : item);
  return { ...preset, prompt_order: [{ ...rest, order: fewer }] };
}

function makeEntry(random: Random, uid: number, name: string, text: string): Record<string, unknown> {
  const position = random.below(8);
  return {
    uid,
    ...{
      key: [random.pick(WORDS)],
      keysecondary: random.chance(0.3) ? [random.pick(WORDS)] : [],
      comment: `entry ${uid}`,
    },
    // SillyTavern drops example dialogue without names.
    content: `${position > 4 && position < 7 ? "{{char}}: " : ""}${text}${
      random.chance(0.3) ? ` ${random.pick(WORDS)}` : ""
    }`,
    ...{ constant: random.chance(0.3), selective: true, selectiveLogic: random.below(4), disable: random.chance(0.1) },
    ...{ order: random.pick([100, 100, 50, 150]), position, depth: random.pick(DEPTHS), role: random.below(3) },
    ...{
      probability: random.pick([100, 100, 100, 0]),
      useProbability: random.chance(0.9),
      outletName: position === 7 ? "attic" : "",
    },
    ...{
      excludeRecursion: random.chance(0.2),
      preventRecursion: random.chance(0.2),
      delayUntilRecursion: random.pick([false, false, false, false, true, 2, 3]),
    },
    ...{ scanDepth: random.pick([null, null, 0, 1, 4]), caseSensitive: random.pick([null, true, false]) },
    ...{
      matchWholeWords: random.pick([null, true, false]),
      useGroupScoring: random.pick([null, null, true]),
      automationId: "",
      vectorized: false,
    },
    // SillyTavern removes an entry that loses in two groups twice, and with it another. Without an override, chance
    // decides.
    ...{ group: random.pick(["", "", "", "birds", "trees"]), groupOverride: true, groupWeight: 100 },
    ...{ sticky: random.pick([0, 0, 1, 3]), cooldown: random.pick([0, 0, 2, 4]), delay: random.pick([0, 0, 3]) },
    characterFilter: {
      isExclude: random.chance(0.3),
      names: random.pick([[], [], [], [name], ["Somebody"]]),
      tags: random.pick([[], [], [], ["tag-red"], ["tag-grey"]]),
    },
    triggers: random.pick([[], [], ["normal"], ["continue"]]),
    ...{
      matchPersonaDescription: random.chance(0.2),
      matchCharacterDescription: random.chance(0.2),
      matchScenario: random.chance(0.2),
    },
    ...{ matchCharacterPersonality: random.chance(0.2), matchCharacterDepthPrompt: random.chance(0.2) },
    ...{ matchCreatorNotes: false },
    ...{ ignoreBudget: false, addMemo: true, displayIndex: uid },
  };
}

function makePreset(random: Random, text: () => string): Record<string, unknown> {
  const own = (identifier: string) => {
    const isInChat = random.chance(0.5);
    return {
      ...{
        identifier,
        name: identifier,
        role: random.pick(ROLES),
        content: text(),
        system_prompt: false,
        marker: false,
      },
      ...{ injection_position: isInChat ? 1 : 0, injection_depth: random.pick(DEPTHS), forbid_overrides: false },
      ...{
        injection_order: random.pick([100, 100, 50, 200]),
        injection_trigger: random.pick([[], [], ["normal"], ["continue"]]),
      },
    };
  };
  const fixed = (identifier: string, content: string) => ({
    ...{
      identifier,
      name: identifier,
      role: "system",
      content,
      system_prompt: true,
      marker: false,
      injection_position: 0,
    },
    ...{ injection_depth: 4, injection_order: 100, injection_trigger: [], forbid_overrides: random.chance(0.2) },
  });
  const marker = (identifier: string) => ({ identifier, name: identifier, system_prompt: true, marker: true });
  const markers = [
    "worldInfoBefore",
    "personaDescription",
    "charDescription",
    "charPersonality",
    "scenario",
    "worldInfoAfter",
  ];
  const prompts = [
    fixed("main", `${text()} <{{outlet::attic}}>`),
    fixed("nsfw", random.chance(0.5) ? text() : ""),
    fixed("jailbreak", random.chance(0.5) ? text() : ""),
    ...[...markers, "dialogueExamples", "chatHistory"].map(marker),
    ...["own-1", "own-2", "own-3"].map(own),
  ];
  const order = [
    "main",
    ...shuffle(random, [...markers, "own-1", "own-2"]),
    "nsfw",
    "dialogueExamples",
    "chatHistory",
    "own-3",
    "jailbreak",
  ];
  return {
    ...{ temperature: 1, openai_max_context: 8192, openai_max_tokens: 300, stream_openai: false, names_behavior: 0 },
    ...{ new_chat_prompt: "[Begin]", new_example_chat_prompt: "[Example]", new_group_chat_prompt: "[Group]" },
    ...{
      wi_format: random.pick(["{0}", "[Facts: {0}]", ""]),
      scenario_format: random.pick(["{{scenario}}", "", "[Scene: {{scenario}}]"]),
    },
    ...{ personality_format: random.pick(["{{personality}}", "", "[Manner: {{personality}}]"]), send_if_empty: "" },
    ...{
      impersonation_prompt: "Write for {{user}}.",
      continue_nudge_prompt: "Go on.",
      group_nudge_prompt: "[{{char}}]",
    },
    ...{
      squash_system_messages: random.chance(0.3),
      assistant_prefill: "",
      use_sysprompt: true,
      continue_prefill: false,
    },
    prompts,
    prompt_order: [{
      character_id: 100001,
      order: order.map((identifier) => ({ identifier, enabled: identifier === "chatHistory" || random.chance(0.9) })),
    }],
  };
}

function shuffle<T>(random: Random, list: readonly T[]): T[] {
  const left = [...list];
  return list.map(() => left.splice(random.below(left.length), 1)[0]!);
}
