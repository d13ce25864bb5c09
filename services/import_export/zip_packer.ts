/** Compresses the files of an export in a Worker, which ends with the export. */
import { AppError } from "../errors.ts";
import type { PackedFile, PackOrder } from "./zip_worker.ts";

/** Compresses files one after another. */
export interface Packer {
  /**
   * Compresses a file. @param bytes Transferred: don't use them afterwards. @throws {AppError} `internal` if the Worker
   * is lost.
   */
  pack(bytes: Uint8Array, isText: boolean): Promise<PackedFile>;
  close(): void;
}

/** Starts a packer. */
export function openPacker(): Packer {
  const worker = new Worker(new URL("./zip_worker.ts", import.meta.url), { type: "module" });
  return {
    pack: (bytes, isText) =>
      new Promise((resolve, reject) => {
        worker.onmessage = ({ data }: MessageEvent<PackedFile>) => resolve(data);
        worker.onerror = (event) => {
          event.preventDefault(); // an unhandled error event would end the process
          reject(new AppError("internal", `Can't pack the export: ${event.message}`));
        };
        // postMessage sends the whole buffer behind a view, so cut a part out of a larger buffer first.
        const own = bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice();
        const order: PackOrder = { bytes: own as Uint8Array<ArrayBuffer>, isText };
        worker.postMessage(order, [order.bytes.buffer]);
      }),
    close: () => worker.terminate(),
  };
}
