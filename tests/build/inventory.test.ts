/** The inventory lists all third-party code in the executable, compared with imports and lock file. */
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { listUiPackages, stageServer } from "../../build.ts";
import { createBillOfMaterials, listPackageFolders, readPackages } from "../../build/inventory.ts";
import { tempFolder } from "../helpers/files/storage_folder.ts";

const ROOT = new URL("../../", import.meta.url);
const LOCK: { npm: Record<string, { integrity: string; dependencies?: string[] }> } = JSON.parse(
  await Deno.readTextFile(new URL("deno.lock", ROOT)),
);
/** Every Worker is a bundle. */
const BUNDLES_MS = 180_000;

interface Module {
  specifier: string;
  npmPackage?: string;
  dependencies?: { code?: { specifier: string } }[];
}

/** Entry points: the server, its Workers and the children of its sandbox, the page and its service worker. */
async function entries(): Promise<string[]> {
  const found = ["main.ts", "static/src/main.tsx", "static/src/service_worker.ts"];
  for (const path of await sourcesBelow("services")) {
    const text = await Deno.readTextFile(new URL(path, ROOT));
    for (const [, other] of text.matchAll(/new URL\(\s*"([^"]+\.ts)", import\.meta\.url\)/g)) {
      found.push(fileURLToPath(new URL(other!, new URL(path, ROOT))).slice(fileURLToPath(ROOT).length));
    }
  }
  return [...new Set(found)];
}

async function sourcesBelow(folder: string): Promise<string[]> {
  const inside = await Array.fromAsync(Deno.readDir(new URL(folder, ROOT)));
  const paths = await Promise.all(
    inside.map(({ name, isDirectory }) => isDirectory ? sourcesBelow(`${folder}/${name}`) : [`${folder}/${name}`]),
  );
  return paths.flat().filter((path) => path.endsWith(".ts"));
}

/** Returns `name@version` of the packages that our files import, by Deno's module graph of all entry points. */
async function importedPackages(entries: readonly string[]): Promise<string[]> {
  await using folder = await tempFolder();
  const all = folder.file("all.ts");
  await Deno.writeTextFile(
    all,
    entries.map((entry) => `import ${JSON.stringify(new URL(entry, ROOT).href)};`).join("\n"),
  );
  const args = ["info", "--json", "--config", fileURLToPath(new URL("deno.json", ROOT)), all];
  const { stdout } = await new Deno.Command(Deno.execPath(), { args, cwd: ROOT }).output();
  const { modules, redirects }: { modules: Module[]; redirects: Record<string, string> } = JSON.parse(
    new TextDecoder().decode(stdout),
  );
  const bySpecifier = new Map(modules.map((module) => [module.specifier, module]));
  const reached = new Set<Module>();
  const follow = (specifier: string) => {
    const module = bySpecifier.get(redirects[specifier] ?? specifier);
    if (module === undefined || reached.has(module)) return;
    reached.add(module);
    for (const { code } of module.dependencies ?? []) if (code !== undefined) follow(code.specifier);
  };
  for (const entry of entries) {
    const { href } = new URL(entry, ROOT);
    expect(bySpecifier.has(href), entry).toBe(true);
    follow(href);
  }
  return [...reached].flatMap(({ npmPackage }) => npmPackage === undefined ? [] : [withoutPeers(npmPackage)]);
}

/** Keys of the lock file end with `_peer@version` if a package has peer dependencies. */
function withoutPeers(id: string): string {
  return id.split("_")[0]!;
}

test("a package with its own source map and one in CommonJS are found in a bundle", () => {
  const store = "node_modules/.deno";
  const bundle = [
    `// ${store}/@preact+signals@2.11.4/node_modules/@preact/signals/dist/signals.module.js`,
    "var x = 1;",
    "var require_core = __commonJS({",
    `  "${store}/highlight.js@11.12.0/node_modules/highlight.js/lib/core.js"(exports, module) {`,
    "// static/src/main.tsx",
    `const named = "${store}/elsewhere@1.0.0/node_modules/elsewhere/index.js";`,
  ].join("\n");
  expect([...listPackageFolders(bundle)]).toEqual([
    ".deno/@preact+signals@2.11.4/node_modules/@preact/signals",
    ".deno/highlight.js@11.12.0/node_modules/highlight.js",
  ]);
});

test("lists every imported package in the bill of materials, and only packages of the lock", async () => {
  await using stage = await tempFolder();
  const folders = new Set([...await stageServer(ROOT, stage.path), ...await listUiPackages(ROOT)]);
  const packages = await readPackages(ROOT, folders);
  const ids = packages.map(({ name, version }) => `${name}@${version}`);

  const imported = new Set(await importedPackages(await entries()));
  expect([...imported].filter((id) => !ids.includes(id))).toEqual([]);

  // The rest are their own dependencies.
  const keys = Object.keys(LOCK.npm);
  const reachable = new Set<string>();
  const queue = [...imported];
  for (let id = queue.pop(); id !== undefined; id = queue.pop()) {
    if (reachable.has(id)) continue;
    reachable.add(id);
    const key = keys.find((candidate) => withoutPeers(candidate) === id);
    for (const needed of LOCK.npm[key!]?.dependencies ?? []) {
      // Without a version if the lock file has only one.
      queue.push(...keys.map(withoutPeers).filter((other) => other === needed || other.startsWith(`${needed}@`)));
    }
  }
  // Read as files, not imported: see image_codecs.ts and pdf.ts.
  expect(ids.filter((id) => !reachable.has(id) && !/^(imagescript|pdfjs-dist)@/.test(id))).toEqual([]);
  for (const { name, version, integrity, licenceText, licence } of packages) {
    const known = keys.filter((key) => withoutPeers(key) === `${name}@${version}`).map((key) =>
      LOCK.npm[key]!.integrity
    );
    expect(known, name).toContain(integrity);
    expect(licence + licenceText, name).not.toBe("");
  }

  const bill = JSON.parse(
    createBillOfMaterials({ version: "1.2.3", runtimeVersion: "2.6.10", licenceText: "Ours", packages }),
  );
  expect(bill.components.slice(1).map(({ name, version }: typeof packages[0]) => `${name}@${version}`)).toEqual(ids);
}, BUNDLES_MS);

test("a bill of materials has its own serial number, which is the same for the same contents", () => {
  const create = (version: string) =>
    JSON.parse(createBillOfMaterials({ version, runtimeVersion: "2.9.6", licenceText: "Ours", packages: [] }));
  const { bomFormat, specVersion, serialNumber } = create("1.2.3");
  // The schema of CycloneDX, and what GitHub's attest-sbom requires.
  expect({ bomFormat, specVersion }).toEqual({ bomFormat: "CycloneDX", specVersion: "1.6" });
  expect(serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(create("1.2.3").serialNumber).toBe(serialNumber);
  expect(create("1.2.4").serialNumber).not.toBe(serialNumber);
});
