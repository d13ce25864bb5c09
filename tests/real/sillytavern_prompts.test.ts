/**
 * The same user folder in the real SillyTavern's page and in Parlor, by its own import: what reaches the model.
 *
 * @slow Starts SillyTavern and its page.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { zipSync } from "fflate";
import type { Browser, Page } from "playwright-core";
import { gather, useModel } from "../helpers/app/chat_client.ts";
import { importReport } from "../helpers/app/imported.ts";
import { openTestApp, type TestApp } from "../helpers/app/test_app.ts";
import { openBrowser } from "../helpers/browser/browser.ts";
import { type FakeLlm, openFakeLlm } from "../helpers/fakes/llm/fake_llm.ts";
import { Random } from "../fuzz/random.ts";
import { realPart } from "./helpers/real_part.ts";
import { type SillyTavern, startSillyTavern } from "./helpers/silly_tavern.ts";
import { openTavernPage, type TavernSettings, writeTavernSettings } from "./helpers/tavern_page.ts";
import {
  BIASES,
  listOmissions,
  makeTavernCase,
  PERSONAS,
  renameCase,
  TAGS,
  type TavernCase,
} from "./helpers/tavern_cases.ts";

const INSTALLED = realPart("REAL_SILLYTAVERN_DIR", "sillytavern.sh");
/** Time limit for a busy machine. */
const SLOW_MS = 600_000;
const LONG = Deno.env.has("LONG_TESTS");
const COUNT = Number(Deno.env.get("TAVERN_COUNT") ?? (LONG ? 200 : 20));
/** Time after which no further part of a difference is left out: enough of the limit is left to show what it is. */
const SHRINK_MS = 300_000;
/** Number of the first case, for a run of some of them. */
const FIRST = Number(Deno.env.get("TAVERN_FIRST") ?? 0);

/** Time limit of SillyTavern for one case on a busy machine. */
const ANSWER_MS = 120_000;

/** Files of all cases. */
const SHARED = /^default-user\/(settings\.json|User Avatars\/.*|groups\/.*)$/;

/** World Info that is switched on for all chats in settings.json. No random case has its keyword. */
const SELECTED = "Selected World";
const HERON = {
  ...{ uid: 0, key: ["heron"], keysecondary: [], comment: "heron", content: "Herons are holy here.", position: 0 },
  ...{ constant: false, selective: true, selectiveLogic: 0, disable: false, order: 100, depth: 4, probability: 100 },
  useProbability: true,
};

interface Sent {
  role: string;
  content: string;
  name?: string;
}

/** A request to the model server. */
type Asked = Record<string, unknown>;

/** What is compared of a request. */
interface Compared {
  messages: Sent[];
  /** Bias by token ID. */
  bias: Record<string, number>;
}

/** A case with what was sent for each of its messages. */
interface Difference {
  one: TavernCase;
  ours: Compared[];
  theirs: Compared[];
}

