/**
 * Expression images, in a folder named like the card: each is named for its expression; subfolders are costumes.
 *
 * @see https://docs.sillytavern.app/extensions/expression-images/
 */
import type { SourceFile } from "../../import_source.ts";
import { stemOf } from "../../file_names.ts";
import type { TavernFolder } from "./tavern_folder.ts";

/** An expression image. */
export interface Sprite {
  file: SourceFile;
  /** The expression: `joy`, or with a costume `beach/joy`. */
  name: string;
}

/** The expression images of all characters. */
export interface SpriteFolders {
  /** Takes the images of a card. @param stem File name of the card without extension. */
  take(stem: string): Sprite[];
  /** Lists folders with files that no card took, and their number. */
  left(): [folder: string, count: number][];
}

const PICTURE_ENDING = /\.(png|apng|jpe?g|webp|gif|avif|bmp)$/i;

/** Finds expression images among the files of the character folder. */
export function findSprites(files: readonly SourceFile[], { pathIn }: Pick<TavernFolder, "pathIn">): SpriteFolders {
  const folders = new Map<string, { sprites: Sprite[]; count: number }>();
  for (const file of files) {
    const [, folder, ...rest] = pathIn(file).split("/");
    if (folder === undefined || rest.length === 0) continue;
    const found = folders.get(folder) ?? { sprites: [], count: 0 };
    folders.set(folder, found);
    found.count++;
    const name = [...rest.slice(0, -1), stemOf(file.path)].join("/");
    if (PICTURE_ENDING.test(file.path)) found.sprites.push({ file, name });
  }
  return {
    take(stem) {
      const found = folders.get(stem);
      if (found === undefined) return [];
      found.count -= found.sprites.length;
      return found.sprites;
    },
    left: () => [...folders].filter(([, { count }]) => count > 0).map(([folder, { count }]) => [folder, count]),
  };
}
