/** The text, reasoning and images of a message's content, and the messages to send. */
import type { ContentPart, Message, RequestMessage, Usage } from "../../api/types.ts";

/** Returns the text of a message without its other parts. */
export function getContentText(content: string | ContentPart[]): string {
  if (typeof content === "string") return content;
  return content.filter((part) => part.type === "text").map((part) => String(part.text ?? "")).join("\n\n");
}

/** Text that begins with tagged reasoning, whose end tag may not have arrived. */
const OPEN_REASONING = /^\s*<(think|thinking|thought|reasoning)>([\s\S]*?)(?:<\/\1>\s*|$)/i;
/** Many chat templates add the opening tag themselves, so that the text only has the end tag. */
const REASONING_END = /<\/(?:think|thinking|thought|reasoning)>[ \t]*(?:\n\s*|$)/i;

/**
 * Splits the reasoning that a model wrote into its text from the reply. Servers that know a model's tags do this
 * themselves; many local ones do not.
 */
export function splitReasoning(text: string): { reasoning: string; text: string } {
  const opened = OPEN_REASONING.exec(text);
  if (opened) return { reasoning: opened[2]!.trim(), text: text.slice(opened[0].length) };
  const end = REASONING_END.exec(text);
  if (!end) return { reasoning: "", text };
  return { reasoning: text.slice(0, end.index).trim(), text: text.slice(end.index + end[0].length) };
}

/** Replaces the text of the content; images stay. */
export function withText(content: string | ContentPart[], text: string): string | ContentPart[] {
  if (typeof content === "string") return text;
  const others = content.filter((part) => part.type !== "text");
  return others.length === 0 ? text : [...(text === "" ? [] : [{ type: "text", text }]), ...others];
}

/** Lists the image URLs in the content. */
export function findImageUrls(content: string | ContentPart[]): string[] {
  if (typeof content === "string") return [];
  return content.flatMap((part) => {
    const image: unknown = part.image_url;
    if (part.type !== "image_url" || typeof image !== "object" || image === null || !("url" in image)) return [];
    return typeof image.url === "string" ? [image.url] : [];
  });
}

/** Lists the image URLs of a message: those in its content, and its attachments. */
export function listImageUrls({ content, attachments }: Message): string[] {
  return [
    ...findImageUrls(content),
    ...(attachments ?? []).filter((name) => !RECORDING.test(name)).map(toAttachmentUrl),
  ];
}

/** Lists the URLs of a message's recordings: its attachments, and sounds that a model returned. */
export function listRecordingUrls({ content, attachments }: Message): string[] {
  const sounds = (typeof content === "string" ? [] : content).flatMap(({ type, audio }) =>
    type === "audio" && typeof audio === "object" && audio !== null && "url" in audio ? [String(audio.url)] : []
  );
  return [
    ...sounds.filter((url) => SOUND.test(url)),
    ...(attachments ?? []).filter((name) => RECORDING.test(name)).map(toAttachmentUrl),
  ];
}

/** Only attachments are played: nothing is loaded from elsewhere. */
const SOUND = /^\/api\/attachments\/[\w.-]+$/;

const RECORDING = /\.(?:wav|webm|ogg|mp4|m4a|mp3|flac)$/i;

function toAttachmentUrl(name: string): string {
  return `/api/attachments/${encodeURIComponent(name)}`;
}

/** True for an image that the page shows itself: an attachment or a data URL. */
export function isLocalImage(url: string): boolean {
  return /^(?:data:image\/(?:png|jpeg|webp|gif|avif)[;,]|\/api\/attachments\/[\w.-]+$)/.test(url);
}

/** Returns the messages to send if the server does not know them: everything that is neither empty nor hidden. */
export function toRequestMessages(messages: readonly Message[]): RequestMessage[] {
  return messages
    .filter((message) => !message.hidden && message.content.length > 0)
    .map(({ role, content }) => ({ role, content }));
}

/** Returns how many tokens of a reply were reasoning; undefined if the server didn't count them. */
export function findThinkingTokens(usage: Usage | undefined): number | undefined {
  const details = (usage as Record<string, unknown> | undefined)?.completion_tokens_details;
  if (typeof details !== "object" || details === null || !("reasoning_tokens" in details)) return undefined;
  const tokens = details.reasoning_tokens;
  return typeof tokens === "number" && tokens > 0 ? tokens : undefined;
}
