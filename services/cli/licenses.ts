/** `parlor licenses`: what others wrote of the program, and under which terms. */

/** Text of `parlor licenses --help`. */
export const LICENCES_HELP = "Usage: parlor licenses\n\nPrints the licence notices of all that is in this executable.";
