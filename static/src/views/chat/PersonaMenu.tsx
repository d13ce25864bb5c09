/** Who the owner is from here on; what was said stays with who said it. */
import { useEffect } from "preact/hooks";
import { Menu } from "../../components/overlays/Menu.tsx";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { personaItems } from "./persona_items.ts";

/** Nothing while there are no personas, and in a chat that is not kept. */
export function PersonaMenu({ chat }: { chat: OpenChat }) {
  const store = useStore();
  const { people } = store;
  useEffect(() => people.wantPersonas(), []);
  if (chat.isTemporary || people.shownPersonas.value.length === 0) return null;
  const t = texts.personas;
  const current = chat.personaId.value;
  const name = people.persona(current)?.name;
  const choose = (id: string | null) => chat.speakAs(id).catch((thrown) => store.report(thrown));
  return (
    <Menu
      icon="user"
      label={name === undefined ? t.choose : t.speakingAs(name)}
      items={personaItems(store, current, (id) => void choose(id))}
    />
  );
}
