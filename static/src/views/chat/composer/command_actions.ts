/** Actions of commands and shortcuts that need more than the chat: navigation, panels. */
import type { PromptTemplate } from "../../../api/types.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import type { CommandActions, CommandName } from "../../../state/chat/slash_commands.ts";
import { type Store, useStore } from "../../../state/store.ts";
import { texts } from "../../../texts/texts.ts";
import { forkChat } from "../messages/MessageActionBar.tsx";
import { openChatPanel } from "../panels/panels.tsx";

/** Returns the actions for the open chat. @param draw Opens the image dialog, with a prompt or none. */
export function useCommandActions(chat: OpenChat, draw: (prompt: string) => void): CommandActions {
  const store = useStore();
  return {
    open(what) {
      if (what === "new") store.router.go("/new");
      else if (what === "temporary") store.router.go("/temporary");
      else if (what === "model") chat.picker.value = { kind: "chat" };
      else if (what === "persona") store.router.go("/settings/personas");
      else if (what === "lorebook") openLorebook(store, chat);
      else openChatPanel(store, what);
    },
    draw,
    speakAs: (name) => void speakAs(store, chat, name).catch((thrown) => store.report(thrown)),
    fork: (messageId) => void forkChat(store, chat, messageId),
    remove: (messageId) =>
      void store.deleteMessage(chat, messageId, false, { done: texts.chat.removed, undo: texts.undo }),
    fail: (thrown) => store.report(thrown),
  };
}

/** The lorebook inside the character's card. */
function openLorebook(store: Store, chat: OpenChat): void {
  const id = chat.head.peek()?.participants?.[0]?.character_id;
  if (id !== undefined) store.router.go(`/characters/${encodeURIComponent(id)}/edit#lorebook`);
}

async function speakAs(store: Store, chat: OpenChat, name: string): Promise<void> {
  // Those added elsewhere count, too.
  await store.people.refreshPersonas();
  const lowerName = name.toLocaleLowerCase();
  const personas = store.people.shownPersonas.peek().map((persona) => ({
    ...persona,
    name: persona.name.toLocaleLowerCase(),
  }));
  const found = personas.find((persona) => persona.name === lowerName) ??
    personas.find((persona) => persona.name.startsWith(lowerName));
  if (found === undefined) return store.toasts.show(texts.chat.noPersona(name), { isError: true });
  await chat.speakAs(found.id);
}

/** Id of the list, for the composer's ARIA attributes. */
export const LIST_ID = "composer-commands";

/** An entry of the list. */
export type Listed =
  | { kind: "command"; name: CommandName }
  | { kind: "template"; name: string; template: PromptTemplate };

/** Id of one option. */
export function toOptionId({ kind, name }: Listed): string {
  return kind === "command" ? `${LIST_ID}-${name}` : `${LIST_ID}-template-${name}`;
}
