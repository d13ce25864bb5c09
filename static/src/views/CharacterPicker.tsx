/** The choice of some characters, for lorebooks and tokens. */
import type { CharacterItem } from "../api/types.ts";
import { useEffect, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../api/client.ts";
import { Button, IconButton } from "../components/Button.tsx";
import { TextField } from "../components/forms/Field.tsx";
import { ErrorNote } from "../components/Notice.tsx";
import { useStore } from "../state/store.ts";
import { texts } from "../texts/texts.ts";

/** Most suggestions; typing narrows them. */
const OFFERED = 6;

/** Selects characters: the selected ones, and the search for more, since there may be thousands. */
export function CharacterPicker(
  { legend, ids, onChange }: { legend: string; ids: string[]; onChange: (ids: string[]) => void },
) {
  const { people } = useStore();
  const t = texts.lorebooks;
  useEffect(() => ids.forEach((id) => people.loadCharacter(id)), [ids]);
  return (
    <fieldset class="editor-list">
      <legend>{legend}</legend>
      {ids.length === 0 && <p class="muted">{t.noCharacters}</p>}
      {ids.map((id) => {
        const name = people.character(id)?.name ?? t.unknownOne;
        return (
          <div key={id} class="chosen-row">
            <span>{name}</span>
            <IconButton
              icon="close"
              label={t.removeCharacter(name)}
              onClick={() => onChange(ids.filter((each) => each !== id))}
            />
          </div>
        );
      })}
      <CharacterSearch usedIds={ids} onChoose={(id) => onChange([...ids, id])} />
    </fieldset>
  );
}

function CharacterSearch({ usedIds, onChoose }: { usedIds: string[]; onChoose: (id: string) => void }) {
  const { api } = useStore();
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<CharacterItem[]>([]);
  const [error, setError] = useState<ApiError>();
  const t = texts.lorebooks;
  useEffect(() => {
    const abort = new AbortController();
    setError(undefined);
    api.listCharacters({ q: query, tag: "", sort: "name" }, OFFERED + usedIds.length, undefined, abort.signal).then(
      ({ items }) => setFound(items.filter(({ unreadable }) => !unreadable)),
      (thrown) => abort.signal.aborted || setError(asApiError(thrown)),
    );
    return () => abort.abort();
  }, [query, usedIds.length]);
  return (
    <>
      <TextField label={t.findCharacter} type="search" value={query} onInput={setQuery} />
      {error && <ErrorNote title={texts.characters.loadFailed} error={error} />}
      <div class="chips">
        {found.filter(({ id }) => !usedIds.includes(id)).slice(0, OFFERED).map(({ id, name }) => (
          <Button
            key={id}
            icon="plus"
            label={t.addCharacter(name)}
            onClick={() => onChoose(id)}
          >
            {name}
          </Button>
        ))}
      </div>
    </>
  );
}
