/** The page of one character: portrait, greeting, actions. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Character } from "../../api/types.ts";
import { Button, IconButton, LinkButton } from "../../components/Button.tsx";
import { EmptyState, ErrorNote, Notice } from "../../components/Notice.tsx";
import { lazy } from "../../components/Lazy.tsx";
import { ItemLedger } from "../../components/Ledger.tsx";
import { Portrait } from "../../components/Portrait.tsx";
import { Progress } from "../../components/Progress.tsx";
import { Markdown } from "../../components/content/Markdown.tsx";
import { useTitle } from "../../components/hooks.ts";
import { getCreatorNotes, insertNames, listGreetings, NAMELESS_OWNER } from "../../state/characters/card_fields.ts";
import { CharacterPage } from "../../state/characters/character_page.ts";
import { getGallery } from "../../state/characters/gallery.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { CharacterMenu, FavoriteButton } from "./CharacterMenu.tsx";
import { toPortraitProps } from "./Avatars.tsx";
import { PageHeader } from "../shell/PageHeader.tsx";
import { ChatCard } from "../shell/ChatRow.tsx";
import { type ApiError, asApiError } from "../../api/client.ts";

const CharacterStory = lazy(() => import("./CharacterStory.tsx").then((file) => file.CharacterStory), {
  as: "overlay",
});

/** Shows a character, or why there is none. */
export function CharacterScreen({ id }: { id: string }) {
  const store = useStore();
  const page = useMemo(() => new CharacterPage(store, id), [id]);
  useEffect(() => page.open(), [page]);
  const load = page.load.value;
  const t = texts.characters;
  useTitle(`${load.kind === "ready" ? load.character.name : t.title} · ${texts.product}`);
  return (
    <main id="main" class="page characters-page" tabIndex={-1}>
      <PageHeader title={load.kind === "ready" ? load.character.name : t.title}>
        <a class="back-link" href="/characters">{t.title}</a>
        {load.kind === "ready" && !load.character.external && <FavoriteButton item={load.character} />}
        {load.kind === "ready" && <CharacterMenu page={page} character={load.character} />}
      </PageHeader>
      {load.kind === "loading" && <p class="chat-loading" role="status">{texts.loading}</p>}
      {load.kind === "missing" && (
        <EmptyState title={t.missingTitle} text={t.missingText}>
          <LinkButton href="/characters" kind="primary">{t.title}</LinkButton>
        </EmptyState>
      )}
      {load.kind === "failed" && (
        <div class="column padded">
          <ErrorNote title={t.oneFailed} error={load.error} onRetry={() => void page.reload()} />
        </div>
      )}
      {load.kind === "ready" && <CharacterDetails page={page} character={load.character} />}
    </main>
  );
}

function CharacterDetails({ page, character }: { page: CharacterPage; character: Character }) {
  const { data } = character.card;
  const t = texts.characters;
  const notes = getCreatorNotes(character.card, texts.locale);
  const facts = [
    data.creator && t.by(data.creator),
    data.character_version && t.version(data.character_version),
  ].filter(Boolean).join(" · ");
  return (
    <div class="character-page">
      <CharacterPortrait page={page} character={character} />
      <div class="character-text">
        <header>
          <h2>{data.nickname?.trim() || character.name}</h2>
          {facts && <p class="muted">{facts}</p>}
          <Tags tags={character.tags} />
        </header>
        {character.external && <Notice tone="info">{t.readOnly}</Notice>}
        <GreetingPreview page={page} character={character} />
        <CharacterChats page={page} />
        <Texts character={character} />
        {notes !== "" && (
          <details class="character-notes">
            <summary>{t.notes}</summary>
            <Markdown key={notes} text={notes} isFinal />
          </details>
        )}
        {character.has_assets && <p class="hint character-notes">{t.hasAssets}</p>}
        <ItemLedger entries={character.ledger} />
      </div>
    </div>
  );
}

/** Description and scenario with both names inserted. */
function Texts({ character }: { character: Character }) {
  const t = texts.characters.story;
  const { data } = character.card;
  const names = useCardNames(character);
  return [[t.description, data.description.trim()], [t.scenario, data.scenario.trim()]]
    .filter(([, text]) => text !== "")
    .map(([title, text]) => (
      <details key={title} class="character-notes" open>
        <summary>{title}</summary>
        <Markdown key={text} text={insertNames(text!, names)} isFinal />
      </details>
    ));
}

