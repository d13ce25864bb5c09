/** A card that the card site offers. */
import type { FoundCard } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { ErrorNote } from "../../components/ErrorNote.tsx";
import { Portrait } from "../../components/Portrait.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { tellImported } from "./notify_imported.ts";

/** Tags that are shown; some cards have hundreds. */
const SHOWN_TAGS = 8;

/** Picture, words, import. The picture comes from our own server, which fetches it. */
export function FoundCardRow({ card }: { card: FoundCard }) {
  const store = useStore();
  const [importedId, setImportedId] = useState<string>();
  const [error, setError] = useState<ApiError>();
  const [isBusy, setBusy] = useState(false);
  const t = texts.cardSite;
  const take = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const character = await store.api.importCharacterFrom(card.page_url);
      setImportedId(character.id);
      tellImported(store, [character]);
    } catch (thrown) {
      setError(asApiError(thrown));
    }
    setBusy(false);
  };
  const facts = [
    card.creator && texts.characters.by(card.creator),
    card.downloads === null ? "" : t.downloads(card.downloads),
  ].filter(Boolean).join(" · ");
  return (
    <li class="found-card">
      <Portrait name={card.name} path={ownPath(card.avatar_url)} isWhole widthPx={96} class="found-picture" />
      <div class="found-words">
        <h2>{card.name}</h2>
        {facts && <p class="muted facts">{facts}</p>}
        {card.tagline && <p>{card.tagline}</p>}
        {card.tags.length > 0 && <p class="muted facts">{card.tags.slice(0, SHOWN_TAGS).join(", ")}</p>}
        {error && <ErrorNote title={t.importFailed(card.name)} error={error} />}
        <div class="actions-row">
          {importedId === undefined
            ? <Button kind="primary" label={t.importOf(card.name)} isBusy={isBusy} onClick={take}>{t.import}</Button>
            : (
              <LinkButton href={`/characters/${encodeURIComponent(importedId)}`} icon="check">
                {texts.characters.open}
              </LinkButton>
            )}
          <a class="back-link" href={card.page_url} target="_blank" rel="noopener noreferrer">{t.page}</a>
        </div>
      </div>
    </li>
  );
}

/** Only an address of our own is asked for, whatever the answer says. */
function ownPath(address: string): string | undefined {
  return address.startsWith("/api/") ? address : undefined;
}
