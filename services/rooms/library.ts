/** What chats are made of: characters, personas, lorebooks, presets, and the pictures they show. */
import { Attachments } from "../attachments/attachments.ts";
import { type ImagePool, openImagePool } from "../attachments/images/image_pool.ts";
import type { PictureParts } from "../attachments/image_parts.ts";
import { type CharacterRoom, openCharacters } from "../characters/open_characters.ts";
import { type LorebookRoom, openLorebooks } from "../lorebooks/open_lorebooks.ts";
import type { CloseHook } from "../async/lazy.ts";
import { Personas } from "../personas/personas.ts";
import { openPresets } from "../presets/open_presets.ts";
import type { Presets } from "../presets/presets.ts";
import type { Ground } from "./ground.ts";

/** Everything in it. */
export interface Library extends CharacterRoom, LorebookRoom {
  attachments: Attachments;
  /** Reads and makes pictures, off the serving thread. */
  images: ImagePool;
  pictures: PictureParts;
  personas: Personas;
  presets: Presets;
  /** What the owner is called as a persona, or without one. */
  userName(personaId?: string): Promise<string>;
}

/** Opens the room. No card is looked at before somebody asks for one. */
export async function openLibrary(ground: Ground, onClose: (hook: CloseHook) => void): Promise<Library> {
  const { config, db, sealer, events, trash, versions, log, now, folders } = ground;
  const { dataDir, databasePath, settings, ownerName } = ground;
  const images = openImagePool();
  onClose(() => images.close());
  const attachments = new Attachments({
    ...{ db, events, trash, versions, log, now },
    sealer: sealer.forPurpose("attachments"),
    nameSealer: sealer.forPurpose("attachment names"),
    folder: folders.attachments,
    maxBytes: config.maxUploadBodyBytes,
  });
  trash.register("attachment", attachments);
  const personas = new Personas({
    ...{ db, events, trash, versions, images, folder: folders.personas, trashFolder: folders.trash },
    sealer: sealer.forPurpose("trash"),
  });
  trash.register("persona", personas);
  const { room: gallery, close: closeGallery } = await openCharacters({
    ...{ db, databasePath, dataDir, cardDirs: config.cardDirs, trash, versions, events, log, pictures: images },
    trashSealer: sealer.forPurpose("trash"),
    builtinFlag: ground.rememberedFlag("builtin_app_installed", config.builtinAppInstalled),
  });
  onClose(closeGallery);
  const documents = { db, events, trash, now };
  const { room: lorebookRoom, close: closeLorebooks } = openLorebooks({
    ...documents,
    sealer: sealer.forPurpose("lorebooks"),
  });
  onClose(closeLorebooks);
  const presets = openPresets({
    ...documents,
    sealer: sealer.forPurpose("presets"),
    chosenId: () => settings.get().settings.preset_id,
  });
  return {
    ...{ attachments, images, personas, presets, ...gallery, ...lorebookRoom },
    pictures: { attachments, images },
    async userName(personaId) {
      const persona = personaId === undefined ? undefined : await personas.findName(personaId);
      return persona ?? ownerName();
    },
  };
}
