/** Prompt templates with a button above the composer: quick replies. */
import type { PromptTemplate } from "../../api/types.ts";
import type { OpenChat } from "./open_chat.ts";

/** A template with a button above the composer. */
export type QuickReply = PromptTemplate & { button: NonNullable<PromptTemplate["button"]> };

/** Returns the templates with a button in this chat. */
export function listQuickReplies(templates: readonly PromptTemplate[], chat: OpenChat): QuickReply[] {
  const [character, other] = chat.options.value.participants ?? [];
  const alone = other === undefined ? character?.character_id : undefined;
  return templates.filter((template): template is QuickReply => {
    const { button } = template;
    if (button === undefined) return false;
    const { character_ids: characters, conversation_ids: chats } = button;
    if (characters === undefined && chats === undefined) return true;
    return chats?.includes(chat.id) === true || alone !== undefined && characters?.includes(alone) === true;
  });
}

/** Whether a press sends a message. */
export function isSending({ button }: QuickReply): boolean {
  return button.action.startsWith("send");
}

const TYPED_TEXT = /\{\{input\}\}/gi;

/** Whether what is typed isn't sent with the text, and stays. */
export function keepsTyped({ text, button }: QuickReply): boolean {
  return button.action === "send" && text.search(TYPED_TEXT) < 0;
}

/** Joins the text of a quick reply with what is typed. */
export function joinQuickReply(text: string, action: QuickReply["button"]["action"], typed: string): string {
  if (text.search(TYPED_TEXT) >= 0) return text.replace(TYPED_TEXT, () => typed);
  if (typed.trim() === "" || action === "send") return text;
  return action.endsWith("_before") ? `${text} ${typed}` : `${typed} ${text}`;
}
