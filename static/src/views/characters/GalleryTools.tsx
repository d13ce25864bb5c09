/** What narrows and orders the gallery. */
import type { Gallery } from "../../state/characters/gallery.ts";
import { texts } from "../../texts/texts.ts";

/** Search as you type, one tag, the order. */
export function GalleryTools({ gallery }: { gallery: Gallery }) {
  const t = texts.characters;
  const { q, tag, sort } = gallery.query.value;
  const tags = gallery.tags.value;
  // The chosen one stays to be seen also when nothing on the list has it.
  const choices = tag === "" || tags.includes(tag) ? tags : [tag, ...tags];
  return (
    <search class="gallery-tools">
      <input
        type="search"
        value={q}
        placeholder={t.search}
        aria-label={t.search}
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        onInput={(event) => gallery.narrow({ q: event.currentTarget.value })}
      />
      <select aria-label={t.tag} value={tag} onChange={(event) => gallery.narrow({ tag: event.currentTarget.value })}>
        <option value="">{t.allTags}</option>
        {choices.map((name) => <option key={name} value={name}>{name}</option>)}
      </select>
      <select
        aria-label={t.sort}
        value={sort}
        onChange={(event) => gallery.narrow({ sort: event.currentTarget.value === "updated" ? "updated" : "name" })}
      >
        <option value="name">{t.sorts.name}</option>
        <option value="updated">{t.sorts.updated}</option>
      </select>
    </search>
  );
}
