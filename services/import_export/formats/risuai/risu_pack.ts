/**
 * Reads RisuAI's module and preset files. Every byte is substituted by a fixed table; a preset is compressed
 * MessagePack, encrypted with a key that all copies of RisuAI share.
 *
 * @see https://github.com/kwaroran/RisuAI rpack/README, process/modules.ts (exportModule) and
 *   storage/database.svelte.ts (downloadPreset) at 904a14a (2026-01-12)
 */
import { ImportError } from "../../import_reasons.ts";
import { asObject, isJsonObject, type JsonObject, parseJsonBytes } from "../../../json/type_guards.ts";
import { messagePack, unpacked } from "./risu_save.ts";

/** Size limit of both. The images of a module come after the part that is read. */
export const MAX_RISU_PACK_BYTES = 256 * 1024 * 1024;
const MAX_PRESET_BYTES = 16 * 1024 * 1024;

/** Substitution table, part of the format. */
const TABLE = Uint8Array.fromBase64(
  "LPeEi8ll+7afrrMDLQFpdB/ko+zuXDQhk0oPauJiAp4inP08/HHHxq1ZZwVwbYpEEvokhl+v0XpHzv5QY91RBm8Y4FKoCZ1Wc0y4U2zDoA4Z" +
    "zz4NfgcyaEbqSPmZLqukSSBeVTU4DLzTsVgWeSgKGuHyzcQ526K6YHJ2fZXvf8jA3jeUv7UUgZIlRazn9WanKzZawRPjSzrojYMbfCewmkLr" +
    "h6rcVI54JtJXKdS3+C+PiXXwQXfCHv/YFRHlBJcX8zHQmwDXyrRPKjvZsmvaXaE/MGG9kT1O5t++TYKMHSMQmGT0hTN7kEO7qYjx1qUc9sxu" +
    "uVsLlu3V6cXLCKaAQA==",
);

/** Header of a module: magic byte, version, and length of its JSON. */
const MODULE_MARK = 111;
const MODULE_VERSION = 0;
const MODULE_HEAD_BYTES = 6;

const PRESET_PASSWORD = "risupreset";
const IV_BYTES = 12;

/** Reads a `.risum` file without its images. @throws {AppError} `unprocessable` */
export function moduleOf(bytes: Uint8Array): JsonObject {
  const isModule = bytes.length > MODULE_HEAD_BYTES && bytes[0] === MODULE_MARK && bytes[1] === MODULE_VERSION;
  if (!isModule) throw new ImportError("risu_no_module");
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(2, true);
  const packed = bytes.subarray(MODULE_HEAD_BYTES, MODULE_HEAD_BYTES + length);
  if (packed.length < length) throw new ImportError("risu_cut_off");
  try {
    const { type, module } = asObject(parseJsonBytes(exchanged(packed)));
    if (type === "risuModule" && isJsonObject(module)) return module;
  } catch (cause) {
    throw new ImportError("risu_module_damaged", { cause });
  }
  throw new ImportError("risu_holds_no_module");
}

/**
 * Reads a `.risup` file, or the older `.risupreset`.
 *
 * @param isExchanged False for the older format.
 * @throws {AppError} `unprocessable`, `too_large`
 */
export async function presetOf(bytes: Uint8Array<ArrayBuffer>, isExchanged: boolean): Promise<JsonObject> {
  const outer = asObject(messagePack(unpacked(isExchanged ? exchanged(bytes) : bytes, MAX_PRESET_BYTES)));
  const sealed = outer.preset ?? outer.pres;
  if (outer.type !== "preset" || !(sealed instanceof Uint8Array)) {
    throw new ImportError("risu_no_preset");
  }
  const preset = messagePack(await opened(sealed));
  if (!isJsonObject(preset)) throw new ImportError("risu_holds_no_preset");
  return preset;
}

async function opened(sealed: Uint8Array): Promise<Uint8Array> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(PRESET_PASSWORD));
  const key = await crypto.subtle.importKey("raw", digest, "AES-GCM", false, ["decrypt"]);
  try {
    const parameters = { name: "AES-GCM", iv: new Uint8Array(IV_BYTES) };
    return new Uint8Array(await crypto.subtle.decrypt(parameters, key, sealed.slice()));
  } catch (cause) {
    throw new ImportError("risu_preset_damaged", { cause });
  }
}

function exchanged(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(bytes, (byte) => TABLE[byte]!);
}
