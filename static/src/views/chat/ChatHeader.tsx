/** The header of a chat: title, model, and panels. */
import { IconButton } from "../../components/Button.tsx";
import { useState } from "preact/hooks";
import { Avatars } from "../characters/Avatars.tsx";
import { Icon } from "../../components/Icon.tsx";
import { useMedia } from "../../components/hooks.ts";
import { Menu, PHONE_QUERY } from "../../components/overlays/Menu.tsx";
import { lazy } from "../../components/Lazy.tsx";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { findReplyModel, getStateTone } from "../../state/connections/connection_state.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { getStateText } from "../connections/ConnectionStateText.tsx";
import { SidebarButton } from "../shell/PageHeader.tsx";
import { listTitleMenu } from "./chat_commands.ts";
import { openChatPanel } from "./panels/panels.tsx";
import { PersonaMenu } from "./PersonaMenu.tsx";

const CharacterStory = lazy(
  () => import("../characters/CharacterStory.tsx").then((file) => file.CharacterStory),
  { as: "overlay" },
);

const ChatDialog = lazy(() => import("../shell/ChatDialogs.tsx").then((file) => file.ChatDialog), { as: "overlay" });

const ExpressionFace = lazy(() => import("./Expressions.tsx").then((file) => file.ExpressionFace), { as: "overlay" });

const ModelPicker = lazy(() => import("./ModelPicker.tsx").then(({ ModelPicker }) => ModelPicker));

/** Stays in place while the messages scroll. @param props.who Names of its characters. */
export function ChatHeader(
  { chat, title, who = "" }: { chat: OpenChat; title: string; who?: string },
) {
  const store = useStore();
  // There is no space for it next to the title.
  const isPhone = useMedia(PHONE_QUERY);
  const isUntouched = chat.isEmpty.value && chat.isNew;
  const panel = store.panel.value?.id;
  const ids = (chat.options.value.participants ?? []).map(({ character_id }) => character_id);
  const position = useExpressionPosition(chat);
  const listed = store.chats.items.value.find(({ id }) => id === chat.id);
  const [isStory, setStory] = useState(false);
  const openSearch = () => chat.search.isOpen.value = true;
  return (
    <>
      <header class="chat-head">
        <SidebarButton />
        {ids.length > 0 && (
          <button
            type="button"
            class="face-button"
            aria-haspopup="dialog"
            aria-label={texts.chat.showCharacter(who || texts.nav.characters)}
            onClick={() => setStory(true)}
          >
            <Avatars ids={ids} widthPx={34} />
            {position === "header" && <ExpressionFace chat={chat} />}
          </button>
        )}
        <div class="chat-title-box">
          <div class="chat-title-line">
            <h1 title={who === "" ? title : `${who}: ${title}`}>
              {who === "" ? title : (
                <>
                  <b>{who}:</b> <span class="chat-about">{title}</span>
                </>
              )}
            </h1>
            {!isUntouched && (
              <Menu
                class="title-menu"
                label={texts.chat.headerMenu}
                items={listTitleMenu(store, chat, isPhone ? [] : ["search", "options"])}
              >
                <Icon name="below" />
              </Menu>
            )}
          </div>
          {!isPhone ? <Origin chat={chat} /> : !isUntouched && <ModelButton chat={chat} />}
        </div>
        {chat.isTemporary && !isPhone && <span class="badge">{texts.chat.notSaved}</span>}
        {!isPhone && !isUntouched && <ModelButton chat={chat} />}
        {isUntouched && (
          <IconButton
            icon="temporary"
            label={texts.chat.temporaryToggle}
            isPressed={chat.isTemporary}
            onClick={() => store.router.go(chat.isTemporary ? "/new" : "/temporary")}
          />
        )}
        {!isPhone && !isUntouched && !chat.isTemporary && (
          <IconButton icon="search" label={texts.chat.search.label} onClick={openSearch} />
        )}
        <PersonaMenu chat={chat} />
        {isPhone && !isUntouched
          ? <IconButton icon="plus" label={texts.nav.newChat} onClick={() => store.router.go("/new")} />
          : (
            <IconButton
              icon="sliders"
              label={texts.chat.options.title}
              isPressed={panel === "options"}
              onClick={() => openChatPanel(store, "options")}
            />
          )}
        {chat.question.value && listed && (
          <ChatDialog
            kind={chat.question.value}
            item={listed}
            onClose={() => chat.question.value = undefined}
          />
        )}
        {chat.picker.value && (
          <ModelPicker
            chat={chat}
            purpose={chat.picker.value}
            onClose={() => chat.picker.value = undefined}
          />
        )}
      </header>
      {isPhone && <Origin chat={chat} />}
      {isStory && <CharacterStory ids={ids} onClose={() => setStory(false)} />}
    </>
  );
}

/** Returns where the mood images of the chat's characters are shown; undefined if they aren't. */
export function useExpressionPosition(chat: OpenChat): "aside" | "header" | undefined {
  const { preferences, panel } = useStore();
  const isWide = useMedia("(min-width: 1100px)");
  const hasCharacter = (chat.options.value.participants?.length ?? 0) > 0;
  if (!hasCharacter || preferences.settings.value?.show_expressions !== true) return undefined;
  return isWide && !panel.value ? "aside" : "header";
}

/** The model that answers in this chat, and whether it can; opens the picker. A new chat has it at its composer. */
export function ModelButton({ chat }: { chat: OpenChat }) {
  const { connections } = useStore();
  const { connection_id, model } = chat.options.value;
  const connection = connections.find(connection_id);
  if (!connection) return null;
  const name = findReplyModel(connection, model) ?? connection.name;
  const state = connections.getState(connection);
  const label = [
    texts.chat.model.button(name),
    name === connection.name ? "" : connection.name,
    getStateText(connection, state),
  ].filter(Boolean).join(" · ");
  return (
    <button
      type="button"
      class="model-button"
      aria-haspopup="dialog"
      title={label}
      aria-label={label}
      onClick={() => chat.picker.value = { kind: "chat" }}
    >
      {connection.kind !== "demo" && <span class={`state-mark ${getStateTone(state)}`} aria-hidden="true" />}
      <span class="model-name">{name}</span>
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
