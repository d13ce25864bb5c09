/** The list of characters while several parts of it are read at the same time. */
import { computed, effect } from "@preact/signals";
import { expect, test } from "vitest";
import type { Api } from "../../../../static/src/api/api.ts";
import { Gallery } from "../../../../static/src/state/characters/gallery.ts";

test("the list doesn't get shorter when its end is reached while it is read again", async () => {
  const all = Array.from({ length: 1000 }, (_, n) => ({ id: `c${n}`, name: `Character ${n}`, tags: [] }));
  const held: (() => void)[] = [];
  const api = {
    listCharacterFolders: () => Promise.resolve([]),
    listCharacters: async (_: unknown, limit: number, cursor = "0") => {
      await new Promise<void>((resolve) => held.push(resolve));
      const next = Number(cursor) + limit;
      return { items: all.slice(Number(cursor), next), next_cursor: next < all.length ? String(next) : null };
    },
  } as unknown as Api;
  const gallery = new Gallery(api, { shown: computed(() => []) });
  const counts: number[] = [];
  effect(() => void counts.push(gallery.items.value.length));
  const first = gallery.refresh();
  held.shift()!();
  await first;
  const again = gallery.refresh();
  const more = gallery.more();
  const [letAgainGo, letMoreGo] = held.splice(0);
  letMoreGo?.();
  await more;
  letAgainGo!();
  await again;
  expect(counts).toEqual([0, 120, 120]);
  const next = gallery.more();
  held.shift()!();
  await next;
  expect(counts).toEqual([0, 120, 120, 620]);
});
