/** The card site, through our own server: search, and import with one click. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { FoundCard } from "../../api/types.ts";
import { Button, LinkButton } from "../../components/Button.tsx";
import { EmptyState, ErrorNote } from "../../components/Notice.tsx";
import { Portrait } from "../../components/Portrait.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Select, Switch } from "../../components/forms/inputs.tsx";
import { useTitle } from "../../components/hooks.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { notifyImported } from "./ImportNotices.tsx";
import { PageHeader } from "../shell/PageHeader.tsx";
import { signal } from "@preact/signals";
import type { CardSiteQuery } from "../../api/characters.ts";
import type { Api } from "../../api/api.ts";

/** The screen. */
export function CardSiteScreen() {
  const store = useStore();
  const site = useMemo(() => new CardSite(store.api), []);
  useEffect(() => () => site.close(), []);
  const t = texts.cardSite;
  useTitle(`${t.title} · ${texts.product}`);
  const state = site.state.value;
  const found = site.found.value;
  const error = site.error.value;
  return (
    <main id="main" class="page characters-page" tabIndex={-1}>
      <PageHeader title={t.title}>
        <a class="back-link" href="/characters">{texts.characters.title}</a>
      </PageHeader>
      <div class="card-site">
        <div class="column">
          <SearchForm site={site} />
          {error && <ErrorNote title={t.failed} error={error} onRetry={() => void site.find()} />}
          {state === "ready" && found.length === 0 && (
            <EmptyState title={t.nothing} text={t.nothingText}>
              <Button
                kind="primary"
                onClick={() => {
                  site.query.value = { ...site.query.value, q: "", tags: "" };
                  void site.find();
                }}
              >
                {t.showAll}
              </Button>
            </EmptyState>
          )}
          {found.length > 0 && (
            <ul class="found-cards" aria-label={t.results}>
              {found.map((card) => <CardSiteRow key={card.id} card={card} />)}
            </ul>
          )}
          {state === "searching" && <p class="muted" role="status">{texts.loading}</p>}
          {state === "ready" && site.hasMore.value && (
            <div class="actions-row">
              <Button onClick={() => void site.more()}>{t.more}</Button>
            </div>
          )}
        </div>
      </div>
    </main>
  );
}

/** Searches on submit, not on each key: the site limits requests. */
function SearchForm({ site }: { site: CardSite }) {
  const t = texts.cardSite;
  const query = site.query.value;
  const set = (changes: Partial<typeof query>) => site.query.value = { ...query, ...changes };
  return (
    <form
      class="form card-site-form"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        void site.find();
      }}
    >
      <TextField label={t.query} type="search" value={query.q} maxLength={200} onInput={(q) => set({ q })} />
      <div class="options-pair">
        <TextField
          label={t.tags}
          hint={t.tagsHint}
          value={query.tags}
          maxLength={500}
          onInput={(tags) => set({ tags })}
        />
        <Select
          label={t.sort}
          value={CARD_SITE_SORTS.find((sort) => sort === query.sort) ?? "relevance"}
          options={CARD_SITE_SORTS.map((value) => ({ value, name: t.sorts[value] }))}
          onChange={(sort) => set({ sort })}
        />
      </div>
      <Switch label={t.nsfw} isOn={query.nsfw} onChange={(nsfw) => set({ nsfw })} />
      <div class="actions-row">
        <Button type="submit" kind="primary" icon="search" isBusy={site.state.value === "searching"}>{t.search}</Button>
      </div>
      <p class="hint">{t.note}</p>
    </form>
  );
}

/** Most tags shown; some cards have hundreds. */
const SHOWN_TAGS = 8;

/** Image, text, import. Our own server fetches the image. */
function CardSiteRow({ card }: { card: FoundCard }) {
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
      notifyImported(store, [character]);
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
      <Portrait name={card.name} path={toOwnPath(card.avatar_url)} isWhole widthPx={96} class="found-image" />
      <div class="found-details">
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

/** Only our own server is asked, whatever the response says. */
function toOwnPath(address: string): string | undefined {
  return address.startsWith("/api/") ? address : undefined;
}

/** Sort orders of the site. */
const CARD_SITE_SORTS = ["relevance", "downloads", "rating", "newest", "updated"] as const;

/** One search on the card site. */
class CardSite {
  readonly query = signal<CardSiteQuery>({ q: "", tags: "", sort: "downloads", nsfw: false });
  readonly found = signal<FoundCard[]>([]);
  readonly state = signal<"idle" | "searching" | "ready" | "failed">("idle");
  readonly error = signal<ApiError | undefined>(undefined);
  readonly hasMore = signal(false);
  readonly #api: Api;
  #next = "1";
  #asked: CardSiteQuery | undefined;
  #search = new AbortController();

  constructor(api: Api) {
    this.#api = api;
  }

  /** Searches with the current query. */
  async find(): Promise<void> {
    this.#asked = this.query.peek();
    this.#next = "1";
    this.found.value = [];
    await this.#read();
  }

  /** Loads the next page. */
  async more(): Promise<void> {
    if (this.hasMore.peek() && this.state.peek() !== "searching") await this.#read();
  }

  /** Cancels the running request. */
  close(): void {
    this.#search.abort();
  }

  async #read(): Promise<void> {
    this.#search.abort();
    const { signal } = this.#search = new AbortController();
    this.state.value = "searching";
    this.error.value = undefined;
    try {
      const page = await this.#api.searchCardSite(this.#asked!, this.#next, signal);
      const known = new Set(this.found.peek().map(({ id }) => id));
      this.found.value = [...this.found.peek(), ...page.items.filter(({ id }) => !known.has(id))];
      this.hasMore.value = page.next_cursor !== null;
      this.#next = page.next_cursor ?? "1";
      this.state.value = "ready";
    } catch (thrown) {
      if (signal.aborted) return;
      this.error.value = asApiError(thrown);
      this.state.value = "failed";
    }
  }
}
