/** What may be an id of a resource, for the routes and for files whose names somebody else chose. */

/**
 * Words that stand in a path where an id stands in another and are therefore none. DESIGN.md section 4. `test` is an id: nothing
 * that is done with an id is done under `POST …/test`, and many things are called so.
 */
const PATH_WORDS = new Set(["create", "discover", "from-url", "import", "import-url", "restore-app", "search"]);

/** Says whether a word is part of a path, so that no id can be called so. */
export function isPathWord(text: string): boolean {
  return PATH_WORDS.has(text);
}

/** Says whether a text is an id: 1 to 64 letters, digits, `_` or `-`, and no word of a path. */
export function isId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(text) && !isPathWord(text);
}
