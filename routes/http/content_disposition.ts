/** The header that names a file for whoever saves an answer. */
import { normalized } from "../../services/json/unicode.ts";

/** Value of `X-Parlor-Warning` on an export that is larger than the import of its kind takes. */
export const TOO_LARGE_TO_IMPORT = "larger_than_import_limit";

const MAX_NAME_LENGTH = 100;

/**
 * Gives a Content-Disposition for a file to be saved, whatever its name is made of.
 *
 * @see RFC 6266, section 4.3 and appendix D: a plain name for old readers, then the whole one.
 */
export function attachment(fileName: string): string {
  const dot = fileName.lastIndexOf(".");
  const [stem, ending] = dot < 0 ? [fileName, ""] : [fileName.slice(0, dot), fileName.slice(dot)];
  // What names a folder, a drive or nothing at all on some system is no name of a file.
  const clean = stem.toWellFormed().replace(/[\p{Cc}\p{Cf}\\/:*?"<>|%]+/gu, " ").replace(/^[\s.]+|[\s.]+$/g, "");
  const name = `${[...clean].slice(0, MAX_NAME_LENGTH).join("") || "character"}${ending}`;
  const plain = normalized(name, "NFKD").replace(/\p{M}+/gu, "").replace(/[^\x20-\x7e]+/g, "_");
  const encoded = encodeURIComponent(name).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
