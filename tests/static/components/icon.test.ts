import { expect, test } from "vitest";

test("no two icons look the same, except those of chats", async () => {
  const source = await Deno.readTextFile("static/src/components/Icon.tsx");
  const list = source.slice(source.indexOf("const PATHS"), source.indexOf("\n}"));
  const glyphs = [...list.matchAll(/^ {2}(\w+):\s*"([^"]+)"/gm)].map(([, name, path]) => ({
    name: name!,
    path: path!,
  }));
  expect(glyphs.length).toBeGreaterThan(40);
  const shared = Object.values(Object.groupBy(glyphs, ({ path }) => path)).map((all) => all!.map(({ name }) => name));
  // The bubble of a temporary chat is the dashed one.
  expect(shared.filter((names) => names.length > 1)).toEqual([["temporary", "chat"]]);
});
