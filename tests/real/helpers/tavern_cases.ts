/** Random users of SillyTavern, one character each: a card, its World Info, a preset, a chat and a message. */
import type { Random } from "../../fuzz/random.ts";

/** One character with everything that decides about its next prompt. */
export interface TavernCase {
  name: string;
  /** Fields of the form that creates a character. */
  card: Record<string, string>;
  world: { entries: Record<string, Record<string, unknown>> };
  /** Fields of a preset for chat completion. */
  preset: Record<string, unknown>;
  metadata: Record<string, unknown>;
  /** Messages after the greeting, by turns from the user. */
  messages: string[];
  message: string;
}

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
  return {
    name,
    card: {
      ch_name: name,
      ...{ description: some(0.8), personality: some(0.5), scenario: some(0.5), first_mes: text() },
      mes_example: random.chance(0.4) ? `<START>\n{{user}}: ${text(FORMS)}\n{{char}}: ${text(FORMS)}` : "",
      system_prompt: random.chance(0.4) ? `${text(FORMS)} {{original}}` : "",
      post_history_instructions: random.chance(0.4) ? `{{original}} ${text(FORMS)}` : "",
      world: `World of ${name}`,
      depth_prompt_prompt: depthPrompt.replaceAll("\n", " "),
      depth_prompt_depth: String(random.pick(DEPTHS)),
      depth_prompt_role: random.pick(ROLES),
    },
    world: {
      entries: Object.fromEntries(random.list(random.below(7), (uid) => [String(uid), makeEntry(random, uid, text())])),
    },
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
    message: `${random.pick(WORDS)} and ${random.pick(WORDS)}?`,
  };
}

function makeEntry(random: Random, uid: number, text: string): Record<string, unknown> {
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
    ...{ probability: 100, useProbability: true, outletName: position === 7 ? "attic" : "" },
    ...{
      excludeRecursion: random.chance(0.2),
      preventRecursion: random.chance(0.2),
      delayUntilRecursion: random.chance(0.1),
    },
    ...{ scanDepth: random.pick([null, null, 0, 1, 4]), caseSensitive: random.pick([null, true, false]) },
    ...{
      matchWholeWords: random.pick([null, true, false]),
      useGroupScoring: null,
      automationId: "",
      vectorized: false,
    },
    ...{ group: "", groupOverride: false, groupWeight: 100, sticky: 0, cooldown: 0, delay: random.pick([0, 0, 3]) },
    triggers: random.pick([[], [], ["normal"], ["continue"]]),
    ...{
      matchPersonaDescription: false,
      matchCharacterDescription: random.chance(0.2),
      matchScenario: random.chance(0.2),
    },
    ...{ matchCharacterPersonality: false, matchCharacterDepthPrompt: false, matchCreatorNotes: false },
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
