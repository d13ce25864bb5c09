/** One character among many: portrait and name. */
import type { CharacterItem } from "../../api/types.ts";
import { memo } from "../../components/memo.ts";
import { Portrait } from "../../components/Portrait.tsx";
import { portraitOf } from "./portrait_props.ts";

/** Wide enough for the widest card of the grid, in pixels. */
const WIDTH_PX = 192;

/** A link to the character's page. */
export const CharacterTile = memo(({ item, tabIndex }: { item: CharacterItem; tabIndex: number }) => (
  <a class="tile" href={`/characters/${encodeURIComponent(item.id)}`} tabIndex={tabIndex} title={item.name}>
    <Portrait {...portraitOf(item)} widthPx={WIDTH_PX} class="tile-portrait" />
    <span class="tile-name">{item.name}</span>
  </a>
));
