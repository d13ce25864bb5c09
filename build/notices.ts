/** What goes along with an executable to tell what is in it: licence notices and a bill of materials. */
import { Buffer } from "node:buffer";
import { NO_LICENCE_TEXT } from "../services/diagnostics/license_notices.ts";
import type { BundledPackage } from "./inventory.ts";

/** What is described. */
export interface Product {
  version: string;
  /** Version of the runtime inside. */
  runtimeVersion: string;
  /** Parlor's own licence. */
  licenceText: string;
  packages: readonly BundledPackage[];
}

const RULE = `\n\n${"=".repeat(80)}\n`;

/** Gives the text that `parlor licenses` prints. */
export function noticesText({ version, runtimeVersion, licenceText, packages }: Product): string {
  const own = `Parlor ${version}\n\n${licenceText.trim()}`;
  const runtime =
    `Deno ${runtimeVersion} (MIT), the runtime inside\n\nCopyright the Deno authors. It comes with V8, SQLite ` +
    "and Rust crates under licences of their own, which its source lists: https://github.com/denoland/deno";
  const others = packages.map(({ name, version: itsVersion, licence, licenceText: text }) =>
    `${name} ${itsVersion} (${licence})\n\n${text || NO_LICENCE_TEXT}`
  );
  return `${[own, runtime, ...others].join(RULE)}\n`;
}

/**
 * Gives the bill of materials: JSON of CycloneDX 1.6, the same for the same inputs.
 *
 * @see https://cyclonedx.org/docs/1.6/json/
 */
export function billOfMaterials({ version, runtimeVersion, packages }: Product): string {
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
    "bom-ref": purlOf(name, itsVersion),
    name,
    version: itsVersion,
    licenses: [/^[\w.+-]+$/.test(licence) ? { license: { id: licence } } : { expression: licence }],
    purl: purlOf(name, itsVersion),
    ...(integrity === undefined ? {} : { hashes: [hashOf(integrity)] }),
  }));
  const product = { type: "application", "bom-ref": `parlor@${version}`, name: "parlor", version };
  const bill = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { ...product, licenses: [{ license: { id: "MIT" } }] } },
    components: [runtime, ...components],
    dependencies: [{ ref: product["bom-ref"], dependsOn: [runtime, ...components].map((part) => part["bom-ref"]) }],
  };
  return `${JSON.stringify(bill, null, 2)}\n`;
}

function purlOf(name: string, version: string): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

function hashOf(integrity: string): { alg: string; content: string } {
  const [algorithm, value] = [integrity.slice(0, integrity.indexOf("-")), integrity.slice(integrity.indexOf("-") + 1)];
  return { alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(value, "base64").toString("hex") };
}
