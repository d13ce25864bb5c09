/** "Remember this": a note from a message. */
import { memoryApi } from "../../api/memories.ts";
import type { Message } from "../../api/types.ts";
import { splitReasoning, textOf } from "../../state/chat/message_text.ts";
import type { OpenChat } from "../../state/chat/open_chat.ts";
import { newId } from "../../state/app/ids.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { NoteDialog } from "./NoteDialog.tsx";
import { listChatScopes } from "./scope_names.ts";

/** The text can be shortened before it is saved. */
export function RememberDialog(
  { chat, message, onClose }: { chat: OpenChat; message: Message; onClose: () => void },
) {
  const store = useStore();
  const scopes = listChatScopes(store, chat);
  const selected = globalThis.getSelection?.()?.toString().trim() ?? "";
  const whole = splitReasoning(textOf(message.content)).said.trim();
  return (
    <NoteDialog
      title={texts.memory.remember}
      text={selected !== "" && whole.includes(selected) ? selected : whole}
      scope={scopes[0]!.scope}
      scopes={scopes}
      onClose={onClose}
      onSave={async (fields) => {
        const source = { conversation_id: chat.id, message_id: message.id };
        await memoryApi(store.api.client).save(newId(), { ...fields, source });
        store.toasts.show(texts.memory.remembered);
      }}
    />
  );
}
