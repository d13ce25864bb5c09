/** The header of a chat: title, model, and panels. */
import { IconButton } from "../../components/Button.tsx";
import { Icon } from "../../components/Icon.tsx";
import { useMedia } from "../../components/hooks.ts";
import { PHONE_QUERY } from "../../components/overlays/Menu.tsx";
import { lazy } from "../../components/Lazy.tsx";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { SidebarButton } from "../shell/SidebarButton.tsx";
import { openChatPanel } from "./panels/panels.tsx";
import { PersonaMenu } from "./PersonaMenu.tsx";

const ModelPicker = lazy(() => import("./ModelPicker.tsx").then(({ ModelPicker }) => ModelPicker));

/** Stays in place while the messages scroll. */
export function ChatHeader({ chat, title }: { chat: OpenChat; title: string }) {
  const store = useStore();
  // There is no space for it next to the title.
  const isPhone = useMedia(PHONE_QUERY);
  const isUntouched = chat.isEmpty.value && chat.isNew;
  const panel = store.panel.value?.id;
  return (
    <>
      <header class="chat-head">
        <SidebarButton />
        <div class="chat-title-box">
          <h1 title={title}>{title}</h1>
          {isPhone ? <ModelButton chat={chat} /> : <Origin chat={chat} />}
        </div>
        {chat.isTemporary && !isPhone && <span class="badge">{texts.chat.notSaved}</span>}
        {!isPhone && <ModelButton chat={chat} />}
        {isUntouched && (
          <IconButton
            icon="temporary"
            label={texts.chat.temporaryToggle}
            isPressed={chat.isTemporary}
            onClick={() => store.router.go(chat.isTemporary ? "/new" : "/temporary")}
          />
        )}
        {!isUntouched && !chat.isTemporary && (
          <IconButton
            icon="search"
            label={texts.chat.search.label}
            onClick={() => chat.search.isOpen.value = true}
          />
        )}
        <PersonaMenu chat={chat} />
        <IconButton
          icon="sliders"
          label={texts.chat.options.title}
          isPressed={panel === "options"}
          onClick={() => openChatPanel(store, "options")}
        />
        {chat.isModelPickerOpen.value && (
          <ModelPicker
            chat={chat}
            onClose={() => chat.isModelPickerOpen.value = false}
          />
        )}
      </header>
      {isPhone && <Origin chat={chat} />}
    </>
  );
}

/** The model of this chat; opens the picker. */
function ModelButton({ chat }: { chat: OpenChat }) {
  const { connections } = useStore();
  const { connection_id, model } = chat.options.value;
  const chosen = connections.items.value.find((each) => each.id === connection_id);
  const connection = chosen ?? connections.active.value;
  if (!connection) return null;
  const name = model ?? (connection.model || connection.name);
  return (
    <button
      type="button"
      class="model-button"
      aria-haspopup="dialog"
      title={texts.chat.model.button(name)}
      aria-label={texts.chat.model.button(name)}
      onClick={() => chat.isModelPickerOpen.value = true}
    >
      <span>{name}</span>
      <Icon name="below" />
    </button>
  );
}

/** The chat that this one was copied from. */
function Origin({ chat }: { chat: OpenChat }) {
  const { origin } = chat.actions.branches.value;
  if (!origin) return null;
  const address = `/c/${encodeURIComponent(origin.conversation_id)}#${encodeURIComponent(origin.message_id)}`;
  return <a class="chat-origin" href={address}>{texts.chat.branchOf(origin.title || texts.chat.untitled)}</a>;
}
