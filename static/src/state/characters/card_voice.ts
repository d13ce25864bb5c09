/** The voice that a card asks for: an extension of ours, which other programs keep and pass on. */
import type { CardData } from "../../api/types.ts";

const EXTENSION = "parlor/voice";

/** Gives the voice of a card, a voice of the speech server's or the id of a sample. */
export function voiceOf({ extensions }: CardData): string | undefined {
  const voice = extensions[EXTENSION];
  return typeof voice === "string" && voice !== "" ? voice : undefined;
}

/** Gives the extensions of a card with another voice; without one it has none of ours. */
export function withVoice({ extensions }: CardData, voice: string | undefined): CardData["extensions"] {
  const { [EXTENSION]: _, ...others } = extensions;
  return voice === undefined ? others : { ...others, [EXTENSION]: voice };
}
