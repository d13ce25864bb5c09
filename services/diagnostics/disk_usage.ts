/** Measures disk usage by category. Reads sizes, never contents. */
import { join } from "node:path";
import { fileError } from "../storage/atomic_file.ts";

/** Category. */
export type SpaceUse = "chats" | "characters" | "attachments" | "models" | "voices" | "rest";

/** Sizes in bytes, largest first; empty categories are omitted. */
export type SpaceUsed = { what: SpaceUse; sizeBytes: number }[];

/** Category of each folder; the database and its log count as chats. */
const FOLDERS: Readonly<Record<string, SpaceUse>> = {
  characters: "characters",
  attachments: "attachments",
  models: "models",
  voices: "voices",
};

/**
 * Measures a data folder without following links, except to the models.
 *
 * @param modelsDir Models folder, if it is outside the data folder.
 * @throws {AppError} if the data folder can't be listed.
 */
export async function measureSpace(dataDir: string, modelsDir: string | null): Promise<SpaceUsed> {
  const sizes = new Map<SpaceUse, number>();
  const names = await Array.fromAsync(Deno.readDir(dataDir), ({ name }) => name).catch((cause) => {
    throw fileError(`Can't list "${dataDir}"`, cause);
  });
  const models = await Deno.realPath(modelsDir ?? join(dataDir, "models")).catch(() => undefined);
  if (models !== undefined) sizes.set("models", await sizeOf(models));
  for (const name of names) {
    if (name === "models" && modelsDir === null) continue;
    const use = name.startsWith("app.db") ? "chats" : FOLDERS[name] ?? "rest";
    sizes.set(use, (sizes.get(use) ?? 0) + await sizeOf(join(dataDir, name)));
  }
  return [...sizes].filter(([, sizeBytes]) => sizeBytes > 0).map(([what, sizeBytes]) => ({ what, sizeBytes }))
    .sort((a, b) => b.sizeBytes - a.sizeBytes);
}

/** Files that disappear while measuring count as empty. */
async function sizeOf(path: string): Promise<number> {
  const info = await Deno.lstat(path).catch(() => undefined);
  if (info === undefined) return 0;
  if (!info.isDirectory) return info.size;
  const names = await Array.fromAsync(Deno.readDir(path), ({ name }) => name).catch(() => []);
  let sizeBytes = 0;
  for (const name of names) sizeBytes += await sizeOf(join(path, name));
  return sizeBytes;
}
