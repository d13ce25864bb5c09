/** Each line of docs/guide/sillytavern.md about what is the same and what differs, and the tests that show it. */
import { join } from "node:path";
import { expect, test } from "vitest";

const TESTS = import.meta.dirname!;
const ASSEMBLY = "scenarios/assembly.test.ts";
const MACROS = "services/prompts/macros/macros.test.ts";
const COMPOSE = "services/prompts/compose.test.ts";
const ACTIVATION = "services/lorebooks/activation.test.ts";
const IMPORT = "services/import_export/formats/sillytavern/sillytavern.test.ts";
const SCRIPTS = "routes/regex_scripts.test.ts";

/** Tests by the beginning of a line: their file, and a title or an example in it. */
const EVIDENCE: Record<string, readonly (readonly [file: string, text: string])[]> = {
  // What is the same
  "Macros": [
    [MACROS, "evaluates the conditions of %j to %j"],
    [MACROS, "names the macros that aren't expanded, each once, but not those of messages"],
    ["routes/import_export/imports.test.ts", "unknown_macro"],
  ],
  "Lorebooks": [
    [ASSEMBLY, "an outlet's entries are in the prompts that name it, the highest order first, and empty in the card"],
    [ACTIVATION, "activates one entry per group: by weight, override or score; an active one excludes the others"],
    [ACTIVATION, "activates delayed entries only during recursion; secondary keys may match there"],
    [ACTIVATION, "limits an entry by character: %s"],
    [ACTIVATION, "books of characters and those for all chats: %s"],
    [IMPORT, "the user's World Info settings apply to entries that don't have their own"],
    ["scenarios/chat/kept_lore.test.ts", "the owner's limits apply to all lorebooks: tokens, more messages, names"],
  ],
  "Presets": [
    [COMPOSE, "follows the order of a preset, with custom prompts before, inside and after the history"],
    [COMPOSE, "sends preset prompts only for their generation types"],
    [ASSEMBLY, "a preset that sends names as fields does so for all turns, with the characters that names may have"],
  ],
  "Groups": [[ASSEMBLY, "each reply of a group is from its character, with its card"]],
  "Regex scripts": [
    [SCRIPTS, "scripts of a card and a preset run after the owner's, once they're accepted"],
    [SCRIPTS, "changes what is sent, by role and depth, before macros and names; the stored text stays"],
    [SCRIPTS, "a script that is too slow is switched off, and named"],
  ],
  "Quick replies": [[IMPORT, "a set of quick replies is the same after an import and an export"]],
  "The author's note": [
    [ASSEMBLY, "a note with an interval is only sent with every so many messages of the user"],
    [ASSEMBLY, "a character's author's note replaces the chat's or is next to it, in its place and with its interval"],
    [IMPORT, "a chat's note with its place and interval, its scenario, prompt and variables are imported"],
  ],
  "The place of a persona's description": [
    [COMPOSE, "the persona's description is where its placement says, and as often"],
    [IMPORT, "a persona that is connected to characters is for new chats with them; the first one of two is"],
    ["routes/personas.test.ts", "new chats with a character have its persona, or else the default one"],
  ],
  // What differs
  "A field in another field of the card": [[MACROS, '["{{persona}}", "I am Sam"]'], [MACROS, '.toBe("ab")']],
  "Example dialogue without names": [[ASSEMBLY, "example dialogue without names is sent"]],
  "Variables stay in the chat": [[ASSEMBLY, "a prompt that changes a variable is the same when it's sent again"]],
  "`{{random}}` and `{{roll}}`": [[MACROS, "keeps random choices per location, and varies them between locations"]],
  "Messages between prompts": [[COMPOSE, "orders blocks of one depth by order and role, and merges each role into"]],
  "Example dialogue: messages": [[ASSEMBLY, "sends card, persona, the card's lorebook, notes and instructions"]],
  "Macros in a stored greeting": [[ASSEMBLY, "names in stored messages are expanded, also in SillyTavern's old form"]],
  "A block of an unknown macro": [[MACROS, "{{unknown}}Sam{{/unknown}}"]],
  "`{{IF}}` in capitals": [[MACROS, "{{IF 1}}a{{else}}b{{/IF}}"]],
  "`{{currentSwipeId}}`": [[MACROS, "names the macros that aren't expanded, each once, but not those of messages"]],
  "`{{isMobile}}`": [[MACROS, "{{isMobile}}"]],
  "`assistant_prefill`": [[ASSEMBLY, "the start of a reply that a preset sends is stored once"]],
  "A reply continued by prefill": [[ASSEMBLY, "when a preset %s, the continued text is last and the reply joins it"]],
  "Logit bias": [
    ["services/llm/openai/openai_request.test.ts", "logit bias of texts is in the form of the server"],
    [IMPORT, "a preset has the list of logit bias that it names"],
  ],
  "Reasoning can be added": [
    ["routes/chat/reasoning_tags.test.ts", "reasoning between tags is streamed, stored and returned as reasoning"],
    [IMPORT, "the report names reasoning settings that Parlor doesn't follow: %j"],
  ],
  "Vectorized entries": [
    ["services/lorebooks/lorebook_ledger.test.ts", "names what SillyTavern or NovelAI do with an entry and Parlor"],
  ],
  "The same entry in two lorebooks": [[ACTIVATION, "what a lorebook has twice is sent twice, and what two lorebooks"]],
  "A persona at a depth": [[ACTIVATION, "scans other texts for entries that ask for them"]],
  "An entry that loses in two groups": [[ACTIVATION, "an entry that loses in two groups takes no other one with it"]],
  "Regex scripts for everything": [
    [SCRIPTS, "changes what is sent, by role and depth, before macros and names; the stored text stays"],
    [SCRIPTS, "changes what is shown and edited"],
  ],
  "Style sheets in a script's": [
    ["static/state/chat/regex_display.test.ts", "of %j, without style sheets, %j is left"],
    ["static/views/regex_scripts/regex_scripts.test.ts", "a preset's scripts come with its file, ask once"],
  ],
  "A quick reply replaces": [
    ["static/state/chat/quick_replies.test.ts", "a quick reply is put before or after what is typed"],
  ],
  "Quick replies with script": [
    ["static/views/settings/prompt_templates.test.ts", "quick replies stand above the composer, insert or send, and"],
  ],
  "Menus and automatic": [
    [IMPORT, "quick replies of sets that are shown get buttons: in all chats, or with a character or chat"],
  ],
};

