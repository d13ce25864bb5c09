/** First file of an export, by which it is known again. */
export const EXPORT_MARK = "parlor-export.json";
/**
 * Form of an export; 1 had the other texts of a message inside it, and neither voices nor settings, 2 had nothing that
 * follows versions which aren't active.
 */
export const EXPORT_FORMAT = 3;
