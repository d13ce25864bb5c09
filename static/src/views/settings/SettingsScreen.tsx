/** The settings: pages with URLs, and a search over all of them. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { lazy } from "../../components/Lazy.tsx";
import { EmptyState } from "../../components/Notice.tsx";
import { useTitle } from "../../components/hooks.ts";
import { List, ListRow } from "../../components/lists/List.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { AddConnectionPage, ConnectionsPage, EditConnectionPage } from "../connections/ConnectionsPage.tsx";
import { GeneralPage } from "./GeneralPage.tsx";
import { TrashPage } from "./TrashPage.tsx";
import { findSettings, settingsSections } from "./settings_index.ts";
import { PageHeader } from "../shell/PageHeader.tsx";

const AboutPage = lazy(() => import("../data/AboutPage.tsx").then((file) => file.AboutPage));
const ImportPage = lazy(() => import("../import_export/ImportPage.tsx").then((file) => file.ImportPage));
const DataPage = lazy(() => import("../data/DataPage.tsx").then((file) => file.DataPage));
const ModelsPage = lazy(() => import("../models/ModelsPage.tsx").then(({ ModelsPage }) => ModelsPage));
const ImagesPage = lazy(() => import("../images/ImagesPage.tsx").then(({ ImagesPage }) => ImagesPage));
const PrivacyPage = lazy(() => import("../auth/PrivacyPage.tsx").then(({ PrivacyPage }) => PrivacyPage));
const SpeechPage = lazy(() => import("../speech/SpeechPage.tsx").then(({ SpeechPage }) => SpeechPage));
const PersonasPage = lazy(() => import("../personas/PersonasPage.tsx").then((file) => file.PersonasPage));
const PersonaFormPage = lazy(() => import("../personas/PersonaFormPage.tsx").then((file) => file.PersonaFormPage));
const LorebooksPage = lazy(() => import("../lorebooks/LorebooksPage.tsx").then((file) => file.LorebooksPage));
const PresetsPage = lazy(() => import("../presets/PresetsPage.tsx").then((file) => file.PresetsPage));

/** One section; `item` is its subject, such as the connection to edit. */
export function SettingsScreen({ section, item }: { section: string; item: string | undefined }) {
  const { device, router } = useStore();
  const [query, setQuery] = useState("");
  const last = device.lastConversationId.value;
  const sections = settingsSections();
  const title = sections.find(({ id }) => id === section)?.title ?? texts.unknown.title;
  const [path, hash] = [router.path.value, router.hash.value];
  useTitle(`${title} · ${texts.product}`);
  useEffect(() => setQuery(""), [path, hash]);
  useEffect(() => showSetting(hash), [path, hash, query]);
  const nav = useRef<HTMLElement>(null);
  // On phones the sections are one scrolling row.
  useEffect(() => {
    nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [section]);
  return (
    <main id="main" class="page" tabIndex={-1}>
      <PageHeader title={texts.settings.title}>
        <a class="back-link" href={last === undefined ? "/new" : `/c/${encodeURIComponent(last)}`}>
          {texts.settings.back}
        </a>
      </PageHeader>
      <div class="settings">
        <div class="settings-side">
          <input
            type="search"
            class="settings-search"
            value={query}
            placeholder={texts.nav.search}
            aria-label={texts.settings.search}
            autocomplete="off"
            onInput={(event) => setQuery(event.currentTarget.value)}
          />
          <nav ref={nav} class="settings-nav" aria-label={texts.settings.sections}>
            {sections.map(({ id, title }) => (
              <a key={id} href={`/settings/${id}`} aria-current={id === section ? "page" : undefined}>{title}</a>
            ))}
          </nav>
        </div>
        <div class="settings-body">
          {query.trim() === "" ? getPage(section, item) : <Found query={query} onChoose={() => setQuery("")} />}
        </div>
      </div>
    </main>
  );
}

/**
 * Scrolls to the setting in the URL and focuses it: at once, or when it appears, since pages load on demand. Stops if
 * the user does something else. Returns a function that cancels the wait.
 */
function showSetting(id: string): (() => void) | undefined {
  if (id === "") return;
  const waiting = new AbortController();
  const show = () => {
    const control = document.getElementById(id);
    if (control === null) return;
    waiting.abort();
    control.scrollIntoView({ block: "center" });
    control.focus({ preventScroll: true });
  };
  show();
  if (waiting.signal.aborted) return;
  const changes = new MutationObserver(show);
  waiting.signal.addEventListener("abort", () => changes.disconnect());
  changes.observe(document.body, { childList: true, subtree: true });
  for (const deed of ["pointerdown", "keydown", "wheel"]) {
    document.addEventListener(deed, () => waiting.abort(), { signal: waiting.signal, passive: true });
  }
  return () => waiting.abort();
}

function Found({ query, onChoose }: { query: string; onChoose: () => void }) {
  const found = findSettings(query);
  return (
    <section>
      <h2>{texts.settings.found}</h2>
      <p class="visually-hidden" role="status">{texts.settings.foundCount(found.length)}</p>
      {found.length === 0 ? <p class="muted">{texts.settings.foundNone}</p> : (
        <div onClick={onChoose}>
          <List label={texts.settings.found}>
            {found.map(({ title, place, address }) => (
              <ListRow key={`${address} ${title}`} title={title} text={place} href={address} />
            ))}
          </List>
        </div>
      )}
    </section>
  );
}

function getPage(section: string, item: string | undefined): ComponentChildren {
  if (section === "general") return <GeneralPage />;
  if (section === "voice") return <SpeechPage />;
  if (section === "images") return <ImagesPage key={item} item={item} />;
  if (section === "lorebooks") return <LorebooksPage item={item} />;
  if (section === "presets") return <PresetsPage item={item} />;
  if (section === "models") return <ModelsPage />;
  if (section === "privacy") return <PrivacyPage />;
  if (section === "data" && item === "import") return <ImportPage />;
  if (section === "data" && item === undefined) return <DataPage />;
  if (section === "trash") return <TrashPage />;
  if (section === "personas") {
    return item === undefined
      ? <PersonasPage />
      : <PersonaFormPage key={item} id={item === "new" ? undefined : item} />;
  }
  if (section === "about") return <AboutPage />;
  if (section === "connections") {
    if (item === undefined) return <ConnectionsPage />;
    return item === "new" ? <AddConnectionPage /> : <EditConnectionPage key={item} id={item} />;
  }
  return <EmptyState title={texts.unknown.title} text={texts.unknown.text} />;
}
