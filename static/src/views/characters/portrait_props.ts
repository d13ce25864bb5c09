/** Props of portraits. */
import type { CharacterItem, Persona } from "../../api/types.ts";
import { characterPath, personaPath } from "../../api/characters.ts";

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
