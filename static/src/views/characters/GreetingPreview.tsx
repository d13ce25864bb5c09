/** Previews the start of a chat with the character. */
import type { Character } from "../../api/types.ts";
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { Button, IconButton, LinkButton } from "../../components/Button.tsx";
import { ErrorNote } from "../../components/Notice.tsx";
import { Markdown } from "../../components/content/Markdown.tsx";
import { insertNames, listGreetings, NAMELESS_OWNER } from "../../state/characters/card_fields.ts";
import type { CharacterPage } from "../../state/characters/character_page.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Returns the names that a new chat with the character puts into the texts of its card. */
export function useCardNames({ name, card }: Character): { char: string; user: string } {
  const { people, preferences } = useStore();
  useEffect(() => people.wantPersonas(), []);
  const settings = preferences.settings.value;
  const persona = people.persona(settings?.default_persona_id);
  return {
    char: card.data.nickname?.trim() || name,
    user: persona?.name || settings?.display_name.trim() || NAMELESS_OWNER,
  };
}

/** Start, Resume, Edit, and the selected greeting as it will be shown. */
export function GreetingPreview({ page, character }: { page: CharacterPage; character: Character }) {
  const [at, setAt] = useState(0);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const t = texts.characters;
  const greetings = listGreetings(character.card);
  const shown = Math.min(at, Math.max(0, greetings.length - 1));
  const names = useCardNames(character);
  const resumable = page.chats.value[0]?.id;
  const start = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await page.startChat(greetings[shown]?.number ?? 0);
    } catch (thrown) {
      setError(asApiError(thrown));
      setBusy(false);
    }
  };
  return (
    <>
      <div class="actions-row">
        <Button kind="primary" icon="chat" isBusy={isBusy} onClick={start}>{t.start}</Button>
        {resumable !== undefined && (
          <LinkButton href={`/c/${encodeURIComponent(resumable)}`} icon="forward">{t.resume}</LinkButton>
        )}
        {!character.external && (
          <LinkButton href={`/characters/${encodeURIComponent(character.id)}/edit`} icon="pencil">{t.edit}</LinkButton>
        )}
      </div>
      {error && <ErrorNote title={t.startFailed} error={error} />}
      <section class="greeting" aria-labelledby="greeting-title">
        <header>
          <h3 id="greeting-title">{t.greeting}</h3>
          {greetings.length > 1 && (
            <span class="variants">
              <IconButton
                icon="left"
                label={t.previousGreeting}
                isDisabled={shown === 0}
                onClick={() => setAt(shown - 1)}
              />
              <span role="status" aria-label={t.greetingOf(shown + 1, greetings.length)}>
                {shown + 1}/{greetings.length}
              </span>
              <IconButton
                icon="right"
                label={t.nextGreeting}
                isDisabled={shown + 1 >= greetings.length}
                onClick={() => setAt(shown + 1)}
              />
            </span>
          )}
        </header>
        {greetings.length === 0
          ? <p class="muted">{t.noGreeting}</p>
          : <Markdown key={shown} text={insertNames(greetings[shown]!.text, names)} isFinal />}
      </section>
    </>
  );
}
