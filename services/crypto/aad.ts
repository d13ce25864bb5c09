/** Additional authenticated data: binds a sealed value to where it is stored. */

import { AppError } from "../errors.ts";
import { utf8Bytes } from "./utf8_bytes.ts";

/** Where a sealed value is stored. It opens nowhere else. */
export interface Aad {
  /** SQL table, or the folder of a sealed file. */
  table: string;
  /** Row id or file name. */
  id: string;
  /** Column, or the name of the value if a row holds several. */
  field: string;
  /** Increases with every change, so that an older value isn't accepted as the current one. */
  version: number;
}

/**
 * Returns the bytes of the additional authenticated data.
 *
 * The parts are encoded as a JSON array so that no two places share their bytes: `["a","bc"]` differs from
 * `["ab","c"]`, and unpaired surrogates are escaped, not replaced. The encoding is part of the stored format and must
 * not change.
 *
 * @param formatVersion First byte of the sealed value; authenticated with the rest.
 * @throws {AppError} `internal` unless the version is a safe integer from 0. Other numbers can share a spelling.
 */
export function encodeAad(formatVersion: number, aad: Aad): Uint8Array<ArrayBuffer> {
  const { table, id, field, version } = aad;
  if (!Number.isSafeInteger(version) || version < 0) {
    throw new AppError("internal", `Can't seal a value for ${table}: invalid version ${version}`);
  }
  return utf8Bytes(JSON.stringify([formatVersion, table, id, field, version]));
}
