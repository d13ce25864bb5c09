/** Word of cards that came in. */
import type { Character } from "../../api/types.ts";
import type { Store } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Says how many came in; a single one can be opened. */
export function tellImported(store: Store, cards: readonly Character[]): void {
  const t = texts.characters;
  const [only] = cards;
  if (!only) return;
  const open = { label: t.open, run: () => store.router.go(`/characters/${encodeURIComponent(only.id)}`) };
  store.toasts.show(t.imported(cards.length), cards.length === 1 ? { action: open } : {});
}
