import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { parseCard } from "../../../../../services/characters/card/card.ts";
import { embedCard, parsePngCard } from "../../../../../services/characters/png/png_card.ts";
import { readImport } from "../../../../../services/import_export/import_reading.ts";
import { Sandbox } from "../../../../../services/platform/sandbox/sandbox.ts";
import { picture } from "../../../../helpers/files/pictures.ts";
import { tempFolder } from "../../../../helpers/files/storage_folder.ts";

const sandbox = new Sandbox();
afterAll(() => sandbox.close());

const cardOf = (name: string, more: object = {}) =>
  embedCard(
    picture(),
    parseCard({ spec: "chara_card_v2", spec_version: "2.0", data: { name, extensions: {}, ...more } }),
  );

/** Reads a user folder with these files. */
async function read(files: Record<string, Uint8Array | object>) {
  await using folder = await tempFolder();
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder.path, "user", name);
    await Deno.mkdir(dirname(path), { recursive: true });
    await Deno.writeFile(
      path,
      content instanceof Uint8Array ? content : new TextEncoder().encode(JSON.stringify(content)),
    );
  }
  const request = {
    kind: "sillytavern",
    path: join(folder.path, "user"),
    scratch: join(folder.path, "scratch"),
  } as const;
  const steps = await Array.fromAsync(readImport(sandbox, request));
  const cards = steps.flatMap((step) =>
    step.what === "character" ? [[step.name, parsePngCard(step.file as Uint8Array<ArrayBuffer>).data] as const] : []
  );
  return { steps, cards: Object.fromEntries(cards), codes: steps.flatMap((step) => "code" in step ? [step.code] : []) };
}

test("the author's note of a character becomes its character's note, unless it's off", async () => {
  const chara = [
    { name: "Mia", prompt: "Mia is tired.", useChara: true, depth: 2, role: 1 },
    { name: "Bo", prompt: "Second.", useChara: true },
    { name: "Cy", prompt: "Unused.", useChara: false },
  ];
  const { cards, codes } = await read({
    "settings.json": { extension_settings: { note: { chara } } },
    "characters/Mia.png": cardOf("Mia"),
    "characters/Bo.png": cardOf("Bo", { extensions: { depth_prompt: { prompt: "First.", depth: 7, role: "system" } } }),
    "characters/Cy.png": cardOf("Cy"),
  });
  expect(cards.Mia!.extensions.depth_prompt).toEqual({ prompt: "Mia is tired.", depth: 2, role: "user" });
  expect(cards.Bo!.extensions.depth_prompt).toEqual({ prompt: "First.\nSecond.", depth: 7, role: "system" });
  expect(cards.Cy!.extensions.depth_prompt).toBeUndefined();
  expect(codes).toEqual(["tavern_note_off"]);
});

test("further books of a character belong to it, and the linked book replaces the one in the card", async () => {
  const book = { entries: [{ keys: ["mill"], content: "Stale", extensions: {}, enabled: true, insertion_order: 1 }] };
  const world = { entries: { 0: { uid: 0, key: ["mill"], content: "Fresh" } } };
  const { steps, cards, codes } = await read({
    "settings.json": {
      world_info_settings: {
        world_info: { charLore: [{ name: "Mia", extraBooks: ["Extra"] }, { name: "Gone", extraBooks: ["Other"] }] },
      },
    },
    "worlds/Extra.json": world,
    "worlds/Linked.json": world,
    "worlds/Other.json": world,
    "characters/Mia.png": cardOf("Mia", { character_book: book, extensions: { world: "Linked" } }),
    "characters/Bo.png": cardOf("Bo", { character_book: book, extensions: { world: "Missing" } }),
  });
  const [mia] = steps.filter((step) => step.what === "character" && step.name === "Mia");
  const books = steps.flatMap((step) => step.what === "lorebook" ? [[step.name, step.scope, step.characterIds]] : []);
  expect(books).toEqual([
    ["Extra", "character", [(mia as { id: string }).id]],
    ["Linked", "chat", undefined],
    ["Other", "chat", undefined],
  ]);
  expect([cards.Mia!.character_book, cards.Bo!.character_book?.entries.length]).toEqual([undefined, 1]);
  expect(codes).toEqual(["tavern_book_linked"]);
});
