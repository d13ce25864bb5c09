/** What a message says, whatever form its content has, and what of a conversation is sent to the model. */
import type { ContentPart, Message, RequestMessage } from "../../api/types.ts";

/** Gives the text of a message; parts that are no text are left out. */
export function textOf(content: string | ContentPart[]): string {
  if (typeof content === "string") return content;
  return content.filter((part) => part.type === "text").map((part) => String(part.text ?? "")).join("\n\n");
}

/** A text that begins with thoughts between tags; the end of them may not be there yet. */
const OPEN_THOUGHTS = /^\s*<(think|thinking|thought|reasoning)>([\s\S]*?)(?:<\/\1>\s*|$)/i;
/** Many templates open the thoughts themselves, so that only their end is in the text. */
const END_OF_THOUGHTS = /<\/(?:think|thinking|thought|reasoning)>[ \t]*(?:\n\s*|$)/i;

/**
 * Parts the thoughts that a model wrote into its text from what it says. Servers that know a model's tags keep them apart
 * themselves; many local ones do not.
 */
export function splitReasoning(text: string): { thoughts: string; said: string } {
  const opened = OPEN_THOUGHTS.exec(text);
  if (opened) return { thoughts: opened[2]!.trim(), said: text.slice(opened[0].length) };
  const end = END_OF_THOUGHTS.exec(text);
  if (!end) return { thoughts: "", said: text };
  return { thoughts: text.slice(0, end.index).trim(), said: text.slice(end.index + end[0].length) };
}

/** Gives the content with another text; pictures stay. */
export function withText(content: string | ContentPart[], text: string): string | ContentPart[] {
  if (typeof content === "string") return text;
  const others = content.filter((part) => part.type !== "text");
  return others.length === 0 ? text : [...(text === "" ? [] : [{ type: "text", text }]), ...others];
}

/** Gives the addresses of the pictures of a message. */
export function findImageUrls(content: string | ContentPart[]): string[] {
  if (typeof content === "string") return [];
  return content.flatMap((part) => {
    const image: unknown = part.image_url;
    if (part.type !== "image_url" || typeof image !== "object" || image === null || !("url" in image)) return [];
    return typeof image.url === "string" ? [image.url] : [];
  });
}

/** Gives the addresses of all pictures of a message: those it says, and those that came to it. */
export function listImageUrls({ content, attachments }: Message): string[] {
  return [
    ...findImageUrls(content),
    ...(attachments ?? []).map((name) => `/api/attachments/${encodeURIComponent(name)}`),
  ];
}

/** True for a picture that the page shows itself: one of the server's, or one that stands in the message. */
export function isLocalImage(url: string): boolean {
  return /^(?:data:image\/(?:png|jpeg|webp|gif|avif)[;,]|\/api\/attachments\/[\w.-]+$)/.test(url);
}

/** Gives the turns to send where the server does not know them: everything that holds something and is not hidden. */
export function toRequestMessages(messages: readonly Message[]): RequestMessage[] {
  return messages
    .filter((message) => !message.hidden && message.content.length > 0)
    .map(({ role, content }) => ({ role, content }));
}