describe.skipIf(INSTALLED === undefined)("with the page of the real SillyTavern", { timeout: SLOW_MS }, () => {
  const cases = Array.from({ length: COUNT }, (_, n) => {
    const number = FIRST + n;
    return makeTavernCase(new Random(`prompts ${number}`), `Fox ${number}`);
  });
  let tavern: SillyTavern;
  let browser: Browser;
  let page: Page;
  let llm: FakeLlm;
  let app: TestApp;
  let shipped: TavernCase;
  /** Shrinking takes minutes, so only the first difference is made smaller. */
  let hasShrunk = false;
  const settings: Required<TavernSettings> = {
    personas: structuredClone(PERSONAS),
    ...{ charLore: [], globalSelect: [SELECTED], tags: TAGS, tag_map: {}, notes: [], biases: BIASES },
  };

  beforeAll(async () => {
    llm = await openFakeLlm({ personality: "llama.cpp" });
    llm.contextSize = 8192;
    // SillyTavern would keep the start that llama.cpp repeats.
    llm.personality = { ...llm.personality, repeatsPrefill: false };
    tavern = await startSillyTavern(INSTALLED!);
    const portrait = `${tavern.userFolder}/User Avatars/user-default.png`;
    for (const file of Object.keys(PERSONAS)) {
      await Deno.copyFile(portrait, `${tavern.userFolder}/User Avatars/${file}`);
    }
    app = await openTestApp();
    await useModel(app, llm);
    browser = await openBrowser();
    shipped = await furnishShipped(tavern, llm.url);
    await tavern.call("/api/worldinfo/edit", { name: SELECTED, data: { entries: { 0: HERON } } });
    await bring([...cases, shipped], cases);
  }, SLOW_MS);

  afterAll(async () => {
    await browser?.close();
    await app?.[Symbol.asyncDispose]();
    await tavern?.[Symbol.asyncDispose]();
    await llm?.close();
  });

  /**
   * Brings cases into both: into SillyTavern's folder, and by an import into Parlor.
   *
   * @param unfurnished Those that aren't in the folder yet.
   */
  async function bring(added: readonly TavernCase[], unfurnished = added): Promise<void> {
    await page?.close(); // It would save its own settings.
    for (const one of unfurnished) await furnish(tavern, one, settings);
    await writeTavernSettings(tavern, llm.url, settings);
    const files = Object.entries(await readFolder(tavern.userFolder, "default-user/")).filter(([path]) =>
      added.includes(shipped) || added.some(({ name }) => path.includes(name)) || SHARED.test(path)
    );
    const zip = zipSync(Object.fromEntries(files));
    await importReport(app, "kind=sillytavern", zip);
    page = await openTavernPage(tavern, browser);
    await page.evaluate(CONNECT);
  }

  async function ask(one: TavernCase): Promise<{ ours: Compared[]; theirs: Compared[] }> {
    const theirs = await askTavern(one);
    const ours = await askParlor(one);
    const isPrefill = (n: number) => n === one.turns.length && one.preset.continue_prefill === true;
    const compare = (all: Asked[]) => all.map((sent, n) => toComparable(sent, one, isPrefill(n)));
    return { ours: compare(ours), theirs: compare(theirs) };
  }

  /** Asks for one case after another until `most` of them differ, or it's late. */
  async function findDifferent(tried: readonly TavernCase[], untilMs: number, most = Infinity): Promise<Difference[]> {
    await bring(tried);
    const found: Difference[] = [];
    for (const one of tried) {
      if (found.length === most || Date.now() > untilMs) break;
      const sent = await ask(one);
      if (JSON.stringify(sent.ours) !== JSON.stringify(sent.theirs)) found.push({ one, ...sent });
    }
    return found;
  }

  /** Leaves out parts of a case as long as what is sent still differs. Each try is a new character. */
  async function shrink(different: Difference): Promise<Difference> {
    const untilMs = Date.now() + SHRINK_MS;
    let smallest = different;
    let tries = 0;
    const nameTry = (one: TavernCase) => renameCase(one, `${different.one.name} try ${++tries}`);
    while (Date.now() < untilMs) {
      const { one } = smallest;
      const parts = listOmissions(one).map((omit) => ({ omit, tried: nameTry(omit(one)) }));
      const found = await findDifferent(parts.map(({ tried }) => tried), untilMs);
      const needless = parts.filter(({ tried }) => found.some((other) => other.one === tried));
      if (needless.length === 0) break;
      smallest = found[0]!;
      if (Date.now() > untilMs) break;
      // Of two parts, one may be needed. Leaving out just the first is what was tried.
      const without = needless.slice(1).map((_, n) =>
        nameTry(needless.slice(0, needless.length - n).reduce((rest, { omit }) => omit(rest), one))
      );
      const [fewer] = without.length === 0 ? [] : await findDifferent(without, untilMs, 1);
      smallest = fewer ?? smallest;
    }
    return smallest;
  }

  async function askTavern(one: TavernCase): Promise<Asked[]> {
    const { name, preset, turns, settings, isGroup, isContinued } = one;
    const before = llm.chats.length;
    const count = 1 + one.messages.length;
    const books = one.everywhere ? [`All of ${name}`] : [];
    const asked = { name, preset, turns, settings, isGroup, isContinued, count, books };
    await page.evaluate(`(${ASK})(${JSON.stringify(asked)})`);
    expect(llm.chats.length, `SillyTavern sent a request for each message to ${name}`).toBe(
      before + turns.length + Number(isContinued),
    );
    return llm.chats.slice(before).map(({ json }) => json!);
  }

  async function findChat(title: string): Promise<string> {
    for (let cursor: string | null = ""; cursor !== null;) {
      const query: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const page: { items: { id: string; title: string }[]; next_cursor: string | null } =
        await (await app.get(`/api/conversations?view=summary&limit=100${query}`)).json();
      const found = page.items.find((chat) => chat.title === title);
      if (found !== undefined) return found.id;
      cursor = page.next_cursor;
    }
    throw new Error(`There is no chat "${title}"`);
  }

  async function askParlor({ name, turns, settings, isGroup, isContinued, everywhere }: TavernCase): Promise<Asked[]> {
    const list = async (path: string) => (await (await app.get(path)).json()) as { id: string; name: string }[];
    const presets = await list("/api/presets");
    const title = isGroup ? `Group of ${name}` : `Chat with ${name}`;
    const id = await findChat(title);
    const preset_id = presets.find((preset) => preset.name === `Preset of ${name}`)!.id;
    await (await app.patch(`/api/conversations/${id}`, { preset_id })).body?.cancel();
    const { participants } = await (await app.get(`/api/conversations/${id}`)).json();
    const { character_id } = participants[0];
    const changed = await app.patch("/api/settings", toParlorSettings(settings));
    expect([changed.status, await changed.text()]).toEqual([200, expect.any(String)]);
    const books = everywhere === undefined ? [] : await list("/api/lorebooks");
    const shared = books.filter((book) => book.name === `All of ${name}`);
    for (const book of shared) await setScope(book.id, "global");
    const sent: Asked[] = [];
    const request = { conversation_id: id, context: "server" };
    const asked: Record<string, unknown>[] = turns.map((content) => ({
      ...{ assistant_message_id: crypto.randomUUID(), messages: [{ role: "user", content }] },
      ...(isGroup && { character_id }),
    }));
    const { assistant_message_id } = asked.at(-1)!;
    if (isContinued) asked.push({ assistant_message_id, action: "continue", messages: [] });
    for (const one of asked) {
      const before = llm.chats.length;
      const response = await app.post("/api/chat", { ...request, ...one });
      expect(response.status, `Parlor's status for ${name}`).toBe(200);
      await gather(response);
      sent.push(llm.chats[before]!.json!);
    }
    for (const book of shared) await setScope(book.id, "chat");
    return sent;
  }

  /** Says whether a lorebook is for all chats, as SillyTavern does with a selection. */
  async function setScope(id: string, scope: string): Promise<void> {
    const { name, book } = await (await app.get(`/api/lorebooks/${id}`)).json();
    await (await app.put(`/api/lorebooks/${id}`, { name, book, scope })).body?.cancel();
  }

  test("both send the same for the character, the World Info and the preset that SillyTavern ships", async () => {
    const { ours, theirs } = await ask(shipped);
    const texts = theirs.map(({ messages }) => messages.map(({ content }) => content).join("\n"));
    expect(texts[1]).toContain("Shadowfang");
    // From World Info that is selected in settings.json.
    expect(texts.map((text) => text.includes(HERON.content))).toEqual([false, false, true]);
    expect(ours).toEqual(theirs);
  });

  test.each(cases.map((one) => [one.name, one] as const))("%s: both send the same", async (_, one) => {
    const { ours, theirs } = await ask(one);
    if (JSON.stringify(ours) === JSON.stringify(theirs)) return;
    const isShrunk = LONG && !hasShrunk;
    hasShrunk ||= isShrunk;
    const smallest = isShrunk ? await shrink({ one, ours, theirs }) : { one, ours, theirs };
    expect(smallest.ours, JSON.stringify(smallest.one)).toEqual(smallest.theirs);
  });
});

