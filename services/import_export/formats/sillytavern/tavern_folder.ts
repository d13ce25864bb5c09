/** Finds the root of a SillyTavern user folder, its expression images, and what isn't imported from it. */
import { getOwn } from "../../../json/type_guards.ts";
import { AppError } from "../../../errors.ts";
import type { ImportNote } from "../../import_item.ts";
import { createLeftOutNote, type ImportReasonCode } from "../../import_report.ts";
import { getStem, type ImportSource, type SourceFile } from "../../import_source.ts";

/** A user folder inside an import. */
export interface TavernFolder {
  /** Lists the files of a folder with their paths. */
  listFiles(folder: string): SourceFile[];
  /** Finds a file by its path in the user folder. */
  find(path: string): SourceFile | undefined;
  /** Returns the path of a file in the user folder. */
  getPath(file: SourceFile): string;
  /** Files that Parlor doesn't import. */
  leftOut: ImportNote[];
}

/** Signs of the root folder. One of them is enough. */
const SIGNS = ["settings.json", "characters/", "chats/", "worlds/", "group chats/", "OpenAI Settings/"];
const IMPORTED_FOLDERS = [
  ...["settings.json", "characters", "chats", "group chats", "groups", "worlds", "User Avatars"],
  ...["OpenAI Settings", "TextGen Settings", "QuickReplies"],
];
/** Reasons why some folders aren't imported. All others are only useful to SillyTavern. */
const REASONS: Record<string, ImportReasonCode> = {
  backgrounds: "backgrounds",
  thumbnails: "thumbnails",
  backups: "backups",
  themes: "themes",
  "NovelAI Settings": "presets_of_service",
  "KoboldAI Settings": "presets_of_interface",
  instruct: "instruct",
  context: "context",
  "secrets.json": "service_keys_left_out",
};

/** Opens a user folder. @throws {AppError} `unprocessable` if there is none or more than one. */
export function openTavernFolder(source: ImportSource): TavernFolder {
  const root = findRoot(source);
  const byPath = new Map<string, SourceFile>();
  for (const file of source.files) {
    if (file.path.startsWith(root)) byPath.set(file.path.slice(root.length), file);
  }
  return {
    listFiles: (folder) => [...byPath].filter(([path]) => path.startsWith(`${folder}/`)).map(([, file]) => file),
    find: (path) => byPath.get(path),
    getPath: ({ path }) => path.slice(root.length),
    leftOut: notImported([...byPath.keys()], root),
  };
}

function findRoot({ files }: ImportSource): string {
  const roots = new Set<string>();
  for (const { path } of files) {
    for (const sign of SIGNS) {
      const at = `/${path}`.indexOf(`/${sign}`);
      if (at < 0 || sign === "settings.json" && !path.endsWith(sign)) continue;
      roots.add(path.slice(0, at));
    }
  }
  const shortest = [...roots].sort((a, b) => getDepth(a) - getDepth(b));
  const first = shortest[0];
  if (first === undefined) {
    throw new AppError("unprocessable", "Can't import this as SillyTavern: it has no characters, chats or settings");
  }
  // Extensions have their own settings files in deeper folders.
  const equal = shortest.filter((root) => getDepth(root) === getDepth(first));
  if (equal.length > 1) {
    throw new AppError(
      "unprocessable",
      `Can't import several SillyTavern users at once. Select the folder of one of ${
        equal.slice(0, 10).map((root) => `"${root.replace(/\/$/, "")}"`).join(", ")
      }`,
    );
  }
  return first;
}

function notImported(paths: string[], root: string): ImportNote[] {
  const counts = new Map<string, number>();
  for (const path of paths) {
    const top = path.split("/")[0]!;
    // Images of messages are imported with their messages.
    if (IMPORTED_FOLDERS.includes(top) || path.startsWith("user/images/")) continue;
    counts.set(top, (counts.get(top) ?? 0) + 1);
  }
  return [...counts].map(([top, count]) =>
    createLeftOutNote(root + top, getOwn(REASONS, top) ?? "sillytavern_own", count)
  );
}

function getDepth(root: string): number {
  return root.split("/").length;
}

/**
 * An expression image. It's in a folder with the character's name, or the one that the settings name. Its file name is
 * the expression, and subfolders are costumes.
 *
 * @see https://docs.sillytavern.app/extensions/expression-images/
 */
export interface Sprite {
  file: SourceFile;
  /** The expression: `joy`, or with a costume `beach/joy`. */
  name: string;
}

/** The expression images of all characters. */
interface SpriteFolders {
  /** Takes the images of the first folder that exists. @param paths Below the folder of the characters. */
  take(...paths: string[]): Sprite[];
  /** Lists folders with files that don't belong to a card, and their number. */
  listLeft(): [folder: string, count: number][];
}

const IMAGE_ENDING = /\.(png|apng|jpe?g|webp|gif|avif|bmp)$/i;

/** Finds expression images among the files of the character folder. */
export function findSprites(files: readonly SourceFile[], { getPath }: Pick<TavernFolder, "getPath">): SpriteFolders {
  const folders = new Map<string, { sprites: Sprite[]; count: number }>();
  const taken = new Set<Sprite>();
  for (const file of files) {
    const [, folder, ...rest] = getPath(file).split("/");
    if (folder === undefined || rest.length === 0) continue;
    const found = folders.get(folder) ?? { sprites: [], count: 0 };
    folders.set(folder, found);
    found.count++;
    const name = [...rest.slice(0, -1), getStem(file.path)].join("/");
    if (IMAGE_ENDING.test(file.path)) found.sprites.push({ file, name });
  }
  return {
    take(...paths) {
      for (const path of paths) {
        const [folder = "", ...costume] = path.split("/").filter((part) => part !== "");
        const found = folders.get(folder);
        const start = costume.map((part) => `${part}/`).join("");
        const sprites = found?.sprites.filter(({ name }) => name.startsWith(start)) ?? [];
        if (found === undefined || sprites.length === 0) continue;
        // Characters with the same name share a folder.
        found.count -= sprites.filter((sprite) => !taken.has(sprite)).length;
        for (const sprite of sprites) taken.add(sprite);
        return sprites.map(({ file, name }) => ({ file, name: name.slice(start.length) }));
      }
      return [];
    },
    listLeft: () => [...folders].filter(([, { count }]) => count > 0).map(([folder, { count }]) => [folder, count]),
  };
}
