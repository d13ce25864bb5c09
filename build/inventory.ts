import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { NO_LICENCE_TEXT } from "../services/diagnostics/license_notices.ts";

/** Lists the packages in an executable, read from the bundler's metafile, and writes the license notices and the bill of materials. */

/** A package with code in the executable. */
interface BundledPackage {
  name: string;
  version: string;
  /** The license in package.json: nearly always an SPDX expression. */
  licence: string;
  /** Text of its license files. */
  licenceText: string;
  /** `sha512-…` of the archive in the registry, from deno.lock. */
  integrity: string | undefined;
}

const IN_STORE = /node_modules\/\.deno\/([^/"]+)\/node_modules\/((?:@[^/"]+\/)?[^/"]+)\//;
/** The bundler writes these lines before the code of each file; for a CommonJS file, as the name of a function. */
const INPUT = /^(?:\/\/ |\s*")(\S*node_modules\/\.deno\/[^"\n]+)/gm;
const LICENCE_FILE = /^(licen[cs]e|copying|notice)(\b|[._-])/i;

/**
 * Returns the folders of the packages whose code is in an unminified bundle.
 *
 * The source map isn't enough: a package with a map of its own appears there under its original files.
 */
export function listPackageFolders(script: string): Set<string> {
  const paths = [...script.matchAll(INPUT)].map(([, path]) => path!);
  return new Set(paths.map(findPackageFolder).filter((folder) => folder !== undefined));
}

/** Returns the `.deno/<id>/node_modules/<name>` of a file in node_modules. */
export function findPackageFolder(path: string): string | undefined {
  const [, id, name] = IN_STORE.exec(path) ?? [];
  return id === undefined ? undefined : `.deno/${id}/node_modules/${name}`;
}

/**
 * Reads the name, version and license of packages.
 *
 * @param folders Folders as returned by `listPackageFolders`
 * @throws {Error} if a package has no license, because it may not be distributed then
 */
export async function readPackages(root: URL, folders: Iterable<string>): Promise<BundledPackage[]> {
  const lock = JSON.parse(await Deno.readTextFile(new URL("deno.lock", root)));
  const packages = new Map<string, BundledPackage>();
  for (const folder of folders) {
    const at = new URL(`node_modules/${folder}/`, root);
    const { name, version, license } = JSON.parse(await Deno.readTextFile(new URL("package.json", at)));
    const licenceText = await readLicenseText(at);
    if (typeof license !== "string" || license === "") throw new Error(`Can't bundle "${name}": it names no license`);
    packages.set(`${name}@${version}`, {
      name,
      version,
      licence: license,
      licenceText,
      integrity: findIntegrity(lock, `${name}@${version}`),
    });
  }
  return [...packages.values()].sort((a, b) => `${a.name}@${a.version}` < `${b.name}@${b.version}` ? -1 : 1);
}

/**
 * Returns the integrity of a package. Keys of the lock end with `_peer@version` if a package was resolved with peers.
 */
function findIntegrity(lock: { npm: Record<string, { integrity?: string }> }, id: string): string | undefined {
  const key = Object.keys(lock.npm).find((candidate) => candidate === id || candidate.startsWith(`${id}_`));
  return key === undefined ? undefined : lock.npm[key]!.integrity;
}

async function readLicenseText(folder: URL): Promise<string> {
  const names = (await Array.fromAsync(Deno.readDir(folder))).filter(({ isFile, name }) =>
    isFile && LICENCE_FILE.test(name)
  )
    .map(({ name }) => name).sort();
  const texts = await Promise.all(names.map((name) => Deno.readTextFile(new URL(name, folder))));
  return texts.map((text) => text.replaceAll("\r\n", "\n").trim()).join("\n\n");
}

/** The product to describe. */
interface Product {
  version: string;
  /** Version of the bundled runtime. */
  runtimeVersion: string;
  /** Parlor's own license. */
  licenceText: string;
  packages: readonly BundledPackage[];
}

const RULE = `\n\n${"=".repeat(80)}\n`;

/** Returns the text that `parlor licenses` prints. */
export function formatNotices({ version, runtimeVersion, licenceText, packages }: Product): string {
  const own = `Parlor ${version}\n\n${licenceText.trim()}`;
  const runtime =
    `Deno ${runtimeVersion} (MIT), the runtime inside\n\nCopyright the Deno authors. It comes with V8, SQLite ` +
    "and Rust crates under their own licenses, which its source lists: https://github.com/denoland/deno";
  const others = packages.map(({ name, version: itsVersion, licence, licenceText: text }) =>
    `${name} ${itsVersion} (${licence})\n\n${text || NO_LICENCE_TEXT}`
  );
  return `${[own, runtime, ...others].join(RULE)}\n`;
}

/**
 * Returns the bill of materials as CycloneDX 1.6 JSON. The same input gives the same text.
 *
 * @see https://cyclonedx.org/docs/1.6/json/
 */
export function createBillOfMaterials({ version, runtimeVersion, packages }: Product): string {
  const runtime = {
    type: "platform",
    "bom-ref": `deno@${runtimeVersion}`,
    name: "deno",
    version: runtimeVersion,
    licenses: [{ license: { id: "MIT" } }],
    purl: `pkg:github/denoland/deno@v${runtimeVersion}`,
  };
  const components = packages.map(({ name, version: itsVersion, licence, integrity }) => ({
    type: "library",
    "bom-ref": toPurl(name, itsVersion),
    name,
    version: itsVersion,
    licenses: [/^[\w.+-]+$/.test(licence) ? { license: { id: licence } } : { expression: licence }],
    purl: toPurl(name, itsVersion),
    ...(integrity === undefined ? {} : { hashes: [toHash(integrity)] }),
  }));
  const product = { type: "application", "bom-ref": `parlor@${version}`, name: "parlor", version };
  const contents = {
    version: 1,
    metadata: { component: { ...product, licenses: [{ license: { id: "MIT" } }] } },
    components: [runtime, ...components],
    dependencies: [{ ref: product["bom-ref"], dependsOn: [runtime, ...components].map((part) => part["bom-ref"]) }],
  };
  // GitHub's attest-sbom rejects a bill without a serial number.
  const serialNumber = `urn:uuid:${toUuid(JSON.stringify(contents))}`;
  return `${JSON.stringify({ bomFormat: "CycloneDX", specVersion: "1.6", serialNumber, ...contents }, null, 2)}\n`;
}

/** Returns a UUID derived from a text. @see https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-8 */
function toUuid(text: string): string {
  const bytes = createHash("sha256").update(text).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

function toPurl(name: string, version: string): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

function toHash(integrity: string): { alg: string; content: string } {
  const [algorithm, value] = [integrity.slice(0, integrity.indexOf("-")), integrity.slice(integrity.indexOf("-") + 1)];
  return { alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(value, "base64").toString("hex") };
}