async function furnish(tavern: SillyTavern, one: TavernCase, settings: Required<TavernSettings>): Promise<void> {
  const { name, card, world, preset, metadata, messages, persona, further, isGroup } = one;
  await tavern.call("/api/worldinfo/edit", { name: `World of ${name}`, data: world });
  if (further) await tavern.call("/api/worldinfo/edit", { name: `More of ${name}`, data: further.world });
  const form = new FormData();
  for (const [key, value] of Object.entries(card)) form.append(key, value);
  const avatar_url = await tavern.send("/api/characters/create", form);
  await tavern.call("/api/presets/save", { apiId: "openai", name: `Preset of ${name}`, preset });
  const line = (isUser: boolean, mes: string) => ({
    ...{ name: isUser ? "Ann" : name, is_user: isUser, is_system: false, send_date: "2025-01-02T03:04:05.678Z", mes },
    extra: {},
  });
  const header = {
    ...{ user_name: "Ann", character_name: name, create_date: "2025-1-2 @3h 4m 5s 6ms" },
    chat_metadata: {
      ...metadata,
      ...(persona.boundTo === "chat" && { persona: persona.file }),
      ...(further?.place === "chat" && { world_info: `More of ${name}` }),
    },
  };
  const chat = [line(false, card.first_mes!), ...messages.map((mes, n) => line(n % 2 === 0, mes))];
  settings.tag_map[avatar_url] = ["tag-red"];
  if (further?.place === "charLore") {
    settings.charLore.push({ name: avatar_url.replace(/\.png$/, ""), extraBooks: [`More of ${name}`] });
  }
  if (one.everywhere) await tavern.call("/api/worldinfo/edit", { name: `All of ${name}`, data: one.everywhere });
  if (one.characterNote) settings.notes.push({ name: avatar_url.replace(/\.png$/, ""), ...one.characterNote });
  if (persona.boundTo === "character") {
    const { description } = settings.personas[persona.file]!;
    description.connections = [...(description.connections as [] ?? []), { type: "character", id: avatar_url }];
  }
  if (!isGroup) {
    await tavern.call("/api/chats/save", { avatar_url, file_name: `Chat with ${name}`, chat: [header, ...chat] });
    return;
  }
  const second = new FormData();
  for (const [key, value] of Object.entries({ ...OWL, ch_name: `Owl of ${name}` })) second.append(key, value);
  const members = [avatar_url, await tavern.send("/api/characters/create", second)];
  const id = `group-${name}`;
  await tavern.call("/api/groups/create", { name: `Group of ${name}`, members, chat_id: id, chats: [id] });
  const lines = chat.map((line) => ({ ...line, ...(!line.is_user && { original_avatar: avatar_url }) }));
  await tavern.call("/api/chats/group/save", { id, chat: [header, ...lines] });
}

