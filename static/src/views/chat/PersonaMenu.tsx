/** Selects the user's persona from here on; earlier messages keep theirs. */
import { useEffect } from "preact/hooks";
import { Menu, type MenuItem } from "../../components/overlays/Menu.tsx";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { type Store, useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Renders nothing without personas and in temporary chats. */
export function PersonaMenu({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const { people } = store;
  useEffect(() => people.loadPersonas(), []);
  if (chat.isTemporary || people.shownPersonas.value.length === 0) return null;
  const t = texts.personas;
  const current = chat.personaId.value;
  const name = people.persona(current)?.name;
  const choose = (id: string | null) => chat.speakAs(id).catch((thrown) => store.report(thrown));
  return (
    <Menu
      icon="user"
      label={name === undefined ? t.choose : t.speakingAs(name)}
      items={listPersonaItems(store, current, (id) => void choose(id))}
    />
  );
}

/**
 * Returns an item for every persona, one for none, and a link to their page. @param choose Called with null for none.
 */
export function listPersonaItems(
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
