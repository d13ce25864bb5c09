/**
 * Macros as the page of the real SillyTavern expands them, and as Parlor does: random texts, the same in each run.
 *
 * @slow Starts SillyTavern and its page.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Browser, Page } from "playwright-core";
import { MacroBudget } from "../../services/prompts/macros/macro_budget.ts";
import { Macros } from "../../services/prompts/macros/macros.ts";
import { Random } from "../fuzz/random.ts";
import { openBrowser } from "../helpers/browser/browser.ts";
import { listSmaller, type MacroNode, makeMacroText, toMacroText } from "./helpers/macro_cases.ts";
import { realPart } from "./helpers/real_part.ts";
import { type SillyTavern, startSillyTavern } from "./helpers/silly_tavern.ts";
import { openTavernPage, writeTavernSettings } from "./helpers/tavern_page.ts";

const INSTALLED = realPart("REAL_SILLYTAVERN_DIR", "sillytavern.sh");
/** Time limit for a busy machine. */
const SLOW_MS = 600_000;
const TEXTS = Deno.env.has("LONG_TESTS") ? 20_000 : 2_000;
/** Texts per call of the page. */
const BATCH = 500;

const CARD = {
  ch_name: "Vole",
  description: "{{char}} digs.",
  personality: "",
  scenario: "A bank. {{user}} watches.",
  first_mes: "Hi {{user}}",
  mes_example: "<START>\n{{user}}: Dig?\n{{char}}: Yes.",
  creator_notes: "Made of {{char}}",
  system_prompt: "Be {{char}}.",
  post_history_instructions: "",
  character_version: "1.2",
  depth_prompt_prompt: "It rains.",
};

describe.skipIf(INSTALLED === undefined)("with the page of the real SillyTavern", { timeout: SLOW_MS }, () => {
  let tavern: SillyTavern;
  let browser: Browser;
  let page: Page;
  let sizes: Sizes;

  beforeAll(async () => {
    tavern = await startSillyTavern(INSTALLED!);
    const form = new FormData();
    for (const [key, value] of Object.entries(CARD)) form.append(key, value);
    form.append("alternate_greetings", "Psst");
    await tavern.send("/api/characters/create", form);
    browser = await openBrowser();
    await writeTavernSettings(tavern, "http://127.0.0.1:9");
    page = await openTavernPage(tavern, browser);
    // SillyTavern ignores a choice while it's saving or still loading.
    do {
      await page.evaluate(SELECT);
      await new Promise((resolve) => setTimeout(resolve, 500));
    } while (!await page.evaluate(HAS_GREETING));
    const [contextTokens, promptTokens] = (await askPage(["{{maxContext}}", "{{maxPrompt}}"])).map(Number);
    sizes = { contextTokens: contextTokens!, promptTokens: promptTokens! };
  }, SLOW_MS);

  afterAll(async () => {
    await browser?.close();
    await tavern?.[Symbol.asyncDispose]();
  });

  /** Each text with variables of its own. */
  const askPage = (texts: string[]) => page.evaluate<string[]>(`(${EXPAND})(${JSON.stringify(texts)})`);

  async function findDifference(trees: MacroNode[][]): Promise<MacroNode[] | undefined> {
    const answers = await askPage(trees.map(toMacroText));
    return trees.find((tree, n) => toComparable(expandHere(toMacroText(tree), sizes)) !== toComparable(answers[n]!));
  }

  test(`${TEXTS} texts are the same in both`, async () => {
    for (let from = 0; from < TEXTS; from += BATCH) {
      const trees = Array.from({ length: BATCH }, (_, n) => makeMacroText(new Random(`macros ${from + n}`)));
      let different = await findDifference(trees);
      if (different === undefined) continue;
      for (let next: MacroNode[] | undefined = different; next !== undefined;) {
        different = next;
        next = await findDifference([...listSmaller(different)].slice(0, BATCH));
      }
      const text = toMacroText(different);
      expect({ text, expanded: expandHere(text, sizes) }).toEqual({ text, expanded: (await askPage([text]))[0] });
    }
  });

  test("the texts of SillyTavern's own tests are the same in both", async () => {
    const texts = await readPackageTexts(INSTALLED!);
    expect(texts.length).toBeGreaterThan(150);
    const answers = await askPage(texts);
    const found = texts.map((text, n) => ({
      ...{ text, here: toComparable(expandHere(text, sizes)), there: toComparable(answers[n]!) },
    }));
    expect(found.filter(({ here, there }) => here !== there)).toEqual([]);
  });

  test("the texts use variables, blocks and conditions, and most expand to something else", async () => {
    const texts = Array.from({ length: BATCH }, (_, n) => toMacroText(makeMacroText(new Random(`macros ${n}`))));
    const all = texts.join("\n");
    for (const part of ["{{if ", "{{else}}", "{{/setvar}}", "{{.a", "{{$", "{{getvarkey::", "{{// "]) {
      expect(all).toContain(part);
    }
    const answers = await askPage(texts);
    expect(answers.filter((answer, n) => answer !== texts[n]).length).toBeGreaterThan(BATCH / 2);
  });
});