/** Makes a chat with the shipped character, and a case of it. @param url Base URL of the model server. */
async function furnishShipped(tavern: SillyTavern, url: string): Promise<TavernCase> {
  const name = "Seraphina";
  const text = await Deno.readTextFile(`${tavern.userFolder}/OpenAI Settings/Default.json`);
  const preset: Record<string, unknown> = {
    ...JSON.parse(text),
    ...{ chat_completion_source: "custom", custom_url: url, custom_model: "fake-model", stream_openai: false },
  };
  await tavern.call("/api/presets/save", { apiId: "openai", name: `Preset of ${name}`, preset });
  const shown = await tavern.call<{ first_mes: string }>("/api/characters/get", { avatar_url: SHIPPED_CARD });
  const header = { user_name: "Ann", character_name: name, create_date: "2025-1-2 @3h 4m 5s 6ms", chat_metadata: {} };
  const greeting = {
    ...{ name, is_user: false, is_system: false, send_date: "2025-01-02T03:04:05.678Z", mes: shown.first_mes },
    extra: {},
  };
  await tavern.call("/api/chats/save", {
    ...{ avatar_url: SHIPPED_CARD, file_name: `Chat with ${name}`, chat: [header, greeting] },
  });
  return {
    ...{ name, card: {}, world: { entries: {} }, preset, metadata: {}, messages: [], isGroup: false },
    isContinued: false,
    turns: ["Where is this forest?", "What are those beasts, and is there magic?", "Is that a heron?"],
    persona: { file: "user-default.png", boundTo: "default" },
    settings: {
      ...{ world_info_min_activations: 0, world_info_min_activations_depth_max: 0 },
      ...{ world_info_max_recursion_steps: 0, world_info_include_names: true },
      world_info_character_strategy: 1,
    },
  };
}

/** The card that SillyTavern ships. */
const SHIPPED_CARD = "default_Seraphina.png";

/** The second character of groups. It never speaks by itself. */
const OWL = { description: "An owl.", first_mes: "Hoo.", talkativeness: "0" };

function toParlorSettings(settings: TavernCase["settings"]): Record<string, unknown> {
  const steps = settings.world_info_max_recursion_steps as number;
  return {
    lore_min_activations: settings.world_info_min_activations,
    lore_min_activations_depth: settings.world_info_min_activations_depth_max || null,
    lore_max_recursion: steps > 0 ? steps - 1 : null,
    lore_scans_names: settings.world_info_include_names,
    lore_order: ["evenly", "character_first", "global_first"][settings.world_info_character_strategy as number],
  };
}

