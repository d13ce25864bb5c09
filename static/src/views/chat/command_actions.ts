/** What commands and shortcuts do that needs more than the chat: going elsewhere, opening panels. */
import type { CommandActions } from "../../state/commands.ts";
import type { OpenChat } from "../../state/open_chat.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { forkAt } from "./MessageBar.tsx";
import { openChatPanel } from "./panels.tsx";

/** Gives the actions for the open chat. */
export function useCommandActions(chat: OpenChat): CommandActions {
  const store = useStore();
  return {
    open(what) {
      if (what === "new") store.router.go("/new");
      else if (what === "temporary") store.router.go("/temporary");
      else if (what === "model") chat.isModelPickerOpen.value = true;
      else openChatPanel(store, what);
    },
    fork: (messageId) => void forkAt(store, chat, messageId),
    remove: (messageId) =>
      void store.deleteMessage(chat, messageId, false, { done: texts.chat.removed, undo: texts.undo }),
    fail: (thrown) => store.report(thrown),
  };
}
