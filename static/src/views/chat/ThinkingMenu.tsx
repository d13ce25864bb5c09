/** The thinking effort of a chat's model: a menu for the composer, and helpers that the chat's options share. */
import { Icon } from "../../components/Icon.tsx";
import { Menu } from "../../components/overlays/Menu.tsx";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import {
  type Effort,
  findReplyModel,
  findThinking,
  getEffortLabel,
  getEffortName,
  listEfforts,
  type Thinking,
} from "../../state/connections/connection_state.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Returns how the thinking of the chat's model can be set; undefined if it can't. Reads signals. */
export function useThinking(chat: OpenChat): Thinking | undefined {
  const { connections } = useStore();
  const { connection_id, model } = chat.options.value;
  const connection = connections.find(connection_id);
  return findThinking(connection, findReplyModel(connection, model));
}

/** Returns the chosen effort; undefined for the model's default. */
export function getEffort(chat: OpenChat, thinking: Thinking): Effort | undefined {
  const chosen = chat.options.value.params?.reasoning_effort;
  return listEfforts(thinking).find((effort) => effort === chosen);
}

/**
 * Nothing if the model's thinking can't be set. For a server that says nothing of itself, it stays among the chat's
 * options until it is used.
 */
export function ThinkingMenu(
  { chat, isNamed = false }: {
    chat: OpenChat;
    /** Shows the effort as text, too. */
    isNamed?: boolean;
  },
) {
  const store = useStore();
  const thinking = useThinking(chat);
  const isSet = chat.options.value.params?.reasoning_effort !== undefined;
  if (!thinking || !(thinking.isKnown || isSet)) return null;
  const effort = getEffort(chat, thinking);
  const t = texts.chat.effort;
  const choose = (value: Effort | undefined) => () =>
    chat.changeParam("reasoning_effort", value).catch((thrown) => store.report(thrown));
  const label = t.button(effort === undefined ? t.standard : getEffortName(thinking, effort));
  const kind = isNamed ? "thinking-chip" : "icon-button quiet";
  return (
    <Menu
      class={effort === undefined || effort === "none" ? kind : `${kind} is-on`}
      label={label}
      items={[
        { label: t.standard, isChecked: effort === undefined, onSelect: choose(undefined) },
        ...listEfforts(thinking).map((value) => ({
          label: getEffortLabel(thinking, value),
          isChecked: value === effort,
          onSelect: choose(value),
        })),
      ]}
    >
      <Icon name="bulb" />
      {isNamed && label}
    </Menu>
  );
}
