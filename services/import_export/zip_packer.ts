/** Packs the files of one export in a Worker, so that no chat holds the thread that serves; it ends with the export. */
import { AppError } from "../errors.ts";
import type { PackedFile, PackOrder } from "./zip_worker.ts";

/** Packs one file after another. */
export interface Packer {
  /** @param bytes Moved: not to be used afterwards. @throws {AppError} `internal` when the Worker is lost */
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
          event.preventDefault(); // else it would end the process
          reject(new AppError("internal", `Cannot pack the export: ${event.message}`));
        };
        // A view is sent with the whole buffer under it, so a part of a larger buffer is cut out first.
        const own = bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice();
        const order: PackOrder = { bytes: own as Uint8Array<ArrayBuffer>, isText };
        worker.postMessage(order, [order.bytes.buffer]);
      }),
    close: () => worker.terminate(),
  };
}
