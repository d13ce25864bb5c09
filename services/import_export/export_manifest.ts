/** First file of an export; identifies the format. */
export const EXPORT_MARK = "parlor-export.json";
/**
 * Version of the export format. 1 had message variants inline and no voices or settings; 2 had no continuations of
 * inactive versions.
 */
export const EXPORT_FORMAT = 3;