async function readFolder(root: string, prefix: string): Promise<Record<string, Uint8Array>> {
  const found: Record<string, Uint8Array> = {};
  for await (const { name, isDirectory, isFile } of Deno.readDir(root)) {
    if (isDirectory) Object.assign(found, await readFolder(`${root}/${name}`, `${prefix}${name}/`));
    else if (isFile) found[`${prefix}${name}`] = await Deno.readFile(`${root}/${name}`);
  }
  return found;
}

/**
 * What may differ (docs/guide/sillytavern.md): boundaries between messages of one role, blank lines, and the form of
 * example dialogues, which Parlor sends as a text with names.
 *
 * @param isPrefill Whether the last message is the start of the reply, which has no name in Parlor.
 */
function toComparable(asked: Asked, { name: character, persona, isGroup }: TavernCase, isPrefill: boolean): Compared {
  const found: Sent[] = [];
  const user = PERSONAS[persona.file]?.name ?? "Ann";
  const messages = asked.messages as Sent[];
  for (const [n, { role, content, name }] of messages.entries()) {
    const isExample = name === "example_user" || name === "example_assistant";
    // In groups, the text has the names.
    const speaker = !isExample || isGroup ? "" : name === "example_user" ? `${user}: ` : `${character}: `;
    const isStart = isPrefill && n === messages.length - 1 && content.startsWith(`${character}: `);
    const said = isStart ? content.slice(character.length + 2) : content;
    const text = `${speaker}${said}`.replace(/\s*\n\s*/g, "\n").trim();
    const last = found.at(-1);
    const field = isExample ? undefined : name;
    if (last?.role === role && last.name === field) last.content += `\n${text}`;
    else if (text !== "") found.push({ role, content: text, ...(field && { name: field }) });
  }
  const bias = asked.logit_bias ?? {};
  return { messages: found, bias: Array.isArray(bias) ? Object.fromEntries(bias) : bias as Record<string, number> };
}

// These run in SillyTavern's page, whose globals aren't known here.
const CONNECT = `(async () => {
  const { setOnlineStatus } = await import("/script.js");
  setOnlineStatus("Valid");
})()`;
/** The page ignores what comes while it saves or generates, and goes on loading after its functions have returned. */
const ASK = `async ({ name, preset, turns, settings, isGroup, isContinued, count, books }) => {
  const context = SillyTavern.getContext();
  const script = await import("/script.js");
  const groups = await import("/scripts/group-chats.js");
  const { oai_settings } = await import("/scripts/openai.js");
  const worldInfo = await import("/scripts/world-info.js");
  const end = Date.now() + ${ANSWER_MS};
  const until = async (isTrue) => {
    while (!isTrue()) {
      if (Date.now() > end) throw new Error("SillyTavern still waits for: " + isTrue);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const isIdle = () => !script.isChatSaving && !script.is_send_press && !groups.is_group_generating;
  Object.assign(oai_settings, structuredClone(preset));
  $("#openai_logit_bias_preset").val(preset.bias_preset_selected ?? "No bias").trigger("change");
  window.selectedBooks ??= [...worldInfo.selected_world_info];
  worldInfo.updateWorldInfoSettings({ ...settings }, [...window.selectedBooks, ...books]);
  await until(isIdle);
  if (isGroup) {
    await groups.openGroupById(context.groups.find((one) => one.name === "Group of " + name).id);
  } else {
    const id = context.characters.findIndex((one) => one.name === name);
    await context.selectCharacterById(id);
    await until(() => isIdle() && String(script.this_chid) === String(id));
    await context.openCharacterChat("Chat with " + name);
    await until(() => script.name2 === name && context.characters[id].chat === "Chat with " + name);
  }
  await until(() => isIdle() && script.chat.length === count && script.chat[0].name === name);
  // A scan for keywords reads the persona at a depth of the prompt before.
  await script.Generate("normal", {}, true);
  for (const turn of turns) {
    document.querySelector("#send_textarea").value = turn;
    await script.Generate("normal");
    await until(isIdle);
  }
  if (isContinued) {
    await script.Generate("continue");
    await until(isIdle);
  }
}`;
