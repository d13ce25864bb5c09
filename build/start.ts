/**
 * Runs Parlor from source: the command line of main.ts. Builds the page before a server starts if its sources have
 * changed.
 */
import { fileURLToPath } from "node:url";
import { run } from "../main.ts";
import { AppError } from "../services/errors.ts";
import { findUi } from "./ui_builds.ts";

/** First argument of the task "dev". */
const DEV = "--dev";

/** The bundler is Deno itself. */
const BUILD_PERMISSIONS = [
  ...["--no-prompt", "--no-remote", "--allow-read", "--allow-write=static/dist"],
  `--allow-run=${Deno.execPath()}`,
];

/** Builds the page in a separate process, so that the server's permissions and memory aren't affected. */
async function preparePage(isDev: boolean): Promise<void> {
  if (await findUi({ isDev }) !== undefined) return;
  console.error("Building the page");
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...BUILD_PERMISSIONS, "build.ts", "ui", ...isDev ? [DEV] : []],
    cwd: fileURLToPath(new URL("../", import.meta.url)),
    stdin: "null",
    stdout: "null",
    stderr: "inherit",
  }).spawn().status;
  if (!success) throw new AppError("not_available", "Can't build the page. See the output above");
}

if (import.meta.main) {
  const isDev = Deno.args[0] === DEV;
  Deno.exit(await run(isDev ? Deno.args.slice(1) : Deno.args, () => preparePage(isDev)));
}
