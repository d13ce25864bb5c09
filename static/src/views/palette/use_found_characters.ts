/** Characters that the typed words mean, as the server finds them. */
import type { CharacterItem } from "../../api/types.ts";
import { useEffect, useState } from "preact/hooks";
import { useStore } from "../../state/store.ts";

/** How many are shown; who wants more types more. */
const SHOWN = 8;

/** None without words; the ones of the words before until the new ones are there, or when they cannot be had. */
export function useFoundCharacters(query: string): readonly CharacterItem[] {
  const { api } = useStore();
  const [found, setFound] = useState<readonly CharacterItem[]>([]);
  const words = query.trim();
  useEffect(() => {
    if (words === "") return setFound([]);
    const leaving = new AbortController();
    api.listCharacters({ q: words, tag: "", sort: "name" }, SHOWN, undefined, leaving.signal).then(
      ({ items }) => !leaving.signal.aborted && setFound(items),
      // The rest of the palette works without them.
      () => {},
    );
    return () => leaving.abort();
  }, [words]);
  return found;
}
