/**
 * The portraits of a chat's characters: one, or several stacked.
 *
 * Props: `ids` (of the characters), `widthPx` (of the whole; shell.css has a rule for each).
 */
import { useEffect } from "preact/hooks";
import { Icon } from "../../components/Icon.tsx";
import { Portrait } from "../../components/Portrait.tsx";
import { useStore } from "../../state/store.ts";
import type { CharacterItem, Persona } from "../../api/types.ts";
import { characterPath, personaPath } from "../../api/characters.ts";

/** Most portraits in a stack. */
const STACKED = 3;

/** An icon where there is no character. Hidden from screen readers: the names are next to it. */
export function Avatars({ ids, widthPx }: { ids: readonly string[]; widthPx: 24 | 28 | 34 | 40 | 64 }) {
  const { people } = useStore();
  const key = ids.join();
  useEffect(() => people.loadListItems(ids), [key]);
  const shown = ids.slice(0, STACKED).flatMap((id) => people.getListItem(id) ?? []);
  if (shown.length === 0) {
    return (
      <span class="avatars" data-width={widthPx} aria-hidden="true">
        {ids.length === 0 && <Icon name="chat" />}
      </span>
    );
  }
  return (
    <span class="avatars" data-width={widthPx} data-count={shown.length} aria-hidden="true">
      {shown.map((item) => <Portrait key={item.id} {...toPortraitProps(item)} widthPx={widthPx} />)}
    </span>
  );
}

interface PortraitProps {
  name: string;
  path: string | undefined;
  version: string;
}

/** Returns the props of a character's portrait. */
export function toPortraitProps(item: CharacterItem): PortraitProps {
  const path = item.has_avatar ? `${characterPath(item.id)}/avatar` : undefined;
  return { name: item.name, path, version: item.updated_at };
}

/** Returns the props of a persona's portrait; the server has it in one size. */
export function toPersonaPortraitProps(persona: Persona): PortraitProps & { isWhole: true } {
  const path = persona.has_avatar ? `${personaPath(persona.id)}/avatar` : undefined;
  return { name: persona.name, path, version: persona.updated_at, isWhole: true };
}
