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
import { openTavernPage, writeTavernSettings } from "./helpers/tavern_page.ts";
import { makeTavernCase, type TavernCase } from "./helpers/tavern_cases.ts";

const INSTALLED = realPart("REAL_SILLYTAVERN_DIR", "sillytavern.sh");
/** Time limit for a busy machine. */
const SLOW_MS = 600_000;
const COUNT = Deno.env.has("LONG_TESTS") ? 200 : 20;
const FIRST = Number(Deno.env.get("TAVERN_FIRST") ?? 0);

interface Sent {
  role: string;
  content: string;
  name?: string;
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

  beforeAll(async () => {
    llm = await openFakeLlm({ personality: "llama.cpp" });
    llm.contextSize = 8192;
    tavern = await startSillyTavern(INSTALLED!);
    for (const one of cases) await furnish(tavern, one);
    await writeTavernSettings(tavern, llm.url);
    app = await openTestApp();
    await useModel(app, llm);
    const zip = zipSync(await readFolder(tavern.userFolder, "default-user/"));
    await importReport(app, "kind=sillytavern", zip);
    browser = await openBrowser();
    page = await openTavernPage(tavern, browser);
    await page.evaluate(CONNECT);
  }, SLOW_MS);

  afterAll(async () => {
    await browser?.close();
    await app?.[Symbol.asyncDispose]();
    await tavern?.[Symbol.asyncDispose]();
    await llm?.close();
  });

  async function askTavern({ name, preset, message }: TavernCase): Promise<Sent[]> {
    const before = llm.chats.length;
    await page.evaluate(`(${ASK})(${JSON.stringify({ name, preset, message })})`);
    expect(llm.chats.length, `SillyTavern sent one request for ${name}`).toBe(before + 1);
    return llm.chats.at(-1)!.json!.messages as Sent[];
  }

  async function askParlor({ name, message }: TavernCase): Promise<Sent[]> {
    const list = async (path: string) => (await (await app.get(path)).json()) as { id: string; name: string }[];
    const presets = await list("/api/presets");
    const { items } = await (await app.get("/api/conversations?view=summary")).json();
    const { id } = items.find(({ title }: { title: string }) => title === `Chat with ${name}`);
    const preset_id = presets.find((preset) => preset.name === `Preset of ${name}`)!.id;
    await (await app.patch(`/api/conversations/${id}`, { preset_id })).body?.cancel();
    const before = llm.chats.length;
    await gather(
      await app.post("/api/chat", {
        conversation_id: id,
        context: "server",
        messages: [{ role: "user", content: message }],
      }),
    );
    return llm.chats[before]!.json!.messages as Sent[];
  }

  test.each(cases.map((one) => [one.name, one] as const))("%s: both send the same", async (_, one) => {
    const theirs = await askTavern(one);
    const ours = await askParlor(one);
    expect(toComparable(ours, one.name)).toEqual(toComparable(theirs, one.name));
  });
});

async function furnish(tavern: SillyTavern, { name, card, world, preset, metadata, messages }: TavernCase) {
  await tavern.call("/api/worldinfo/edit", { name: `World of ${name}`, data: world });
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
    chat_metadata: { ...metadata, persona: "user-default.png" },
  };
  const chat = [line(false, card.first_mes!), ...messages.map((mes, n) => line(n % 2 === 0, mes))];
  await tavern.call("/api/chats/save", { avatar_url, file_name: `Chat with ${name}`, chat: [header, ...chat] });
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
 */
function toComparable(messages: readonly Sent[], character: string): Sent[] {
  const found: Sent[] = [];
  for (const { role, content, name } of messages) {
    const speaker = name === "example_user" ? "Ann: " : name === "example_assistant" ? `${character}: ` : "";
    const text = `${speaker}${content}`.replace(/\s*\n\s*/g, "\n").trim();
    const last = found.at(-1);
    if (last?.role === role) last.content += `\n${text}`;
    else if (text !== "") found.push({ role, content: text });
  }
  return found;
}

// These run in SillyTavern's page, whose globals aren't known here.
const CONNECT = `(async () => {
  const { setOnlineStatus } = await import("/script.js");
  setOnlineStatus("Valid");
})()`;
const ASK = `async ({ name, preset, message }) => {
  const context = SillyTavern.getContext();
  const script = await import("/script.js");
  const { oai_settings } = await import("/scripts/openai.js");
  Object.assign(oai_settings, structuredClone(preset));
  await context.selectCharacterById(context.characters.findIndex((one) => one.name === name));
  await context.openCharacterChat("Chat with " + name);
  document.querySelector("#send_textarea").value = message;
  await script.Generate("normal");
}`;
