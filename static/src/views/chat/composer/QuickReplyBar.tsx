/** The buttons of prompt templates, above the composer: quick replies. */
import { useState } from "preact/hooks";
import type { PromptTemplate } from "../../../api/types.ts";
import type { OpenChat } from "../../../state/chat/open_chat.ts";
import {
  isSending,
  joinQuickReply,
  keepsTyped,
  listQuickReplies,
  type QuickReply,
} from "../../../state/chat/quick_replies.ts";
import { isScriptCommand, toTemplateSnippet } from "../../../state/chat/slash_commands.ts";
import { useStore } from "../../../state/store.ts";
import { getQuickReplyTexts } from "../../../texts/quick_reply_texts.ts";

/**
 * One row, which scrolls on phones; nothing if this chat has none.
 *
 * @param props.fill Asks for the variables of a template, then passes its text on.
 * @param props.insert Sets the text of the composer.
 */
export function QuickReplyBar(
  { chat, fill, insert }: {
    chat: OpenChat;
    fill: (template: PromptTemplate, use: (text: string) => void) => void;
    insert: (text: string) => void;
  },
) {
  const replies = listQuickReplies(useStore().preferences.settings.value?.prompt_templates ?? [], chat);
  const t = getQuickReplyTexts();
  const isBusy = chat.replies.isRunning.value || chat.replies.impersonation.value !== undefined;
  /** The script that was pressed. */
  const [script, setScript] = useState<string>();
  if (replies.length === 0) return null;
  const use = (reply: QuickReply) => {
    if (isBusy && isSending(reply)) return;
    fill(reply, (filled) => {
      const typed = chat.draft.text.peek();
      insert(joinQuickReply(filled, reply.button.action, typed));
      if (!isSending(reply)) return;
      chat.replies.send();
      const isSent = chat.draft.text.peek() === "";
      if (keepsTyped(reply)) chat.draft.type(isSent ? typed : joinQuickReply(filled, "send_after", typed));
    });
  };
  return (
    <>
      <p class="hint quick-reply-script" role="status">{script !== undefined && t.scriptDoesNothing(script)}</p>
      <div class="quick-replies" role="group" aria-label={t.quickReplies}>
        {replies.map((reply) => {
          const isScript = isScriptCommand(reply);
          return (
            <button
              key={reply.name}
              type="button"
              class={isScript ? "chip is-script" : "chip"}
              title={isScript ? `${t.isScript}: ${toTemplateSnippet(reply.text)}` : toTemplateSnippet(reply.text)}
              aria-disabled={isScript || (isBusy && isSending(reply))}
              onClick={() => {
                setScript(isScript ? reply.button.label : undefined);
                if (!isScript) use(reply);
              }}
            >
              {isScript && <code aria-hidden="true">/</code>}
              {reply.button.label}
              {isScript && <span class="visually-hidden">{` (${t.isScript})`}</span>}
            </button>
          );
        })}
      </div>
    </>
  );
}
