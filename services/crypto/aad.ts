/** Where a sealed value belongs, and the bytes that bind it there. */

import { AppError } from "../errors.ts";
import { utf8Bytes } from "./utf8_bytes.ts";

/** The one place a sealed value may be opened for. */
export interface Place {
  /** Table, or the folder of a sealed file. */
  table: string;
  /** Row id or file name. */
  id: string;
  /** Column, or what the value is when a row holds several. */
  field: string;
  /** Number that moves with every change of the value, so that an older one does not pass for the present one. */
  version: number;
}

/**
 * Gives the additional authenticated data of a place.
 *
 * A JSON array keeps the parts apart, so that no two places share their bytes: `["a","bc"]` is not `["ab","c"]`, and
 * half a surrogate pair is escaped instead of replaced. Part of the stored format, never changed.
 *
 * @param formatVersion First byte of the sealed value, bound with the place.
 * @throws {AppError} `internal` when the version is no safe integer from 0, since others can share their spelling.
 */
export function additionalData(formatVersion: number, place: Place): Uint8Array<ArrayBuffer> {
  const { table, id, field, version } = place;
  if (!Number.isSafeInteger(version) || version < 0) {
    throw new AppError("internal", `Cannot bind a sealed value to ${table}: its version is ${version}`);
  }
  return utf8Bytes(JSON.stringify([formatVersion, table, id, field, version]));
}
