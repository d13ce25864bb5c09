/** The settings: pages with URLs, and a search over all of them. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { BUILTIN_PRESET_ID } from "../../api/documents.ts";
import { LinkButton } from "../../components/Button.tsx";
import { lazy } from "../../components/Lazy.tsx";
import { EmptyState } from "../../components/Notice.tsx";
import { useMedia, useTitle } from "../../components/hooks.ts";
import { List, ListRow } from "../../components/lists/List.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { AddConnectionPage, ConnectionsPage, EditConnectionPage } from "../connections/ConnectionsPage.tsx";
import { hasState, SectionState } from "./SectionState.tsx";
import { GeneralPage } from "./GeneralPage.tsx";
import { TrashPage } from "./TrashPage.tsx";
import {
  findSettings,
  sectionPath,
  settingEntries,
  SETTINGS_PATH,
  settingsGroups,
  type SettingsSection,
} from "./settings_index.ts";
import { PageHeader } from "../shell/PageHeader.tsx";

const AboutPage = lazy(() => import("../data/AboutPage.tsx").then((file) => file.AboutPage));
const ChangelogPage = lazy(() => import("../releases/ChangelogPage.tsx").then((file) => file.ChangelogPage));
const ImportPage = lazy(() => import("../import_export/ImportPage.tsx").then((file) => file.ImportPage));
const DataPage = lazy(() => import("../data/DataPage.tsx").then((file) => file.DataPage));
const ModelsPage = lazy(() => import("../models/ModelsPage.tsx").then(({ ModelsPage }) => ModelsPage));
const ImagesPage = lazy(() => import("../images/ImagesPage.tsx").then(({ ImagesPage }) => ImagesPage));
const PrivacyPage = lazy(() => import("../auth/PrivacyPage.tsx").then(({ PrivacyPage }) => PrivacyPage));
const SpeechPage = lazy(() => import("../speech/SpeechPage.tsx").then(({ SpeechPage }) => SpeechPage));
const ToolsPage = lazy(() => import("../tools/ToolsPage.tsx").then((file) => file.ToolsPage));
const PersonasPage = lazy(() => import("../personas/PersonasPage.tsx").then((file) => file.PersonasPage));
const PersonaFormPage = lazy(() => import("../personas/PersonaFormPage.tsx").then((file) => file.PersonaFormPage));
const LorebooksPage = lazy(() => import("../lorebooks/LorebooksPage.tsx").then((file) => file.LorebooksPage));
const MemoryPage = lazy(() => import("../memory/MemoryPage.tsx").then((file) => file.MemoryPage));
const PromptTemplatesPage = lazy(() => import("./PromptTemplatesPage.tsx").then((file) => file.PromptTemplatesPage));
const UsagePage = lazy(() => import("../usage/UsagePage.tsx").then((file) => file.UsagePage));
const RegexScriptsPage = lazy(() =>
  import("../regex_scripts/RegexScriptsPage.tsx").then((file) => file.RegexScriptsPage)
);
const PresetsPage = lazy(() => import("../presets/PresetsPage.tsx").then((file) => file.PresetsPage));

/** Phones show either the list of sections or one of them. */
const PHONE_QUERY = "(max-width: 719px)";

