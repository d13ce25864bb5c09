/** What a menu of personas offers. */
import type { MenuItem } from "../../components/overlays/Menu.tsx";
import type { Store } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Gives a row for every persona, one for none of them, and the way to their page. @param choose Told null for none. */
export function personaItems(
  { people }: Store,
  currentId: string | null | undefined,
  choose: (id: string | null) => void,
): (MenuItem | "line")[] {
  const t = texts.personas;
  return [
    ...people.shownPersonas.value.map(({ id, name }) => ({
      label: name,
      isChecked: id === currentId,
      onSelect: () => choose(id),
    })),
    { label: t.none, isChecked: people.persona(currentId) === undefined, onSelect: () => choose(null) },
    "line",
    { label: t.manage, href: "/settings/personas" },
  ];
}
