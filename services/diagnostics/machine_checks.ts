/** Checks the machine: disk space and external programs. */
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { findOnPath } from "../process/find_program.ts";
import { fileExists } from "../storage/atomic_file.ts";
import { type Finding, looking, note, ok, problem } from "./finding.ts";
import type { RemediedCode } from "./finding_texts.ts";

/** An external program and its configuration key. */
export interface Tool {
  program: string;
  key: string;
  /** Configured path. */
  configured: string | null;
  /** Code of the finding if it's missing. */
  missing: RemediedCode;
}

const GIB = 1024 ** 3;
const LITTLE_BYTES = 1 * GIB;
const TOO_LITTLE_BYTES = GIB / 8;

/** Checks the free space of the data and backup folders. */
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

/** Checks the programs. */
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

/** A missing folder will be created on the disk of its parent. */
async function nearest(folder: string): Promise<string> {
  while (!await fileExists(folder) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}
