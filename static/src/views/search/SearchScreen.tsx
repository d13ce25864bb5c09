/** Search over all conversations, as you type. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { DocumentHit, SearchHit } from "../../api/types.ts";
import type { SearchFilters } from "../../api/api.ts";
import { Button } from "../../components/Button.tsx";
import { Avatars } from "../characters/Avatars.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { useTitle } from "../../components/hooks.ts";
import { lazy } from "../../components/Lazy.tsx";
import { VirtualList } from "../../components/lists/VirtualList.tsx";
import { Search, splitByWords } from "../../state/app/search.ts";
import { stripMarkdown } from "../../markdown/plain_text.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { formatTime } from "../../texts/format.ts";
import { addDictated, DictateButton } from "../talk/DictationBar.tsx";
import { nameChat } from "../shell/chat_name.ts";
import { PageHeader } from "../shell/PageHeader.tsx";

const DocumentReader = lazy(() => import("../documents/DocumentReader.tsx").then((file) => file.DocumentReader), {
  as: "overlay",
});

/** Height of a hit before it is measured, in px. */
const GUESSED_PX = 92;

/** The field and its hits. The query is in the URL, so that going back shows the same hits. */
export function SearchScreen() {
  const store = useStore();
  const t = texts.search;
  const search = useMemo(() => new Search(store.api), []);
  const field = useRef<HTMLInputElement>(null);
  const main = useRef<HTMLElement>(null);
  useTitle(`${t.title} · ${texts.product}`);
  const [chosen, setChosen] = useState<Chosen>({});
  useEffect(() => {
    const { q = "", ...rest } = Object.fromEntries(new URLSearchParams(store.router.query.peek()));
    setChosen(rest);
    search.filters.value = toFilters(rest);
    search.type(q);
    field.current?.focus();
    return () => search.close();
  }, []);
  const keep = (q: string, { character, role, days }: Chosen) => {
    const kept = Object.entries({ q: q.trim() === "" ? "" : q, character, role, days }).filter(([, value]) => value);
    const address = new URLSearchParams(kept as [string, string][]).toString();
    store.router.go(address === "" ? "/search" : `/search?${address}`, { replace: true });
  };
  const onInput = (text: string) => {
    search.type(text);
    keep(text, chosen);
  };
  const onChoose = (changes: Chosen) => {
    const next = { ...chosen, ...changes } satisfies Chosen;
    setChosen(next);
    search.narrow(toFilters(next));
    keep(search.query.peek(), next);
  };
  return (
    <main id="main" ref={main} class="page" tabIndex={-1}>
      <PageHeader title={t.title} />
      <div class="column search-field">
        <div class="with-dictation">
          <input
            ref={field}
            type="search"
            value={search.query.value}
            placeholder={t.placeholder}
            aria-label={t.label}
            enterkeyhint="search"
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => onInput(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== "ArrowDown") return;
              event.preventDefault();
              main.current?.querySelector<HTMLElement>(".hit")?.focus();
            }}
          />
          <DictateButton label={t.label} onText={(text) => onInput(addDictated(search.query.peek(), text))} />
        </div>
        <Filters chosen={chosen} onChoose={onChoose} />
        <p class="search-count muted" role="status">{formatHitCount(search)}</p>
      </div>
      <Hits
        search={search}
        onClear={() => {
          onInput("");
          field.current?.focus();
        }}
      />
    </main>
  );
}

/** What the search is narrowed to, as in the address. */
interface Chosen {
  character?: string;
  role?: string;
  /** Only messages of the last so many days. */
  days?: string;
}

const DAYS = ["7", "30", "365"] as const;
const DAY_MS = 86_400_000;

function toFilters({ character, role, days }: Chosen): SearchFilters {
  const age = Number(days) * DAY_MS;
  return {
    ...(character && { character_id: character }),
    ...(role && { role }),
    ...(age > 0 && { since: new Date(Date.now() - age).toISOString() }),
  };
}