/** One section, or the list of them if `section` is empty; `item` is its subject, such as the connection to edit. */
export function SettingsScreen({ section, item }: { section: string; item: string | undefined }) {
  const { device, router } = useStore();
  const [query, setQuery] = useState("");
  const isPhone = useMedia(PHONE_QUERY);
  const isList = section === "";
  const shown = isList ? "general" : section;
  const last = device.lastConversationId.value;
  const sections = settingsGroups().flatMap(({ sections }) => sections);
  const title = isList ? texts.settings.title : sections.find(({ id }) => id === shown)?.title ?? texts.unknown.title;
  const [path, hash] = [router.path.value, router.hash.value];
  useTitle(`${title} · ${texts.product}`);
  useEffect(() => setQuery(""), [path, hash]);
  useEffect(() => showSetting(hash), [path, hash, query]);
  const isSearching = query.trim() !== "";
  return (
    <main id="main" class="page" tabIndex={-1}>
      <PageHeader title={texts.settings.title}>
        {isPhone && !isList
          ? <a class="back-link" href={SETTINGS_PATH}>{texts.settings.backToList}</a>
          : (
            <a class="back-link" href={last === undefined ? "/new" : `/c/${encodeURIComponent(last)}`}>
              {texts.settings.back}
            </a>
          )}
      </PageHeader>
      <div class="settings">
        {(!isPhone || isList) && (
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
            {!(isPhone && isSearching) && <SectionList current={isPhone ? undefined : shown} />}
          </div>
        )}
        {(!isPhone || !isList || isSearching) && (
          <div class="settings-body">
            {isSearching ? <Found query={query} onChoose={() => setQuery("")} /> : getPage(shown, item)}
          </div>
        )}
      </div>
    </main>
  );
}

/** The sections in their groups, each with a line of its state. */
function SectionList({ current }: { current: string | undefined }) {
  const list = useRef<HTMLElement>(null);
  // In a low window the list scrolls by itself.
  useEffect(() => list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" }), [current]);
  return (
    <nav ref={list} class="settings-nav" aria-label={texts.settings.sections}>
      {settingsGroups().map(({ title, sections }) => (
        <div
          key={title ?? sections[0]?.id}
          role={title === undefined ? undefined : "group"}
          aria-labelledby={title && `group-${sections[0]?.id}`}
        >
          {title && <p class="settings-group" id={`group-${sections[0]?.id}`}>{title}</p>}
          {sections.map((section) => (
            <SectionRow key={section.id} section={section} isCurrent={section.id === current} />
          ))}
        </div>
      ))}
    </nav>
  );
}

/** The state is beside the link, not in it: it describes the page, and isn't part of its name. */
function SectionRow({ section, isCurrent }: { section: SettingsSection; isCurrent: boolean }) {
  const stateId = hasState(section.id) ? `section-${section.id}-state` : undefined;
  return (
    <div class={`settings-row ${stateId === undefined ? "" : "has-state"}`}>
      <a href={sectionPath(section)} aria-current={isCurrent ? "page" : undefined} aria-describedby={stateId}>
        {section.title}
      </a>
      {stateId && <SectionState id={stateId} section={section.id} />}
    </div>
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
  const { preferences } = useStore();
  const presetId = preferences.settings.value?.preset_id ?? BUILTIN_PRESET_ID;
  const found = findSettings(query, settingEntries({ presetId }));
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
  if (section === "memory") return <MemoryPage />;
  if (section === "templates") return <PromptTemplatesPage />;
  if (section === "regex") return <RegexScriptsPage />;
  if (section === "presets") return <PresetsPage item={item} />;
  if (section === "tools") return <ToolsPage item={item} />;
  if (section === "models") return <ModelsPage />;
  if (section === "usage") return <UsagePage />;
  if (section === "privacy") return <PrivacyPage />;
  if (section === "data" && item === "import") return <ImportPage />;
  if (section === "data" && item === undefined) return <DataPage />;
  if (section === "trash") return <TrashPage />;
  if (section === "personas") {
    return item === undefined
      ? <PersonasPage />
      : <PersonaFormPage key={item} id={item === "new" ? undefined : item} />;
  }
  if (section === "about" && item === "changelog") return <ChangelogPage />;
  if (section === "about") return <AboutPage />;
  if (section === "connections") {
    if (item === undefined) return <ConnectionsPage />;
    return item === "new" ? <AddConnectionPage /> : <EditConnectionPage key={item} id={item} />;
  }
  return (
    <EmptyState title={texts.unknown.title} text={texts.unknown.text}>
      <LinkButton href="/settings" kind="primary">{texts.nav.settings}</LinkButton>
    </EmptyState>
  );
}
