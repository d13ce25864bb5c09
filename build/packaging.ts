/** The files of packaging/ for the stores, with the addresses, the version and the checksums of a release filled in. */
import { filesBelow } from "./files.ts";

/** Version and addresses of a release. */
export interface Release {
  /** `"1.2.3"`, or `"1.3.0-rc.1"` for a prerelease. */
  version: string;
  /** Page of the source. */
  home: string;
  /** Name of the image, without tag. */
  image: string;
}

/** The folders of packaging/ that are for stores. */
const STORES = ["casaos", "home-assistant", "nix", "umbrel", "unraid"];

/**
 * Returns the files of the stores by their paths below packaging/, ready to publish.
 *
 * @param root Folder with the source, ending with a slash.
 * @param checksums Text of SHA256SUMS.
 */
export async function readPackaging(
  root: URL,
  release: Release,
  checksums: string,
): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for (const store of STORES) {
    const folder = new URL(`packaging/${store}/`, root);
    for (const path of await filesBelow(folder)) {
      const text = await Deno.readTextFile(new URL(path, folder));
      // Unraid's store reads only what Unraid itself would write: one line for each entry, and no comments.
      const published = text.replace("<!-- deno-fmt-ignore-file -->", '<?xml version="1.0"?>');
      files.set(`${store}/${path}`, fillIn(published, release, checksums));
    }
  }
  return files;
}

/** Fills in `{{home}}`, `{{image}}`, `{{version}}`, `{{app_id}}` and `{{sha256 FILE}}`. @throws {Error} for other names */
function fillIn(text: string, release: Release, checksums: string): string {
  return text.replace(/\{\{([^{}]*)\}\}/g, (token, name: string) => {
    const { home, image, version } = release;
    const [, file] = /^sha256 (\S+)$/.exec(name) ?? [];
    const value = file === undefined
      ? { home, image, version, app_id: createAppId(home) }[name]
      : findChecksum(checksums, file);
    if (value === undefined) throw new Error(`Can't fill in "${token}" in packaging/`);
    return value;
  });
}

/** Returns the ID of the app in stores that want a reversed domain: `"com.github.owner.name"`. */
function createAppId(home: string): string {
  const { hostname, pathname } = new URL(home);
  const parts = [...hostname.split(".").reverse(), ...pathname.split("/").filter((part) => part !== "")];
  return parts.map((part) => part.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "")).join(".");
}

/** Returns the checksum of a file. @param checksums Text of SHA256SUMS. @throws {Error} if it has none */
export function findChecksum(checksums: string, file: string): string {
  const line = checksums.split("\n").find((each) => /^[0-9a-f]{64} {2}/.test(each) && each.slice(66) === file);
  if (line === undefined) throw new Error(`SHA256SUMS has no ${file}`);
  return line.slice(0, 64);
}
