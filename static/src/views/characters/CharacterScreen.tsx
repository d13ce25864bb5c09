/** The page of one character: portrait, greeting, and what can be done with it. */
import type { Character } from "../../api/types.ts";
import { useEffect, useMemo } from "preact/hooks";
import { Button, LinkButton } from "../../components/Button.tsx";
import { EmptyState } from "../../components/EmptyState.tsx";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import { useTitle } from "../../components/hooks.ts";
import { Markdown } from "../../components/content/Markdown.tsx";
import { Notice } from "../../components/Notice.tsx";
import { notesOf } from "../../state/characters/card_fields.ts";
import { CharacterPage } from "../../state/characters/character_page.ts";
import { galleryOf } from "../../state/characters/gallery.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { PageHead } from "../shell/PageHeader.tsx";
import { CharacterMenu } from "./CharacterMenu.tsx";
import { CharacterPortrait } from "./CharacterPortrait.tsx";
import { GreetingPreview } from "./GreetingPreview.tsx";

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
      <PageHead title={load.kind === "ready" ? load.character.name : t.title}>
        <a class="back-link" href="/characters">{t.title}</a>
        {load.kind === "ready" && <CharacterMenu page={page} character={load.character} />}
      </PageHead>
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
  const notes = notesOf(character.card, texts.locale);
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

/** Each leads to the gallery, narrowed to it. */
function Tags({ tags }: { tags: readonly string[] }) {
  const store = useStore();
  const gallery = galleryOf(store);
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
