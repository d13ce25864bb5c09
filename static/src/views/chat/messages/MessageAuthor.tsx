/** The author of a message, with portrait. */
import type { Message } from "../../../api/types.ts";
import { useEffect } from "preact/hooks";
import { Portrait } from "../../../components/Portrait.tsx";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { toPersonaPortraitProps, toPortraitProps } from "../../characters/portrait_props.ts";

/** Width of the portrait, in pixels. */
const WIDTH_PX = 28;

/** The character that replies, or the assistant. */
export function ReplyAuthor({ chat, message }: { chat: OpenChat; message: Message }) {
  const { people } = useStore();
  // In a group, the author is not guessed.
  const only = chat.isGroup.value ? undefined : chat.options.value.participants?.[0];
  const id = message.character_id ?? only?.character_id;
  useEffect(() => {
    if (id) people.wantCharacter(id);
  }, [id]);
  const character = people.character(id);
  if (!character) return <h2 class="speaker">{texts.chat.assistant}</h2>;
  return (
    <h2 class="speaker with-portrait">
      <Portrait {...toPortraitProps(character)} widthPx={WIDTH_PX} class="speaker-portrait" />
      {character.name}
    </h2>
  );
}

/** The persona that wrote; without one, only screen readers need the author. */
export function UserAuthor({ message }: { message: Message }) {
  const { people } = useStore();
  const id = message.persona_id;
  useEffect(() => {
    if (id) people.wantPersonas();
  }, [id]);
  const persona = people.persona(id);
  if (!persona) return <h2 class="visually-hidden">{message.role === "user" ? texts.chat.you : message.role}</h2>;
  return (
    <h2 class="speaker with-portrait">
      <Portrait {...toPersonaPortraitProps(persona)} widthPx={WIDTH_PX} class="speaker-portrait" />
      {persona.name}
    </h2>
  );
}
