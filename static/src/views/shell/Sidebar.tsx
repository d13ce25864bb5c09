/** The sidebar: new chat, search, the chats, and at the bottom persona, model state, activity and settings. */
import { useEffect } from "preact/hooks";
import { IconButton, LinkButton } from "../../components/Button.tsx";
import { Icon, type IconName } from "../../components/Icon.tsx";
import { Menu } from "../../components/overlays/Menu.tsx";
import { Portrait } from "../../components/Portrait.tsx";
import { getStateTone } from "../../state/connections/connection_state.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { toPersonaPortraitProps } from "../characters/Avatars.tsx";
import { listPersonaItems } from "../chat/PersonaMenu.tsx";
import { getStateText } from "../connections/ConnectionStateText.tsx";
import { ChatList } from "./ChatList.tsx";

/** The content of the sidebar; `onClose` is set in the drawer. */
export function Sidebar({ onClose }: { onClose?: () => void }) {
  const { device, overlay } = useStore();
  return (
    <nav class="sidebar-inner" aria-label={texts.nav.label}>
      <div class="sidebar-head">
        <span class="brand">{texts.product}</span>
        <IconButton icon="palette" label={texts.palette.title} onClick={() => overlay.value = "palette"} />
        {onClose
          ? <IconButton icon="close" label={texts.close} onClick={onClose} />
          : <IconButton icon="sidebar" label={texts.nav.fold} onClick={() => device.isSidebarFolded.value = true} />}
      </div>
      <LinkButton href="/new" icon="plus">{texts.nav.newChat}</LinkButton>
      <NavRow href="/search" icon="search" screen="search" text={texts.nav.search} />
      <NavRow href="/characters" icon="people" screen="characters" text={texts.nav.characters} />
      <NavRow href="/library" icon="library" screen="library" text={texts.nav.library} />
      <ChatList />
      <PersonaRow />
      <ConnectionState />
      <ActivityRow />
      <NavRow href="/settings" icon="gear" screen="settings" text={texts.nav.settings} />
    </nav>
  );
}

function NavRow(
  { href, icon, screen, text }: { href: string; icon: IconName; screen: string; text: string },
) {
  const isCurrent = useStore().router.screen.value.name === screen;
  return (
    <a class="nav-row" href={href} aria-current={isCurrent ? "page" : undefined}>
      <Icon name={icon} />
      {text}
    </a>
  );
}

function ActivityRow() {
  const { activity, router } = useStore();
  const count = activity.count.value;
  const waiting = activity.waitingCalls.value;
  return (
    <a
      class="nav-row"
      href="/activity"
      aria-current={router.screen.value.name === "activity" ? "page" : undefined}
    >
      <Icon name="activity" />
      {texts.nav.activity}
      {count > 0 && (
        <>
          {waiting === 0 && <span class="badge" aria-hidden="true">{count}</span>}
          <span class="visually-hidden">{texts.nav.runningCount(count)}</span>
        </>
      )}
      {waiting > 0 && <span class="nav-waiting">{texts.nav.waitingCalls(waiting)}</span>}
    </a>
  );
}

/** Selects the persona of new chats. A chat's own persona is shown in its header. */
function PersonaRow() {
  const store = useStore();
  const { people, preferences } = store;
  useEffect(() => people.loadPersonas(), []);
  const settings = preferences.settings.value;
  const persona = people.persona(settings?.default_persona_id);
  // A persona that is still loading is not shown as none.
  if (!settings || (settings.default_persona_id && !persona && people.personasState.value !== "ready")) return null;
  const t = texts.personas;
  const name = persona?.name ?? (settings.display_name || t.nobody);
  const choose = (id: string | null) =>
    preferences.change({ default_persona_id: id }).catch((thrown) => store.report(thrown));
  return (
    <Menu
      class="nav-row persona-row"
      label={t.you(name)}
      items={listPersonaItems(store, persona?.id, (id) => void choose(id))}
    >
      {persona?.has_avatar ? <Portrait {...toPersonaPortraitProps(persona)} widthPx={20} /> : <Icon name="user" />}
      <span class="connection-name">{name}</span>
    </Menu>
  );
}

/** The active model and whether it can be reached. */
function ConnectionState() {
  const { connections } = useStore();
  const active = connections.active.value;
  const found = active && connections.getState(active);
  const tone = found ? getStateTone(found) : "off";
  const isUnknown = found?.kind === "unknown";
  const state = !found ? "" : isUnknown ? texts.connection.checking : getStateText(active, found);
  if (connections.state.value !== "ready") return null;
  return (
    <a class="nav-row connection-state" href="/settings/connections">
      <span class={`state-mark ${tone}`} aria-hidden="true" />
      <span class="connection-name">{active ? active.name : texts.connection.none}</span>
      {active && state !== active.name && <span class="connection-status">{state}</span>}
    </a>
  );
}
