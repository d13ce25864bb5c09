/**
 * Replaces a file and kills itself at one step of it. Arguments: file, new content, step:
 * `sync`, `rename`, `renamed`, `folder_sync` (each just before it is done, `renamed` just after), or `none`.
 */

import { writeFileAtomic } from "../../../services/storage/atomic_file.ts";

const [path, content, step] = Deno.args;

function crash(): void {
  Deno.kill(Deno.pid, "SIGKILL");
  while (true); // The signal may be delayed.
}

const { rename } = Deno;
const { sync } = Deno.FsFile.prototype;
let syncCount = 0;

Deno.FsFile.prototype.sync = async function () {
  syncCount++;
  if (step === "sync" && syncCount === 1) crash();
  if (step === "folder_sync" && syncCount === 2) crash();
  await sync.call(this);
};
Object.defineProperty(Deno, "rename", {
  value: async (from: string, to: string) => {
    if (step === "rename") crash();
    await rename(from, to);
    if (step === "renamed") crash();
  },
});

await writeFileAtomic(path!, content!);
console.log("written");
