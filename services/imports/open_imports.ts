/** Opens the room. */
import type { DataDir } from "../storage/data_dir.ts";
import { type ImportParts, Imports } from "./imports.ts";

/** What the room stands on. */
export interface ImportRoomOptions extends Omit<ImportParts, "folder"> {
  dataDir: Pick<DataDir, "ensureFolder">;
}

/** Opens the room on a folder of its own for uploads. */
export async function openImports({ dataDir, ...parts }: ImportRoomOptions): Promise<Imports> {
  return await Imports.open({ ...parts, folder: await dataDir.ensureFolder("uploads") });
}
