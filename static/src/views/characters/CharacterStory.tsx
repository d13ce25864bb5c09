/** A character's picture, large, with the story of its card. */
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { Character } from "../../api/types.ts";
import { LinkButton } from "../../components/Button.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { Markdown } from "../../components/content/Markdown.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { Portrait } from "../../components/Portrait.tsx";
import { getCreatorNotes, insertNames } from "../../state/characters/card_fields.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { toPortraitProps } from "./Avatars.tsx";

/** Layout width of the picture, in px. */
const WIDTH_PX = 420;

/** Shows one character, or those of a group one after another. */
export function CharacterStory({ ids, onClose }: { ids: readonly string[]; onClose: () => void }) {
  const { people } = useStore();
  const names = ids.map((id) => people.getListItem(id)?.name ?? people.character(id)?.name).filter(Boolean).join(", ");
  return (
    <Dialog title={names || texts.characters.title} onClose={onClose}>
      {ids.map((id) => <StoryOf key={id} id={id} hasName={ids.length > 1} />)}
    </Dialog>
  );
}

function StoryOf({ id, hasName }: { id: string; hasName: boolean }) {
  const { api } = useStore();
  const t = texts.characters;
  const [character, setCharacter] = useState<Character>();
  const [error, setError] = useState<ApiError>();
  const load = () => {
    setError(undefined);
    api.getCharacter(id).then((found) => setCharacter(found.character), (thrown) => setError(asApiError(thrown)));
  };
  useEffect(load, [id]);
  if (error) return <ErrorNote title={t.oneFailed} error={error} onRetry={load} />;
  if (!character) return <p class="muted" role="status">{texts.loading}</p>;
  const { data } = character.card;
  const name = data.nickname?.trim() || character.name;
  // Cards are written for the model. Inserted names make them readable.
  const names = { char: name, user: texts.chat.you };
  const notes = getCreatorNotes(character.card, texts.locale).trim();
  const parts = [["", notes], [t.story.description, data.description.trim()], [t.story.scenario, data.scenario.trim()]]
    .filter(([, text]) => text !== "") as [string, string][];
  // Below the name, if there is one.
  const Title = hasName ? "h4" : "h3";
  return (
    <article class="story">
      <Portrait {...toPortraitProps(character)} widthPx={WIDTH_PX} class="story-picture" />
      <div class="story-text">
        {hasName && <h3>{name}</h3>}
        {parts.map(([title, text]) => (
          <section key={title}>
            {title !== "" && <Title>{title}</Title>}
            <Markdown text={insertNames(text, names)} isFinal />
          </section>
        ))}
        {parts.length === 0 && <p class="muted">{t.story.none}</p>}
        <div class="actions-row">
          <LinkButton href={`/characters/${encodeURIComponent(id)}`}>{t.story.open}</LinkButton>
        </div>
      </div>
    </article>
  );
}
