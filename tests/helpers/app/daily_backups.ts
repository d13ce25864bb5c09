/**
 * Program: runs a server with daily backups, and prints the names of its backups after each time as JSON. A process of
 * its own, because the time zone (TZ) is the process's.
 *
 * Arguments: data folder, backup folder, then the times, in ISO 8601.
 */
import { openTestApp } from "./test_app.ts";

const [dataDir = "", backupDir = "", ...times] = Deno.args;
let nowMs = Date.parse(times[0]!);
const app = await openTestApp({ dataDir, config: { backupDir }, now: () => nowMs });
const found: string[][] = [];
for (const time of times) {
  nowMs = Date.parse(time);
  await app.restart();
  await (await app.services.backups()).close(); // By then, a backup that is due has been started.
  for (const { id, kind } of app.services.jobs.list()) if (kind === "backup") await app.services.jobs.ended(id);
  found.push((await Array.fromAsync(Deno.readDir(backupDir), ({ name }) => name)).sort());
}
await app[Symbol.asyncDispose]();
console.log(JSON.stringify({ offsets: times.map((time) => new Date(time).getTimezoneOffset()), found }));
