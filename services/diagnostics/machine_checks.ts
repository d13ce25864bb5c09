/** What of the machine Parlor needs: room on the disk, and the programs it starts where they are there. */
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { findOnPath } from "../process/find_program.ts";
import { fileExists } from "../storage/atomic_file.ts";
import { type Finding, looking, note, ok, problem } from "./finding.ts";
import type { RemediedCode } from "./finding_texts.ts";

/** A program that something needs, and the key that names it. */
export interface Tool {
  program: string;
  key: string;
  /** What the configuration says. */
  configured: string | null;
  /** Says that it was not found, and what is not to be had without it. */
  missing: RemediedCode;
}

const GIB = 1024 ** 3;
const LITTLE_BYTES = 1 * GIB;
const TOO_LITTLE_BYTES = GIB / 8;

/** Looks at the free space below the data folder, and the backups' one. */
export async function diskFindings(folders: readonly string[]): Promise<Finding[]> {
  const findings = await Promise.all(
    folders.map((folder) =>
      looking("disk_unknown", { path: folder }, async () => {
        const { bavail, bsize } = await statfs(await nearest(folder));
        const free = bavail * bsize;
        const params = { path: folder, free: (free / GIB).toFixed(1) };
        if (free < TOO_LITTLE_BYTES) return [problem("disk_full", params)];
        return [free < LITTLE_BYTES ? note("disk_little", params) : ok("disk_ok", params)];
      })
    ),
  );
  return findings.flat();
}

/** Looks for the programs. */
export async function toolFindings(tools: readonly Tool[]): Promise<Finding[]> {
  return await Promise.all(tools.map(async ({ program, key, configured, missing }) => {
    const path = configured ?? await findOnPath(program);
    if (configured !== null && !await isExecutable(configured)) {
      return problem("no_program", { key, path: configured });
    }
    if (path !== undefined) return ok("program_ok", { program, path });
    return note(missing, { program, key });
  }));
}

async function isExecutable(path: string): Promise<boolean> {
  return await Deno.stat(path).then(
    ({ isFile, mode }) => isFile && (Deno.build.os === "windows" || ((mode ?? 0) & 0o111) !== 0),
    () => false,
  );
}

/** A folder that is not there yet will be made on the disk of the one above it. */
async function nearest(folder: string): Promise<string> {
  while (!await fileExists(folder) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}
