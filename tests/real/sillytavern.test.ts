/** Cards exchanged between the real SillyTavern and Parlor, checked with SillyTavern's parser. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { zipSync } from "fflate";
import type { ImportReport } from "../../services/import_export/import_report.ts";
import { chunksOf } from "../helpers/files/cards.ts";
import { type ChildServer, startChildServer } from "../helpers/app/child_server.ts";
import { runParlor } from "../helpers/processes/parlor_command.ts";
import { makeRgbaPng } from "../helpers/files/png_files.ts";
import { realPart } from "./helpers/real_part.ts";
import { type SillyTavern, startSillyTavern } from "./helpers/silly_tavern.ts";

const INSTALLED = realPart("REAL_SILLYTAVERN_DIR", "sillytavern.sh");
/** Time limit for a busy machine. */
const SLOW_MS = 600_000;

/** What SillyTavern says of a card file, without what it makes up from the file's name and times. */
type Read = Record<string, unknown> & { name: string; data: Record<string, unknown> };
const OF_THE_FILE = [
  "avatar",
  "json_data",
  "chat",
  "chat_size",
  "create_date",
  "date_added",
  "date_last_chat",
  "data_size",
];

/** A message in the format of SillyTavern's page. */
function said(name: string, mes: string, more: object = {}) {
  const isUser = name === "Ann";
  return { name, is_user: isUser, is_system: false, send_date: "2025-01-02T03:04:05.678Z", mes, extra: {}, ...more };
}

const CHATS = {
  first: [
    said("Vole", "Two.", { swipes: ["One.", "Two.", "Three."], swipe_id: 1, swipe_info: [{}, {}, {}] }),
    said("Ann", "Grüße, 灯台。"),
    said("Vole", "A long one. ".repeat(2_000)),
  ],
  second: [said("Vole", "Again?"), said("Ann", "Yes.")],
};
const GROUP = [said("Vole", "Who is there?", { original_avatar: "Vole.png" }), said("Ann", "We are.")];

