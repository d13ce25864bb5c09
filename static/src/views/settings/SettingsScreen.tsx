/** The settings: pages with addresses, not a dialog. */
import type { ComponentChildren } from "preact";
import { useTitle } from "../../components/hooks.ts";
import { EmptyState } from "../../components/EmptyState.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { SidebarButton } from "../shell/SidebarButton.tsx";
import { AboutPage } from "./AboutPage.tsx";
import { ConnectionFormPage } from "./ConnectionFormPage.tsx";
import { ConnectionsPage } from "./ConnectionsPage.tsx";
import { GeneralPage } from "./GeneralPage.tsx";

const SECTIONS = [
  { id: "general", title: texts.settings.general },
  { id: "connections", title: texts.settings.connections },
  { id: "about", title: texts.settings.about },
];

/** One section; `item` is what it is about, such as the connection to edit. */
export function SettingsScreen({ section, item }: { section: string; item: string | undefined }) {
  const { device } = useStore();
  const last = device.lastConversationId.value;
  const title = SECTIONS.find(({ id }) => id === section)?.title ?? texts.unknown.title;
  useTitle(`${title} · ${texts.product}`);
  return (
    <main id="main" class="page" tabIndex={-1}>
      <header class="chat-head">
        <SidebarButton />
        <h1>{texts.settings.title}</h1>
        <a class="back-link" href={last === undefined ? "/new" : `/c/${encodeURIComponent(last)}`}>
          {texts.settings.back}
        </a>
      </header>
      <div class="settings">
        <nav class="settings-nav" aria-label={texts.settings.sections}>
          {SECTIONS.map(({ id, title }) => (
            <a key={id} href={`/settings/${id}`} aria-current={id === section ? "page" : undefined}>{title}</a>
          ))}
        </nav>
        <div class="settings-body">{bodyOf(section, item)}</div>
      </div>
    </main>
  );
}

function bodyOf(section: string, item: string | undefined): ComponentChildren {
  if (section === "general") return <GeneralPage />;
  if (section === "about") return <AboutPage />;
  if (section === "connections") {
    return item === undefined
      ? <ConnectionsPage />
      : <ConnectionFormPage key={item} id={item === "new" ? undefined : item} />;
  }
  return <EmptyState title={texts.unknown.title} text={texts.unknown.text} />;
}
