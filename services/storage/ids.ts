/** Rules for resource ids, shared by the routes and by files that other programs name. */

/**
 * Path segments that are used in place of IDs, so they can't be IDs. `test` is allowed: no operation on an id ends in
 * `/test`, and it's a common name.
 */
const PATH_WORDS = new Set(["create", "discover", "from-url", "import", "import-url", "restore-app", "search"]);

/** Reports whether a word is reserved as a path segment. */
export function isPathWord(text: string): boolean {
  return PATH_WORDS.has(text);
}

/**
 * Windows device names, with or without an extension. Ids become file names (cards, personas, workflows, exports), and
 * a data folder can move to Windows, where such files can't be created, opened or deleted.
 *
 * @see https://learn.microsoft.com/windows/win32/fileio/naming-a-file
 */
const DEVICE_NAME = /^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3]) *(\.|$)/i;

/** Length of the longest of them, `conout$`. */
const LONGEST_DEVICE = 7;

/** Reports whether Windows treats a file name as a device: `con`, `NUL.json`, `Com1.tar.gz`, `LPT¹`. */
export function isDeviceName(name: string): boolean {
  if (name.length > LONGEST_DEVICE && !name.includes(".") && !name.endsWith(" ")) return false;
  return DEVICE_NAME.test(name);
}

/**
 * Reports whether a text is a valid id: 1 to 64 letters, digits, `_` or `-`, not a reserved path segment or device
 * name.
 */
export function isId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(text) && !isPathWord(text) && !isDeviceName(text);
}

const MAX_FILE_NAME_LENGTH = 100;

/** Converts a name chosen by a user to a valid file name on every file system. Its extension stays. */
export function toFileName(name: string): string {
  const dot = name.lastIndexOf(".");
  const [stem, ending] = dot < 0 ? [name, ""] : [name.slice(0, dot), name.slice(dot)];
  // Some systems interpret these characters as a folder or drive, or reject them.
  const clean = stem.toWellFormed().replace(/[\p{Cc}\p{Cf}\\/:*?"<>|%]+/gu, " ").replace(/^[\s.]+|[\s.]+$/g, "");
  return `${[...clean].slice(0, MAX_FILE_NAME_LENGTH).join("") || "character"}${ending}`;
}
