/** Portraits of characters: a model makes a prompt of the card, the active backend draws it. */
import type { Painter } from "../characters/portraits.ts";
import type { Drawing } from "./image_generator.ts";
import type { ImageProfiles } from "./backend_profiles.ts";
import { portraitPrompt, type PortraitQuestion, portraitQuestion } from "./portrait_prompt.ts";

/** What painting stands on. */
export interface PainterParts {
  profiles: ImageProfiles;
  drawing: Drawing;
  /** Asks a language model; `undefined` where there is none that understands. */
  ask(messages: PortraitQuestion, signal: AbortSignal): Promise<string | undefined>;
  /** Reduces pictures, off the serving thread. */
  images: {
    toPng(bytes: Uint8Array, options: { maxPx: number; mustBeWhole: boolean }): Promise<Uint8Array<ArrayBuffer>>;
  };
}

/** Upright, as cards are shown; a profile with sizes of its own knows better. */
const SIZE = { widthPx: 512, heightPx: 768 };
/** Longer side of a portrait; a card is sent to others whole. */
const MAX_PX = 1024;

/** Makes the painter of portraits. */
export function createPainter({ profiles, drawing, ask, images }: PainterParts): Painter {
  return async ({ characterId, card, signal, onProgress }) => {
    const profile = profiles.active();
    const prompt = portraitPrompt(card, await ask(portraitQuestion(card), signal));
    const size = profile.defaults.widthPx === undefined && profile.defaults.heightPx === undefined ? SIZE : {};
    const drawn = await drawing.draw(profile.id, { prompt, characterId, ...size }, {
      signal,
      onProgress: ({ share }) => onProgress(share),
      wantsPreview: () => false,
    });
    // Made anew: what the backend wrote into its file, such as the whole prompt, is nobody's business who gets the card.
    return await images.toPng(drawn.pictures[0]!, { maxPx: MAX_PX, mustBeWhole: true });
  };
}