async function readLines(): Promise<{ same: string[]; different: string[] }> {
  const guide = await Deno.readTextFile(join(TESTS, "../docs/guide/sillytavern.md"));
  const readPart = (title: string) => guide.split(`\n## ${title}\n`)[1]!.split("\n## ")[0]!.split("\n");
  return {
    same: readPart("What is the same").flatMap((line) => line.startsWith("- ") ? [line.slice(2)] : []),
    different: readPart("What differs").flatMap((line) =>
      /^\| (?!---|SillyTavern +\|)/.test(line) ? [line.slice(2)] : []
    ),
  };
}

/** Of two beginnings, the longer one is meant. */
function findBeginning(line: string): string | undefined {
  return Object.keys(EVIDENCE).filter((beginning) => line.startsWith(beginning)).sort((a, b) => b.length - a.length)[0];
}

test("each line of the guide has tests, and each group of tests a line", async () => {
  const { same, different } = await readLines();
  const lines = [...same, ...different];
  const found = lines.map(findBeginning);
  expect(lines.filter((_, n) => found[n] === undefined), "lines without a test in tests/tavern_guide.test.ts").toEqual(
    [],
  );
  expect(Object.keys(EVIDENCE).filter((beginning) => !found.includes(beginning)), "tests without a line").toEqual([]);
  expect(new Set(found).size, "lines with the same tests").toBe(lines.length);
});

test("the tests of the guide's lines exist", async () => {
  for (const [beginning, tests] of Object.entries(EVIDENCE)) {
    for (const [file, text] of tests) {
      const source = await Deno.readTextFile(join(TESTS, file));
      expect(source.includes(text), `${beginning}: "${text}" in ${file}`).toBe(true);
    }
  }
});