/** Reads the texts that the installed package's tests of the macro engine expand. Nothing of them is stored here. */
async function readPackageTexts(installed: string): Promise<string[]> {
  const file = `${installed}/node_modules/sillytavern/tests/frontend/MacroEngine.e2e.js`;
  const source = await Deno.readTextFile(file);
  const literals = source.matchAll(
    /const input = ('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\$]|\\.|\$(?!\{))*`);/g,
  );
  const texts = Array.from(literals, ([, literal]) => String(new Function(`return ${literal}`)()));
  return [...new Set(texts)].filter((text) => !CHANGING.test(text));
}

/** What depends on the clock or on chance. */
const CHANGING = /\{\{\s*[^{}]{0,9}(random|pick|roll|time|date|weekday|idle)/i;

// These run in SillyTavern's page, whose globals aren't known here.
const SELECT = `(async () => {
  const context = SillyTavern.getContext();
  await context.selectCharacterById(context.characters.findIndex(({ name }) => name === "Vole"));
})()`;
const HAS_GREETING = "SillyTavern.getContext().name2 === 'Vole' && SillyTavern.getContext().chat.length === 1";
const EXPAND = `(texts) => texts.map((text) => {
  const context = SillyTavern.getContext();
  context.chatMetadata.variables = {};
  const globals = context.extensionSettings.variables.global;
  for (const name of Object.keys(globals)) delete globals[name];
  return context.substituteParams(text);
})`;

/** Tokens, as in SillyTavern's settings. */
interface Sizes {
  contextTokens: number;
  promptTokens: number;
}

function expandHere(text: string, sizes: Sizes): string {
  const scope = {
    char: "Vole",
    user: "Ann",
    fields: {
      ...{ persona: "{{user}} sails.", description: CARD.description, personality: "", scenario: CARD.scenario },
      ...{ mesexamples: CARD.mes_example, charprompt: CARD.system_prompt, charjailbreak: "", charversion: "1.2" },
      ...{ chardepthprompt: CARD.depth_prompt_prompt, creatornotes: CARD.creator_notes, summary: "" },
    },
    greetings: [CARD.first_mes, "Psst"],
    clock: { nowMs: 0, timeZone: "UTC" },
    random: () => 0,
    chat: {
      ...{ lastMessage: "Hi Ann", lastCharMessage: "Hi Ann", messageCount: 1 },
      ...sizes,
    },
  };
  return new Macros(scope, new MacroBudget()).expand(text, { location: "text" });
}

/** SillyTavern's mark for `{{else}}`, which it forgets to remove from a reversed text. */
const REVERSED_ELSE = "\0\u001fESLE\u001f\0";

/** SillyTavern writes `<USER>` as a macro before anything else, so it's also one in macros that stay as written. */
function toComparable(text: string): string {
  return text.replaceAll("{{user}}", "<USER>").replaceAll(REVERSED_ELSE, "");
}
