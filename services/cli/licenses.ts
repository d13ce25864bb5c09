/** `parlor licenses`: license notices of all bundled packages. */

/** Text of `parlor licenses --help`. */
export const LICENCES_HELP = "Usage: parlor licenses\n\nPrints the license notices of everything in this executable.";
