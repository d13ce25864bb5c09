/** What of the machine Parlor needs: room on the disk, and the programs it starts where they are there. */
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { findOnPath } from "../find_program.ts";
import { fileExists } from "../storage/atomic_file.ts";
import { type Finding, looking, note, ok, problem } from "./finding.ts";

/** A program that something needs, and the key that names it. */
export interface Tool {
  program: string;
  key: string;
  /** What the configuration says. */
  configured: string | null;
  /** What is not to be had without it. */
  wantedFor: string;
}

const GIB = 1024 ** 3;
const LITTLE_BYTES = 1 * GIB;
const TOO_LITTLE_BYTES = GIB / 8;

/** Looks at the free space below the data folder, and the backups' one. */
export async function diskFindings(folders: readonly string[]): Promise<Finding[]> {
  const findings = await Promise.all(
    folders.map((folder) =>
      looking(`Cannot see how much room "${folder}" has`, "Look whether its disk is mounted", async () => {
        const { bavail, bsize } = await statfs(await nearest(folder));
        const free = bavail * bsize;
        const about = `"${folder}" has ${(free / GIB).toFixed(1)} GiB free`;
        if (free < TOO_LITTLE_BYTES) return [problem(about, "Make room: saves are refused when the disk is full")];
        return [free < LITTLE_BYTES ? note(about, "Make room before the next model or backup") : ok(about)];
      })
    ),
  );
  return findings.flat();
}

/** Looks for the programs. */
export async function toolFindings(tools: readonly Tool[]): Promise<Finding[]> {
  return await Promise.all(tools.map(async ({ program, key, configured, wantedFor }) => {
    const path = configured ?? await findOnPath(program);
    if (configured !== null && !await isExecutable(configured)) {
      return problem(`${key} names "${configured}", which is no program`, `Correct ${key}, or unset it to search PATH`);
    }
    if (path !== undefined) return ok(`${program} is "${path}"`);
    return note(`${program} was not found`, `Install it, or set ${key}, for ${wantedFor}`);
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