describe.skipIf(INSTALLED === undefined)("with the real SillyTavern", { timeout: SLOW_MS }, () => {
  let tavern: SillyTavern;
  let parlor: ChildServer;
  let dataDir: string;

  beforeAll(async () => {
    tavern = await startSillyTavern(INSTALLED!);
    dataDir = await Deno.makeTempDir({ prefix: "parlor-cards-" });
    parlor = await startChildServer({ dataDir });
  }, SLOW_MS);

  afterAll(async () => {
    await parlor?.[Symbol.asyncDispose]();
    await tavern?.[Symbol.asyncDispose]();
    if (dataDir) await Deno.remove(dataDir, { recursive: true });
  });

  const cardFile = (name: string) => Deno.readFile(`${tavern.userFolder}/characters/${name}`);
  const parse = async (name: string): Promise<Read> => {
    const read = await tavern.call<Read>("/api/characters/get", { avatar_url: name });
    return Object.fromEntries(Object.entries(read).filter(([key]) => !OF_THE_FILE.includes(key))) as Read;
  };

  /** Imports a card into Parlor, gives it another name there, and puts what Parlor exports where SillyTavern reads. */
  async function throughParlor(name: string, newName: string): Promise<{ before: Uint8Array; after: Uint8Array }> {
    const before = await cardFile(name);
    const form = new FormData();
    form.append("file", new Blob([before], { type: "image/png" }), name);
    const imported = await fetch(`${parlor.url}/api/characters/import`, { method: "POST", body: form });
    expect(imported.status).toBe(201);
    const { id, card } = await imported.json();
    await parlor.json("PUT", `/api/characters/${id}`, { ...card, data: { ...card.data, name: newName } });
    const exported = await parlor.request("GET", `/api/characters/${id}/export?format=png`);
    expect(exported.status).toBe(200);
    const after = new Uint8Array(await exported.arrayBuffer());
    await Deno.writeFile(`${tavern.userFolder}/characters/${newName}.png`, after);
    return { before, after };
  }

  async function makeFox(): Promise<string> {
    const book = {
      entries: {
        0: {
          uid: 0,
          key: ["pier", "light"],
          keysecondary: [],
          comment: "The pier",
          content: "It is lit at nine.",
          order: 100,
        },
      },
    };
    await tavern.call("/api/worldinfo/edit", { name: "Harbour", data: book });
    const form = new FormData();
    const picture = makeRgbaPng(400, 600, (x, y) => [x % 256, y % 256, (x * y) % 256, 255]);
    const fields = {
      ch_name: "Fox of the pier",
      description: "{{char}} keeps the light. Grüße, 灯台。",
      personality: "dry",
      scenario: "A harbour at night.",
      first_mes: "Evening, {{user}}.",
      mes_example: "<START>\n{{user}}: Hi\n{{char}}: Mind the rope.",
      creator_notes: "Made for a test of cards.",
      system_prompt: "Stay in the harbour. {{original}}",
      post_history_instructions: "Be brief.",
      tags: "harbour, fox",
      creator: "somebody",
      character_version: "1.2",
      talkativeness: "0.7",
      world: "Harbour",
      depth_prompt_prompt: "It rains.",
      depth_prompt_depth: "3",
      extensions: JSON.stringify({ unknown_tool: { keeps: [1, "two", null] } }),
    };
    for (const [key, value] of Object.entries(fields)) form.append(key, value);
    for (const greeting of ["Psst!", "Ahoy."]) form.append("alternate_greetings", greeting);
    form.append("avatar", new Blob([picture], { type: "image/png" }), "fox.png");
    return await tavern.send("/api/characters/create", form);
  }

  test.each([
    ["a card made in it, with a lorebook and an extension of a stranger", makeFox],
    ["the card that it ships with", () => Promise.resolve("default_Seraphina.png")],
  ])("%s: edited here, it reads the new name and nothing else changed", async (_, make) => {
    const name = await make();
    const newName = `Vixen ${name.slice(0, 3)}`;
    const original = await parse(name);
    const { before, after } = await throughParlor(name, newName);
    const read = await parse(`${newName}.png`);
    // V3 asks for the list of greetings in groups even where it is empty; what is made in SillyTavern may lack it.
    const data = { group_only_greetings: [], ...original.data, name: newName };
    expect(read).toEqual({ ...original, name: newName, data });
    expect(read.data.character_book).toBeDefined();

    const pixels = (png: Uint8Array) =>
      chunksOf(png).filter(({ type }) => type !== "tEXt").map(({ type, bytes }) => [type, Array.from(bytes)]);
    expect(pixels(after)).toEqual(pixels(before));
  });

  /** Creates a character, chats, a group, a persona, a lorebook and a preset in SillyTavern. */
  async function furnish(): Promise<void> {
    const form = new FormData();
    form.append("ch_name", "Vole");
    form.append("first_mes", "One.");
    await tavern.send("/api/characters/create", form);
    const header = {
      user_name: "Ann",
      character_name: "Vole",
      create_date: "2025-1-2 @3h 4m 5s 6ms",
      chat_metadata: {},
    };
    for (const [file_name, chat] of Object.entries(CHATS)) {
      await tavern.call("/api/chats/save", { avatar_url: "Vole.png", file_name, chat: [header, ...chat] });
    }
    const group = { name: "Bank", members: ["Vole.png", "default_Seraphina.png"], chat_id: "bank", chats: ["bank"] };
    await tavern.call("/api/groups/create", group);
    await tavern.call("/api/chats/group/save", { id: "bank", chat: [{ chat_metadata: {} }, ...GROUP] });
    await tavern.call("/api/worldinfo/edit", {
      name: "Meadow",
      data: {
        entries: { 0: { uid: 0, key: ["reed"], keysecondary: [], comment: "", content: "It sways.", order: 100 } },
      },
    });
    await tavern.call("/api/presets/save", { apiId: "openai", name: "Mild", preset: { temperature: 0.25 } });
    // It puts this picture there itself at its first start.
    const power_user = {
      personas: { "user-default.png": "Ann" },
      persona_descriptions: { "user-default.png": { description: "Sails." } },
    };
    // The response is "ok" as JSON.
    await tavern.call("/api/settings/save", { power_user });
  }

  const countIn = async (folder: string, ending: string): Promise<number> => {
    let count = 0;
    for await (const { name, isDirectory } of Deno.readDir(`${tavern.userFolder}/${folder}`)) {
      if (isDirectory) count += await countIn(`${folder}/${name}`, ending);
      else if (name.endsWith(ending)) count++;
    }
    return count;
  };

  /** Returns all texts of a chat, with swipes in order. */
  async function textsOf(server: ChildServer, id: string): Promise<string[][]> {
    const { messages } = await server.json<{ messages: { id: string }[] }>("GET", `/api/conversations/${id}`);
    const texts: string[][] = [];
    for (const message of messages) {
      const variants = await server.json<{ content: string }[]>(
        ...["GET", `/api/conversations/${id}/messages/${message.id}/variants`] as const,
      );
      texts.push(variants.map(({ content }) => content));
    }
    return texts;
  }

  test("a user is imported as a folder by the command and as a zip by upload, with equal counts and texts", async () => {
    await furnish();
    const expected = {
      conversation: await countIn("chats", ".jsonl") + await countIn("group chats", ".jsonl"),
      character: (await Array.fromAsync(Deno.readDir(`${tavern.userFolder}/characters`)))
        .filter(({ name }) => name.endsWith(".png")).length,
      lorebook: await countIn("worlds", ".json"),
      preset: await countIn("OpenAI Settings", ".json") + await countIn("TextGen Settings", ".json"),
      persona: 1,
    };
    const zip = `${dataDir}.zip`;
    const files = await filesBelow(tavern.userFolder);
    await Deno.writeFile(zip, zipSync(files));
    const byCommand = `${dataDir}-command`;
    try {
      const end = await runParlor(["import", "sillytavern", tavern.userFolder, "--data-dir", byCommand]);
      expect(end, end.stdout + end.stderr).toMatchObject({ code: 0 });
      for (const [thing, count] of Object.entries(expected)) {
        expect(end.stdout).toMatch(new RegExp(`${thing} +${count} new\n`));
      }

      const answer = await fetch(`${parlor.url}/api/import?kind=sillytavern`, {
        method: "POST",
        body: await Deno.readFile(zip),
        headers: { "content-type": "application/octet-stream" },
      });
      expect(answer.status).toBe(202);
      const { id } = await answer.json();
      const job = () => parlor.json<{ state: string; detail: ImportReport }>("GET", `/api/jobs/${id}`);
      await expect.poll(async () => (await job()).state, { timeout: SLOW_MS, interval: 200 }).toBe("done");
      const report = (await job()).detail;
      for (const [thing, count] of Object.entries(expected)) {
        expect(report.counts[thing as keyof ImportReport["counts"]], thing).toMatchObject({ added: count, refused: 0 });
      }
      const told = report.lines.filter(({ level }) => level !== "left_out" && level !== "kept");
      // The shipped character's book is linked to a World Info of the same name, and so are those of the tests above.
      expect([...new Set(told.map(({ code }) => code))]).toEqual(["tavern_book_linked"]);

      await using second = await startChildServer({ dataDir: byCommand });
      for (const server of [parlor, second]) {
        const { items } = await server.json<{ items: { id: string; title: string }[] }>(
          ...["GET", "/api/conversations?view=summary"] as const,
        );
        const texts = (title: string) => textsOf(server, items.find((item) => item.title === title)!.id);
        expect(await texts("first")).toEqual(CHATS.first.map(swipesOf));
        expect(await texts("second")).toEqual(CHATS.second.map(swipesOf));
        expect(await texts("Bank")).toEqual(GROUP.map(swipesOf));
      }
    } finally {
      await Deno.remove(zip);
      await Deno.remove(byCommand, { recursive: true });
    }
  });
});

function swipesOf(message: { mes: string; swipes?: string[] }): string[] {
  return message.swipes ?? [message.mes];
}

async function filesBelow(root: string, below = ""): Promise<Record<string, Uint8Array>> {
  const found: Record<string, Uint8Array> = {};
  for await (const { name, isDirectory, isFile } of Deno.readDir(`${root}/${below}`)) {
    if (isDirectory) Object.assign(found, await filesBelow(root, `${below}${name}/`));
    else if (isFile) found[`default-user/${below}${name}`] = await Deno.readFile(`${root}/${below}${name}`);
  }
  return found;
}
