/** The page of one character: portrait, greeting, actions. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Character } from "../../api/types.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { EmptyState, ErrorNote, Notice } from "../../components/Notice.tsx";
import { lazy } from "../../components/Lazy.tsx";
import { Portrait } from "../../components/Portrait.tsx";
import { Progress } from "../../components/Progress.tsx";
import { Markdown } from "../../components/content/Markdown.tsx";
import { useTitle } from "../../components/hooks.ts";
import { getCreatorNotes, insertNames } from "../../state/characters/card_fields.ts";
import { CharacterPage } from "../../state/characters/character_page.ts";
import { getGallery } from "../../state/characters/gallery.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { CharacterChats } from "./CharacterChats.tsx";
import { CharacterMenu } from "./CharacterMenu.tsx";
import { FavoriteButton } from "./FavoriteButton.tsx";
import { GreetingPreview, useCardNames } from "./GreetingPreview.tsx";
import { toPortraitProps } from "./portrait_props.ts";
import { PageHeader } from "../shell/PageHeader.tsx";

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
      {load.kind === "ready" && <Shown page={page} character={load.character} />}
    </main>
  );
}

function Shown({ page, character }: { page: CharacterPage; character: Character }) {
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
      </div>
    </div>
  );
}

/** Description and scenario as they read, with the names of both. */
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
