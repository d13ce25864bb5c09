/** What of others is in an executable: by name, version, hash and licence, told by what the bundler wrote of its inputs. */

/** One package of which something went in. */
export interface BundledPackage {
  name: string;
  version: string;
  /** As package.json names it: an SPDX expression nearly always. */
  licence: string;
  /** Text of its licence files. */
  licenceText: string;
  /** `sha512-…`, of the archive in the registry, as deno.lock has it. */
  integrity: string | undefined;
}

const IN_STORE = /node_modules\/\.deno\/([^/"]+)\/node_modules\/((?:@[^/"]+\/)?[^/"]+)\//;
/** The bundler heads the code of each file so, that of a CommonJS file as the name of a function. */
const INPUT = /^(?:\/\/ |\s*")(\S*node_modules\/\.deno\/[^"\n]+)/gm;
const LICENCE_FILE = /^(licen[cs]e|copying|notice)(\b|[._-])/i;

/**
 * Gives the folders of the packages of which code stands in a script that the bundler wrote without minifying it.
 *
 * Its source map would not tell all: a package that brings a map of its own stands there with the files it was made of.
 */
export function packageFoldersIn(script: string): Set<string> {
  const paths = [...script.matchAll(INPUT)].map(([, path]) => path!);
  return new Set(paths.map(packageFolderOf).filter((folder) => folder !== undefined));
}

/** Gives `.deno/<id>/node_modules/<name>` of a file in node_modules. */
export function packageFolderOf(path: string): string | undefined {
  const [, id, name] = IN_STORE.exec(path) ?? [];
  return id === undefined ? undefined : `.deno/${id}/node_modules/${name}`;
}

/**
 * Reads what the packages say of themselves.
 *
 * @param folders As `packageFoldersIn` gives them.
 * @throws {Error} for a package without a licence: what may not be passed on must not go in unseen.
 */
export async function readPackages(root: URL, folders: Iterable<string>): Promise<BundledPackage[]> {
  const lock = JSON.parse(await Deno.readTextFile(new URL("deno.lock", root)));
  const packages = new Map<string, BundledPackage>();
  for (const folder of folders) {
    const at = new URL(`node_modules/${folder}/`, root);
    const { name, version, license } = JSON.parse(await Deno.readTextFile(new URL("package.json", at)));
    const licenceText = await licenceTextIn(at);
    if (typeof license !== "string" || license === "") throw new Error(`Can't bundle "${name}": it names no license`);
    packages.set(`${name}@${version}`, {
      name,
      version,
      licence: license,
      licenceText,
      integrity: integrityIn(lock, `${name}@${version}`),
    });
  }
  return [...packages.values()].sort((a, b) => `${a.name}@${a.version}` < `${b.name}@${b.version}` ? -1 : 1);
}

/** Keys of the lock go on with `_peer@version` where a package was resolved beside others. */
function integrityIn(lock: { npm: Record<string, { integrity?: string }> }, id: string): string | undefined {
  const key = Object.keys(lock.npm).find((candidate) => candidate === id || candidate.startsWith(`${id}_`));
  return key === undefined ? undefined : lock.npm[key]!.integrity;
}

async function licenceTextIn(folder: URL): Promise<string> {
  const names = (await Array.fromAsync(Deno.readDir(folder))).filter(({ isFile, name }) =>
    isFile && LICENCE_FILE.test(name)
  )
    .map(({ name }) => name).sort();
  const texts = await Promise.all(names.map((name) => Deno.readTextFile(new URL(name, folder))));
  return texts.map((text) => text.replaceAll("\r\n", "\n").trim()).join("\n\n");
}
