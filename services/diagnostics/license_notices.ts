/** Whose work is inside, and under which terms: the notices that build.ts puts into the executable, or what is installed. */
import { join } from "node:path";
import { AppError } from "../errors.ts";

/** The notice of one package. */
export interface LicenceNotice {
  name: string;
  version: string;
  /** As the package names it: an SPDX expression nearly always. Empty for our own, whose text says it. */
  licence: string;
  text: string;
}

const NOTICES = new URL("../../licences.txt", import.meta.url);
/** From source, packages lie here as Deno lays them out. */
const STORE = join(import.meta.dirname ?? ".", "../../node_modules/.deno");
/** build/notices.ts writes both. */
const RULE = /\n\n={80}\n/;
const HEAD = /^(\S+) (\d\S*)(?: \((.+)\))?(?:, .*)?\n\n/;
const LICENCE_FILE = /^(licen[cs]e|copying|notice)(\b|[._-])/i;

/** Stands for the text of a package that brings none. */
export const NO_LICENCE_TEXT = "It names this licence and brings no text of it.";

/** Gives the text that the executable carries. @throws {AppError} `not_available` from source, where nothing is bundled */
export async function noticesText(): Promise<string> {
  try {
    return (await Deno.readTextFile(NOTICES)).trimEnd();
  } catch (cause) {
    throw new AppError(
      "not_available",
      "Only the executable carries licence notices; deno task build writes them to dist/",
      { cause },
    );
  }
}

/** Gives all notices: of what is bundled, and from source of what is installed. @throws {AppError} `not_available` */
export async function licenceNotices(): Promise<LicenceNotice[]> {
  let bundled: string | undefined;
  try {
    bundled = await noticesText();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
  }
  return bundled === undefined ? await installedNotices(STORE) : parseNotices(bundled);
}

/** Takes the text of `noticesText` apart again. */
export function parseNotices(text: string): LicenceNotice[] {
  const notices: LicenceNotice[] = [];
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
    } else if (last !== undefined) last.text += `\n\n${"=".repeat(80)}\n${part}`; // a rule of the licence's own
  }
  return notices;
}

/** Reads the packages in a store of Deno's. @throws {AppError} `not_available` where there is none */
export async function installedNotices(store: string): Promise<LicenceNotice[]> {
  const ids = await Array.fromAsync(Deno.readDir(store), ({ name }) => name).catch((cause) => {
    throw new AppError("not_available", "Licence notices are neither in this program nor beside its source", { cause });
  });
  // `@scope+name@1.2.3`, and behind `_` what it was resolved beside.
  const folders = ids.flatMap((id) => {
    const name = /^(@?[^@]+)@\d/.exec(id)?.[1]?.replace("+", "/");
    return name === undefined ? [] : [join(store, id, "node_modules", name)];
  });
  const notices = await Promise.all(folders.map(noticeIn));
  return notices.filter((notice) => notice !== undefined)
    .sort((a, b) => `${a.name}@${a.version}` < `${b.name}@${b.version}` ? -1 : 1);
}

async function noticeIn(folder: string): Promise<LicenceNotice | undefined> {
  let about: { name: string; version: string; license?: unknown };
  try {
    about = JSON.parse(await Deno.readTextFile(join(folder, "package.json")));
  } catch {
    return undefined; // named in the store and never fetched: one for another machine
  }
  const names = (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).filter((name) =>
    LICENCE_FILE.test(name)
  );
  const texts = await Promise.all(names.sort().map((name) => Deno.readTextFile(join(folder, name)).catch(() => "")));
  return {
    ...{ name: about.name, version: about.version, licence: String(about.license ?? "") },
    text: texts.map((text) => text.replaceAll("\r\n", "\n").trim()).filter((text) => text !== "").join("\n\n"),
  };
}
