/** `parlor licenses`: what others wrote of the program, and under which terms. */

/** Text of `parlor licenses --help`. */
export const LICENCES_HELP = "Usage: parlor licenses\n\nPrints the license notices of everything in this executable.";
