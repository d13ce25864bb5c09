/** The names of prompts, as they are shown. */
import type { PresetPrompt } from "../../api/types.ts";
import { isMarker } from "../../state/documents/prompt_order.ts";
import { texts } from "../../texts/texts.ts";

/** What a prompt is called: parts of the chat by our own words, others by their names. */
export function promptName({ identifier, name }: PresetPrompt): string {
  const { markers } = texts.presets;
  const own = Object.hasOwn(markers, identifier) ? markers[identifier as keyof typeof markers] : undefined;
  return (isMarker(identifier) ? own : name?.trim() || own) ?? identifier;
}
