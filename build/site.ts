/**
 * Builds the site from docs/, README.md, CHANGELOG.md and the OpenAPI document: plain files that any web server serves.
 *
 * - `deno task site [--out dist/site] [--base /parlor/]` builds it. `--base` is the path at which it's served. Source
 *   files are linked if project.json names the project's home.
 * - `deno run -A build/site.ts install FOLDER` only installs VitePress. `SITE_PACKAGES` names such a folder for a
 *   build; the default is `dist/site-packages`.
 *
 * VitePress has its own packages and lock file, because Parlor doesn't need them. Dead links fail the build.
 */
import { parseArgs } from "node:util";
import { resolve } from "node:path";
import denoConfig from "../deno.json" with { type: "json" };
import project from "../project.json" with { type: "json" };
import { assembleSite } from "./site/assemble.ts";
import type { OpenApiDocument } from "./site/reference.ts";
import { readUrl } from "./smoke.ts";

const ROOT = resolve(import.meta.dirname!, "..");
const VITEPRESS = "node_modules/vitepress/bin/vitepress.js";

/** Installs VitePress into a folder, unless it's there already in this version. */
async function installSitePackages(folder: string): Promise<void> {
  const lock = await Deno.readTextFile(`${ROOT}/build/site/packages.lock`);
  if (await Deno.readTextFile(`${folder}/installed`).catch(() => "") === lock) return;
  await Deno.mkdir(folder, { recursive: true });
  await Deno.copyFile(`${ROOT}/build/site/packages.json`, `${folder}/package.json`);
  // Ends Deno's search for a configuration, which would find that of Parlor if the folder is in the repository.
  await Deno.writeTextFile(`${folder}/deno.json`, '{ "nodeModulesDir": "manual" }\n');
  await Deno.writeTextFile(`${folder}/deno.lock`, lock);
  await runDeno(["install", "--frozen", "--quiet"], folder);
  await Deno.writeTextFile(`${folder}/installed`, lock);
}

/**
 * Builds the site.
 *
 * @param packages A folder of `installSitePackages`.
 * @param out Is replaced.
 * @returns The paths of all pages in `out`.
 */
export async function buildSite(
  packages: string,
  out: string,
  { base = "/" }: { base?: string } = {},
): Promise<string[]> {
  // Below the packages: Vite looks for Vue from the pages upward.
  const source = await Deno.makeTempDir({ dir: packages, prefix: "source-" });
  try {
    const document = await readDocument();
    const repositoryUrl = project.home === "" ? undefined : project.home;
    const pages = await assembleSite(ROOT, source, document, { base, version: denoConfig.version, repositoryUrl });
    await Deno.remove(out, { recursive: true }).catch(() => {});
    await runDeno(["run", "-A", "--node-modules-dir=manual", VITEPRESS, "build", source, "--outDir", out], packages);
    return pages.map((page) => page.replace(/md$/, "html"));
  } finally {
    await Deno.remove(source, { recursive: true });
  }
}

/** Gets the OpenAPI document from a server with an empty data folder. */
async function readDocument(): Promise<OpenApiDocument> {
  const dataDir = await Deno.makeTempDir({ prefix: "parlor-site-" });
  const server = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "main.ts", "--port", "0", "--data-dir", dataDir],
    cwd: ROOT,
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  try {
    const response = await fetch(`${await readUrl(server.stdout)}/api/openapi.json`);
    return await response.json();
  } finally {
    server.kill("SIGTERM");
    await server.status;
    await Deno.remove(dataDir, { recursive: true });
  }
}

/** @throws {Error} with the output of a command that fails */
async function runDeno(args: string[], cwd: string): Promise<void> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args, cwd, stdin: "null" }).output();
  if (!success) throw new Error(`deno ${args.join(" ")} failed:\n${decode(stdout)}${decode(stderr)}`);
}

const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

if (import.meta.main) {
  const [command, folder] = Deno.args;
  if (command === "install" && folder !== undefined) {
    await installSitePackages(resolve(folder));
  } else {
    const { values } = parseArgs({
      args: Deno.args,
      options: {
        out: { type: "string", default: "dist/site" },
        base: { type: "string", default: "/" },
      },
    });
    const packages = resolve(Deno.env.get("SITE_PACKAGES") ?? `${ROOT}/dist/site-packages`);
    await installSitePackages(packages);
    const pages = await buildSite(packages, resolve(values.out), { base: values.base });
    console.log(`${pages.length} pages in ${values.out}`);
  }
}
