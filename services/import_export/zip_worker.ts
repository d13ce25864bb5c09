/** The Worker that compresses the files of an export. `exports.ts` starts it. */
import { crc32, deflateRawSync } from "node:zlib";
import { findAttachmentNames } from "../attachments/attachment_rows.ts";
import { reportDefects } from "../process/worker.ts";

/** Message from the serving thread; the bytes are transferred. */
export interface PackOrder {
  bytes: Uint8Array<ArrayBuffer>;
  /** Text is compressed and searched for attachments; images and audio are already compressed. */
  isText: boolean;
}

/** The compressed file. */
export interface PackedFile {
  /** Transferred back to the serving thread. */
  packed: Uint8Array<ArrayBuffer>;
  isDeflated: boolean;
  sizeBytes: number;
  crc: number;
  /** Attachments that the text refers to. */
  attachments: string[];
}

const LEVEL = 6;

function packed({ bytes, isText }: PackOrder): PackedFile {
  const facts = { isDeflated: isText, sizeBytes: bytes.length, crc: crc32(bytes) };
  if (!isText) return { ...facts, packed: bytes, attachments: [] };
  const names = findAttachmentNames(new TextDecoder().decode(bytes));
  return {
    ...facts,
    packed: new Uint8Array(deflateRawSync(bytes, { level: LEVEL })),
    attachments: names,
  };
}

// Importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  reportDefects();
  self.onmessage = ({ data }: MessageEvent<PackOrder>) => {
    const answer = packed(data);
    self.postMessage(answer, [answer.packed.buffer]);
  };
}