/** Each links to the gallery filtered by it. */
function Tags({ tags }: { tags: readonly string[] }) {
  const store = useStore();
  const gallery = getGallery(store);
  if (tags.length === 0) return null;
  return (
    <ul class="tags" aria-label={texts.characters.tags}>
      {tags.map((tag) => (
        <li key={tag}>
          <Button
            kind="quiet"
            onClick={() => {
              gallery.narrow({ q: "", tag });
              store.router.go("/characters");
            }}
          >
            {tag}
          </Button>
        </li>
      ))}
    </ul>
  );
}

/** Layout width on a wide screen, in pixels. */
const WIDTH_PX = 320;

/** Portrait and its job. */
function CharacterPortrait({ page, character }: { page: CharacterPage; character: Character }) {
  const store = useStore();
  const t = texts.characters;
  const { state, progress, error } = page.portrait.value;
  const [isLarge, setLarge] = useState(false);
  return (
    <div class="character-side">
      {character.has_avatar
        ? (
          <button
            type="button"
            class="character-picture-button"
            aria-haspopup="dialog"
            aria-label={texts.chat.showCharacter(character.name)}
            onClick={() => setLarge(true)}
          >
            <Portrait {...toPortraitProps(character)} widthPx={WIDTH_PX} class="character-picture" />
          </button>
        )
        : <Portrait {...toPortraitProps(character)} widthPx={WIDTH_PX} class="character-picture" />}
      {isLarge && <CharacterStory ids={[character.id]} onClose={() => setLarge(false)} />}
      {(state === "pending" || state === "running") && (
        <div class="portrait-job" role="status">
          <span>{t.drawing}</span>
          <Progress label={t.drawing} value={state === "running" ? progress ?? null : null} />
        </div>
      )}
      {!character.external && state !== "pending" && state !== "running" && (
        <Button
          icon="wand"
          onClick={() => void page.drawPortrait().catch((thrown) => store.report(thrown))}
        >
          {t.draw}
        </Button>
      )}
      {state === "failed" && <Notice tone="danger" title={t.drawFailed}>{error?.message}</Notice>}
    </div>
  );
}

/** Chats that are shown at first. */
const FEW = 4;
/** Chats that are shown at most; the sidebar and the search have the rest. */
const MANY = 200;

/** The newest chats, or why there are none. Nothing for a character without chats. */
function CharacterChats({ page }: { page: CharacterPage }) {
  const { chats } = useStore();
  const [isAll, setAll] = useState(false);
  const own = page.chats.value;
  if (chats.state.value === "failed" && chats.error.value) {
    return <ErrorNote title={texts.nav.failed} error={chats.error.value} onRetry={() => void chats.refresh()} />;
  }
  if (own.length === 0) return null;
  return (
    <section class="character-chats" aria-labelledby="character-chats">
      <h3 id="character-chats">{texts.nav.chats}</h3>
      <ul class="home-chats">
        {own.slice(0, isAll ? MANY : FEW).map((item) => <ChatCard key={item.id} item={item} />)}
      </ul>
      {!isAll && own.length > FEW && (
        <Button kind="quiet" onClick={() => setAll(true)}>{texts.characters.allChats(own.length)}</Button>
      )}
    </section>
  );
}

/** Returns the names that a new chat with the character puts into the texts of its card. */
function useCardNames({ id, name, card }: Character): { char: string; user: string } {
  const { people, preferences } = useStore();
  useEffect(() => people.loadPersonas(), []);
  const settings = preferences.settings.value;
  const persona = people.personaFor(id) ?? people.persona(settings?.default_persona_id);
  return {
    char: card.data.nickname?.trim() || name,
    user: persona?.name || settings?.display_name.trim() || NAMELESS_OWNER,
  };
}

/** Start, Resume, Edit, and the selected greeting as it will be shown. */
function GreetingPreview({ page, character }: { page: CharacterPage; character: Character }) {
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
