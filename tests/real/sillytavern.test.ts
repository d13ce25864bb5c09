/** Cards between the real SillyTavern and Parlor: its own parser judges what comes back. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chunksOf } from "../helpers/cards.ts";
import { type ChildServer, startChildServer } from "../helpers/child_server.ts";
import { makeRgbaPng } from "../helpers/png_files.ts";
import { realPart } from "./helpers/real_part.ts";
import { type SillyTavern, startSillyTavern } from "./helpers/silly_tavern.ts";

const INSTALLED = realPart("REAL_SILLYTAVERN_DIR", "sillytavern.sh");
/** Room for a machine that is busy with something else. */
const SLOW_MS = 180_000;

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
});
