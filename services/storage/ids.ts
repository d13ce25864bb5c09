/** What may be an id of a resource, for the routes and for files whose names somebody else chose. */

/**
 * Words that stand in a path where an id stands in another and are therefore none. `test` is an id: nothing
 * that is done with an id is done under `POST …/test`, and many things are called so.
 */
const PATH_WORDS = new Set(["create", "discover", "from-url", "import", "import-url", "restore-app", "search"]);

/** Says whether a word is part of a path, so that no id can be called so. */
export function isPathWord(text: string): boolean {
  return PATH_WORDS.has(text);
}

/**
 * Names of devices on Windows, alone or with any extension. Ids become file names (cards, personas, workflows, exports), and
 * a data folder may move to a Windows machine, where such a file can't be created, opened or deleted.
 *
 * @see https://learn.microsoft.com/windows/win32/fileio/naming-a-file
 */
const DEVICE_NAME = /^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3]) *(\.|$)/i;

/** Tells whether Windows takes a file name for a device: `con`, `NUL.json`, `Com1.tar.gz`, `LPT¹`. */
export function isDeviceName(name: string): boolean {
  return DEVICE_NAME.test(name);
}

/** Tells whether a text is an id: 1 to 64 letters, digits, `_` or `-`, no word of a path and no device name. */
export function isId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(text) && !isPathWord(text) && !isDeviceName(text);
}
