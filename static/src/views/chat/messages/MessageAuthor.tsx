/** The author of a message, with portrait. */
import type { Message } from "../../../api/types.ts";
import { useEffect, useState } from "preact/hooks";
import { lazy } from "../../../components/Lazy.tsx";
import { Portrait } from "../../../components/Portrait.tsx";
import { PORTRAIT_PX } from "../../../state/app/device.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import { useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { toPersonaPortraitProps, toPortraitProps } from "../../characters/Avatars.tsx";

const CharacterStory = lazy(
  () => import("../../characters/CharacterStory.tsx").then((file) => file.CharacterStory),
  { as: "overlay" },
);

/** The character that replies, or the assistant. */
export function ReplyAuthor({ chat, message }: { chat: OpenChat; message: Message }) {
  const { people, device } = useStore();
  // In a group, the author is not guessed.
  const only = chat.isGroup.value ? undefined : chat.options.value.participants?.[0];
  const id = message.character_id ?? only?.character_id;
  useEffect(() => {
    if (id) people.loadCharacter(id);
  }, [id]);
  const character = people.character(id);
  const [isStory, setStory] = useState(false);
  if (!character) return <h2 class="speaker">{texts.chat.assistant}</h2>;
  return (
    <div class="speaker with-portrait">
      <button
        type="button"
        class="face-button"
        aria-haspopup="dialog"
        aria-label={texts.chat.showCharacter(character.name)}
        onClick={() => setStory(true)}
      >
        <Portrait
          {...toPortraitProps(character)}
          widthPx={PORTRAIT_PX[device.look.value.portrait_size]}
          class="speaker-portrait"
        />
      </button>
      <h2>{character.name}</h2>
      {isStory && <CharacterStory ids={[character.id]} onClose={() => setStory(false)} />}
    </div>
  );
}

/** The persona that wrote; without one, only screen readers need the author. */
export function UserAuthor({ message }: { message: Message }) {
  const { people, device } = useStore();
  const id = message.persona_id;
  useEffect(() => {
    if (id) people.loadPersonas();
  }, [id]);
  const persona = people.persona(id);
  if (!persona) return <h2 class="visually-hidden">{message.role === "user" ? texts.chat.you : message.role}</h2>;
  return (
    <h2 class="speaker with-portrait">
      <Portrait
        {...toPersonaPortraitProps(persona)}
        widthPx={PORTRAIT_PX[device.look.value.portrait_size]}
        class="speaker-portrait"
      />
      {persona.name}
    </h2>
  );
}
