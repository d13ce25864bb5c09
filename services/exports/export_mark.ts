/** First file of an export, by which it is known again. */
export const EXPORT_MARK = "parlor-export.json";
