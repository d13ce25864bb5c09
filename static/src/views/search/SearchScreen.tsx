/** Search over all conversations, as you type. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { DocumentHit, SearchHit } from "../../api/types.ts";
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
  useEffect(() => {
    search.type(new URLSearchParams(store.router.query.peek()).get("q") ?? "");
    field.current?.focus();
    return () => search.close();
  }, []);
  const onInput = (text: string) => {
    search.type(text);
    store.router.go(text.trim() === "" ? "/search" : `/search?${new URLSearchParams({ q: text })}`, { replace: true });
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
      {(hit) => "document_id" in hit ? <InDocument hit={hit} query={query} /> : <Hit hit={hit} query={query} />}
    </VirtualList>
  );
}

function Hit({ hit, query }: { hit: SearchHit; query: string }) {
  const { role, snippet } = hit;
  const { chats, people } = useStore();
  const item = chats.items.value.find(({ id }) => id === hit.conversation_id);
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
  return (
    <div class="column">
      <a
        class="hit"
        href={hit.message_id === null ? chat : `${chat}#${encodeURIComponent(hit.message_id)}`}
        onKeyDown={step}
      >
        <span class="hit-head">
          {item && item.character_ids.length > 0 && <Avatars ids={item.character_ids} widthPx={24} />}
          <span class="hit-title">
            <Marked text={title || texts.nav.untitled} query={hit.message_id === null ? query : ""} />
          </span>
          <span class="muted">{[speaker, formatTime(hit.created_at, new Date())].filter(Boolean).join(" · ")}</span>
        </span>
        {hit.message_id !== null && (
          <span class="hit-text">
            <Marked text={stripMarkdown(snippet)} query={query} />
          </span>
        )}
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
