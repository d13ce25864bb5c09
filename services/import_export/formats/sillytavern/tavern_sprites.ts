/**
 * Pictures of moods, which lie in a folder beside a card and are called by their mood; costumes are folders in it.
 *
 * @see SillyTavern, src/endpoints/sprites.js
 */
import type { SourceFile } from "../../import_source.ts";
import { stemOf } from "../../file_names.ts";
import type { TavernFolder } from "./tavern_folder.ts";

/** One picture. */
export interface Mood {
  file: SourceFile;
  /** The mood: `joy`; of a costume `beach/joy`. */
  name: string;
}

/** The pictures of all characters. */
export interface Moods {
  /** Gives those of a card. @param stem Name of its file without the ending. */
  take(stem: string): Mood[];
  /** Folders with files that no card took, and how many. */
  left(): [folder: string, count: number][];
}

const PICTURE_ENDING = /\.(png|apng|jpe?g|webp|gif|avif|bmp)$/i;

/** Finds the pictures among all files of the folder of characters. */
export function moodsOf(files: readonly SourceFile[], { pathIn }: Pick<TavernFolder, "pathIn">): Moods {
  const folders = new Map<string, { moods: Mood[]; count: number }>();
  for (const file of files) {
    const [, folder, ...rest] = pathIn(file).split("/");
    if (folder === undefined || rest.length === 0) continue;
    const found = folders.get(folder) ?? { moods: [], count: 0 };
    folders.set(folder, found);
    found.count++;
    const name = [...rest.slice(0, -1), stemOf(file.path)].join("/");
    if (PICTURE_ENDING.test(file.path)) found.moods.push({ file, name });
  }
  return {
    take(stem) {
      const found = folders.get(stem);
      if (found === undefined) return [];
      found.count -= found.moods.length;
      return found.moods;
    },
    left: () => [...folders].filter(([, { count }]) => count > 0).map(([folder, { count }]) => [folder, count]),
  };
}