/** Narrows the search to a character, a role and a time. */
function Filters({ chosen, onChoose }: { chosen: Chosen; onChoose: (changes: Chosen) => void }) {
  const { chats, people } = useStore();
  const t = texts.search;
  const ids = [...new Set(chats.items.value.flatMap(({ character_ids }) => character_ids))];
  useEffect(() => people.loadListItems(ids), [ids.join()]);
  const characters = ids.flatMap((id) => {
    const name = people.getListItem(id)?.name;
    return name === undefined ? [] : [{ id, name }];
  }).sort((a, b) => a.name.localeCompare(b.name));
  return (
    <div class="search-filters">
      {(characters.length > 0 || chosen.character) && (
        <select
          aria-label={t.character}
          value={chosen.character ?? ""}
          onChange={(event) => onChoose({ character: event.currentTarget.value })}
        >
          <option value="">{t.anyCharacter}</option>
          {characters.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
        </select>
      )}
      <select
        aria-label={t.role}
        value={chosen.role ?? ""}
        onChange={(event) => onChoose({ role: event.currentTarget.value })}
      >
        <option value="">{t.anyRole}</option>
        <option value="user">{t.byYou}</option>
        <option value="assistant">{t.replies}</option>
      </select>
      <select
        aria-label={t.time}
        value={chosen.days ?? ""}
        onChange={(event) => onChoose({ days: event.currentTarget.value })}
      >
        <option value="">{t.anyTime}</option>
        {DAYS.map((days) => <option key={days} value={days}>{t.lastDays(Number(days))}</option>)}
      </select>
    </div>
  );
}

function formatHitCount(search: Search): string {
  const { state, hits } = search;
  if (state.value === "searching") return texts.search.searching;
  if (state.value === "idle" || state.value === "failed" || hits.value.length === 0) return "";
  return state.value === "more" ? texts.search.atLeast(hits.value.length) : texts.search.count(hits.value.length);
}

function Hits({ search, onClear }: { search: Search; onClear: () => void }) {
  const t = texts.search;
  const { state, hits, error } = search;
  if (state.value === "failed" && error.value) {
    return (
      <div class="column">
        <ErrorNote title={t.failed} error={error.value} onRetry={() => search.retry()} />
      </div>
    );
  }
  if (state.value === "idle") return <EmptyState title={t.emptyTitle} text={t.emptyText} />;
  if (hits.value.length === 0) {
    return state.value !== "done" ? null : (
      <EmptyState title={t.noneTitle} text={t.noneText}>
        <Button kind="primary" onClick={onClear}>{t.clear}</Button>
      </EmptyState>
    );
  }
  const query = search.shownQuery.value;
  // The hits of a chat follow each other.
  const firsts = new Set(hits.value.filter((hit, n) => getGroup(hit) !== getGroup(hits.value[n - 1])));
  return (
    <VirtualList
      class="hits"
      label={t.hits}
      items={hits.value}
      keyOf={(hit) =>
        "document_id" in hit ? `${hit.document_id}/${hit.page}` : `${hit.conversation_id}/${hit.message_id ?? ""}`}
      heightOf={() => GUESSED_PX}
      isMeasured
      onEnd={() => void search.more()}
    >
      {(hit) =>
        "document_id" in hit
          ? <InDocument hit={hit} query={query} />
          : <Hit hit={hit} query={query} isFirst={firsts.has(hit)} />}
    </VirtualList>
  );
}

function getGroup(hit: SearchHit | DocumentHit | undefined): string | undefined {
  return hit && ("document_id" in hit ? hit.document_id : hit.conversation_id);
}

/** A message or a title. @param isFirst The first of its chat, below the chat's name. */
function Hit({ hit, query, isFirst }: { hit: SearchHit; query: string; isFirst: boolean }) {
  const { role, snippet } = hit;
  const { chats, people } = useStore();
  const item = isFirst ? chats.items.value.find(({ id }) => id === hit.conversation_id) : undefined;
  const title = item ? nameChat(people, item).full : hit.title;
  const chat = `/c/${encodeURIComponent(hit.conversation_id)}`;
  const speaker = role === "user"
    ? texts.chat.you
    : role === "assistant"
    ? texts.chat.assistant
    : role ?? texts.search.inTitle;
  const step = (event: KeyboardEvent) => {
    const row = (event.currentTarget as HTMLElement).closest("li");
    const next = event.key === "ArrowDown"
      ? row?.nextElementSibling
      : event.key === "ArrowUp"
      ? row?.previousElementSibling
      : undefined;
    if (next === undefined) return;
    event.preventDefault();
    next?.querySelector<HTMLElement>(".hit")?.focus();
  };
  const head = (
    <>
      {item && item.character_ids.length > 0 && <Avatars ids={item.character_ids} widthPx={24} />}
      <span class="hit-title">
        <Marked text={title || texts.nav.untitled} query={hit.message_id === null ? query : ""} />
      </span>
    </>
  );
  const about = (
    <span class="muted">{[speaker, formatTime(hit.created_at, new Date())].filter(Boolean).join(" · ")}</span>
  );
  if (hit.message_id === null) {
    return (
      <div class="column">
        <a class="hit hit-chat" href={chat} onKeyDown={step}>
          {head}
          {about}
        </a>
      </div>
    );
  }
  return (
    <div class="column">
      {isFirst && <p class="hit-chat">{head}</p>}
      <a class="hit" href={`${chat}#${encodeURIComponent(hit.message_id)}`} onKeyDown={step}>
        <span class="hit-text">
          <Marked text={stripMarkdown(snippet)} query={query} />
        </span>
        {about}
      </a>
    </div>
  );
}

function InDocument({ hit, query }: { hit: DocumentHit; query: string }) {
  const [isOpen, setOpen] = useState(false);
  const { document_id: id, title, page, snippet, created_at } = hit;
  return (
    <div class="column">
      <button type="button" class="hit" onClick={() => setOpen(true)}>
        <span class="hit-head">
          <span class="hit-title">{title}</span>
          <span class="muted">{`${texts.search.page(page)} · ${formatTime(created_at, new Date())}`}</span>
        </span>
        <span class="hit-text">
          <Marked text={snippet} query={query} />
        </span>
      </button>
      {isOpen && <DocumentReader id={id} name={title} page={page} onClose={() => setOpen(false)} />}
    </div>
  );
}

function Marked({ text, query }: { text: string; query: string }) {
  return (
    <>
      {splitByWords(text, query).map((piece, index) =>
        piece.isHit ? <mark key={index}>{piece.text}</mark> : piece.text
      )}
    </>
  );
}
