/** What may be an id of a resource, for the routes and for files whose names somebody else chose. */

/** Words that stand as path segments beside ids and therefore are none. DESIGN.md section 4. */
const PATH_WORDS = new Set([
  ...["activate", "browse", "cancel", "create", "discover", "download", "downloads", "draft", "export"],
  ...[
    "files",
    "from-url",
    "generate",
    "import",
    "import-url",
    "messages",
    "preview",
    "replies",
    "restore",
    "restore-app",
  ],
  ...["revisions", "search", "test", "variants"],
]);

/** Says whether a word is part of a path, so that no id can be called so. */
export function isPathWord(text: string): boolean {
  return PATH_WORDS.has(text);
}

/** Says whether a text is an id: 1 to 64 letters, digits, `_` or `-`, and no word of a path. */
export function isId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(text) && !isPathWord(text);
}
