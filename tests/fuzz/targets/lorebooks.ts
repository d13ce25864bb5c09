/** Lorebooks: read from every form, written back, and activated by their keys. */
import { activate } from "../../../services/lorebooks/activation.ts";
import { SandboxKeyMatcher } from "../../../services/lorebooks/key_matcher.ts";
import { Sandbox } from "../../../services/platform/sandbox/sandbox.ts";
import { parseLorebook, parseLorebookFile } from "../../../services/lorebooks/lorebook_file.ts";
import { toSillyTavernLorebook } from "../../../services/lorebooks/lorebook_document.ts";
import { sillyTavernCard } from "../../helpers/files/cards.ts";
import { jsonText, mutateBytes, mutateJson, tokenText } from "../mutations.ts";
import { claim, target, unlessRefused } from "../target.ts";

/** A book and a chat that it is tried on. */
interface Trial {
  book: Uint8Array;
  messages: string[];
}

const WORLD_INFO = JSON.parse(
  Deno.readTextFileSync(new URL("../../fixtures/sillytavern/world_info.json", import.meta.url)),
);
const { data: { character_book: BOOK } } = sillyTavernCard("Fox");
const ENTRY = {
  keys: ["pier", "/qu[ae]y/i"],
  secondary_keys: ["sea"],
  content: "@@depth 2\nIt is lit. pier",
  enabled: true,
  insertion_order: 5,
  constant: false,
  selective: true,
  position: "after_char",
  use_regex: true,
  priority: 3,
  extensions: {
    position: 4,
    depth: 2,
    role: 1,
    probability: 50,
    useProbability: true,
    selectiveLogic: 3,
    group: "a,b",
    group_weight: 10,
    group_override: false,
    sticky: 2,
    cooldown: 1,
    delay: 0,
    scan_depth: 3,
    match_scenario: true,
    prevent_recursion: false,
    exclude_recursion: false,
    delay_until_recursion: false,
    match_whole_words: true,
  },
};
const RECURSIVE = {
  name: "Deep",
  scan_depth: 4,
  token_budget: 1_000,
  recursive_scanning: true,
  extensions: {},
  entries: [ENTRY, { ...ENTRY, keys: ["lit"], content: "@@activate_only_every 2\n@@@additional_keys a,b\nfox" }],
};
const BOOKS = [WORLD_INFO, BOOK, RECURSIVE, { spec: "lorebook_v3", data: RECURSIVE }, sillyTavernCard("Fox")];
const TOKENS = [
  ...["pier", "quay", "fox", "lit", "C++", "İ", "ß", "日本", "/pier/i", "/(a+)+$/", "/[/", "/\\/", "/a/z", ",", "\n"],
  ...["@@depth 1\n", "@@@depth 2\n", "@@activate\n", "@@additional_keys a,b\n", "@@", "{{char}}", "{{hidden_key:fox}}"],
  ...["{{hidden_key:", "\u0001", "a", " ", "e\u0301", "\ud800", "[", "\\", "/"],
];

const encoder = new TextEncoder();
const bytesOf = (value: unknown) => encoder.encode(JSON.stringify(value));
const tried = (entries: unknown[], ...messages: string[]): Trial => ({ book: bytesOf({ entries }), messages });

let sandbox: Sandbox;
let matcher: SandboxKeyMatcher;

export const LOREBOOKS = target<Trial>({
  name: "lorebooks",
  open() {
    // Slow patterns are expected; how long they may take is tested elsewhere.
    sandbox = new Sandbox();
    matcher = new SandboxKeyMatcher(sandbox, { patternMs: 50, callMs: 150 });
  },
  close: () => sandbox.close(),
  generate(random) {
    const text = jsonText(random, mutateJson(random, random.pick(BOOKS), TOKENS));
    return {
      book: random.chance(0.1) ? mutateBytes(random, encoder.encode(text)) : encoder.encode(text),
      messages: random.list(random.below(5), () => tokenText(random, TOKENS)),
    };
  },
  async run({ book: bytes, messages }) {
    const parsed = unlessRefused(() => parseLorebookFile(bytes));
    if (parsed === undefined) return;
    const { book, name = "" } = parsed;
    const file = await toSillyTavernLorebook(book);
    // That form has more levels, so a book at the limit isn't read again.
    const again = unlessRefused(() => parseLorebook(JSON.parse(JSON.stringify(file)))) ?? parsed;
    claim(again.book.entries.length === book.entries.length, () => "Entries are lost in SillyTavern's form");
    const owner = { id: "b", name, scope: "chat", book } as const;
    const found = await activate({
      books: [owner],
      messages: messages.map((text, n) => ({ role: n % 2 === 0 ? "user" : "assistant", text })),
      scanTexts: [{ source: "scenario", text: "A pier." }],
      countTokens: (text) => Math.ceil(text.length / 4),
      random: () => 0.4,
      matcher,
      budgetTokens: 2_000,
    });
    claim(found.entries.length <= book.entries.length, () => "More entries fired than there are");
    claim(found.entries.every(({ content }) => typeof content === "string"), () => "A content is no text");
  },
  cases: {
    "10,000 entries that call each other": () =>
      tried(
        Array.from({ length: 10_000 }, (_, n) => ({ keys: [`k${n} `], content: `k${n + 1} `, enabled: true })),
        "k0 ",
      ),
    "10,000 entries in one group": () =>
      tried(
        Array.from({ length: 10_000 }, () => ({ keys: ["a"], content: "x", extensions: { group: "g" } })),
        "a",
      ),
    "200 decorators before 1 MB": () =>
      tried([{ keys: ["a"], content: "@@depth 1\n".repeat(200) + "x".repeat(1_000_000) }], "a"),
    "1 MB of white space before a decorator": () => tried([{ keys: ["a"], content: " ".repeat(1_000_000) + "@" }], "a"),
    "1 MB of hidden keys that never end": () =>
      tried([{ keys: ["a"], content: "{{hidden_key:".repeat(80_000), constant: true }], "a"),
    "a key of 1 MB": () => tried([{ keys: ["a".repeat(1_000_000), `/${"[".repeat(500_000)}/`], content: "x" }], "a"),
    "a whole word in 200,000 places": () =>
      tried([{ keys: ["a"], content: "x", extensions: { match_whole_words: true } }], "a".repeat(200_000)),
    "1 MB of combining marks": () => tried([{ keys: ["e\u0301"], content: "x" }], "\u0301\u0316".repeat(500_000)),
  },
});
