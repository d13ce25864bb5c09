/** A link to a chat by its name. */
import { useEffect } from "preact/hooks";
import { Icon } from "../../components/Icon.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { nameChat } from "../shell/chat_name.ts";

/** The link. @param props.title Shown if the chat isn't in the list of chats. */
export function ChatLink({ id, title = "", messageId }: { id: string; title?: string; messageId?: string }) {
  const { chats, people } = useStore();
  const item = chats.items.value.find((chat) => chat.id === id);
  const characters = item?.character_ids ?? [];
  useEffect(() => people.loadListItems(characters), [characters.join()]);
  const name = item ? nameChat(people, item).full : title || texts.nav.untitled;
  return (
    <a
      class="library-chat"
      title={name}
      href={`/c/${encodeURIComponent(id)}${messageId ? `#${encodeURIComponent(messageId)}` : ""}`}
    >
      <Icon name="chat" />
      <span>{name}</span>
    </a>
  );
}
