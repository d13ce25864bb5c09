/** Third-party license notices: from the executable, or of the installed packages when run from source. */
import { join } from "node:path";
import { AppError } from "../errors.ts";

/** `parlor licenses`: license notices of all bundled packages. */

/** Text of `parlor licenses --help`. */
export const LICENSES_HELP = "Usage: parlor licenses\n\nPrints the license notices of everything in this executable.";

/** The notice of a package. */
export interface LicenseNotice {
  name: string;
  version: string;
  /** SPDX expression as the package declares it. Empty for Parlor itself. */
  licence: string;
  text: string;
}

const NOTICES = new URL("../../licences.txt", import.meta.url);
/** Where Deno installs packages when run from source. */
const STORE = join(import.meta.dirname ?? ".", "../../node_modules/.deno");
/** build/inventory.ts writes both. */
const RULE = /\n\n={80}\n/;
const HEAD = /^(\S+) (\d\S*)(?: \((.+)\))?(?:, .*)?\n\n/;
const LICENCE_FILE = /^(licen[cs]e|copying|notice)(\b|[._-])/i;

/** Text for a package without a license file. */
export const NO_LICENCE_TEXT = "It names this licence and brings no text of it.";

/** Returns the notices in the executable. @throws {AppError} `not_available` when run from source. */
export async function readLicenseNotices(): Promise<string> {
  try {
    return (await Deno.readTextFile(NOTICES)).trimEnd();
  } catch (cause) {
    throw new AppError(
      "not_available",
      "Only the executable includes license notices. From source, deno task build writes them to dist/",
      { cause },
    );
  }
}

/**
 * Returns all notices: bundled, or of the installed packages when run from source. @throws {AppError} `not_available`
 */
export async function loadLicenseNotices(): Promise<LicenseNotice[]> {
  let bundled: string | undefined;
  try {
    bundled = await readLicenseNotices();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
  }
  return bundled === undefined ? await installedNotices(STORE) : parseNotices(bundled);
}

/** Parses the text of `readLicenseNotices`. */
export function parseNotices(text: string): LicenseNotice[] {
  const notices: LicenseNotice[] = [];
  for (const part of text.split(RULE)) {
    const head = HEAD.exec(part);
    const last = notices.at(-1);
    if (head !== null) {
      const [whole, name, version, licence = ""] = head;
      notices.push({
        name: name!,
        version: version!,
        licence,
        text: part.slice(whole.length).trim().replace(NO_LICENCE_TEXT, ""),
      });
    } else if (last !== undefined) last.text += `\n\n${"=".repeat(80)}\n${part}`; // a rule inside the license text
  }
  return notices;
}

/** Reads the packages in Deno's package store. @throws {AppError} `not_available` if there is none. */
export async function installedNotices(store: string): Promise<LicenseNotice[]> {
  const ids = await Array.fromAsync(Deno.readDir(store), ({ name }) => name).catch((cause) => {
    throw new AppError("not_available", "License notices are missing from the program and its source", { cause });
  });
  // `@scope+name@1.2.3`, followed by `_` and its peer dependencies.
  const folders = ids.flatMap((id) => {
    const name = /^(@?[^@]+)@\d/.exec(id)?.[1]?.replace("+", "/");
    return name === undefined ? [] : [join(store, id, "node_modules", name)];
  });
  const notices = await Promise.all(folders.map(noticeIn));
  return notices.filter((notice) => notice !== undefined)
    .sort((a, b) => `${a.name}@${a.version}` < `${b.name}@${b.version}` ? -1 : 1);
}

async function noticeIn(folder: string): Promise<LicenseNotice | undefined> {
  let about: { name: string; version: string; license?: unknown };
  try {
    about = JSON.parse(await Deno.readTextFile(join(folder, "package.json")));
  } catch {
    return undefined; // listed but not installed: a package for another platform
  }
  const names = (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).filter((name) =>
    LICENCE_FILE.test(name)
  );
  const texts = await Promise.all(names.sort().map((name) => Deno.readTextFile(join(folder, name)).catch(() => "")));
  return {
    name: about.name,
    version: about.version,
    licence: String(about.license ?? ""),
    text: texts.map((text) => text.replaceAll("\r\n", "\n").trim()).filter((text) => text !== "").join("\n\n"),
  };
}
