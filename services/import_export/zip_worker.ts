/** The Worker that packs what goes into an export: zip_packer.ts is its other end. */
import { crc32, deflateRawSync } from "node:zlib";

/** What the serving thread sends; the bytes are moved here. */
export interface PackOrder {
  bytes: Uint8Array<ArrayBuffer>;
  /** Text is packed and looked through; pictures and sounds are packed already. */
  isText: boolean;
}

/** What it gets back. */
export interface PackedFile {
  /** Moved back. */
  packed: Uint8Array<ArrayBuffer>;
  isDeflated: boolean;
  sizeBytes: number;
  crc: number;
  /** Attachments that the text refers to. */
  attachments: string[];
}

const ATTACHMENT_URL = /\/api\/attachments\/([A-Za-z0-9_-][A-Za-z0-9._-]{0,127})/g;
const LEVEL = 6;

function packed({ bytes, isText }: PackOrder): PackedFile {
  const facts = { isDeflated: isText, sizeBytes: bytes.length, crc: crc32(bytes) };
  if (!isText) return { ...facts, packed: bytes, attachments: [] };
  const names = new TextDecoder().decode(bytes).matchAll(ATTACHMENT_URL);
  return {
    ...facts,
    packed: new Uint8Array(deflateRawSync(bytes, { level: LEVEL })),
    attachments: [...new Set([...names].map(([, name]) => name!))],
  };
}

// A page has a window and a Worker has not: importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  self.onmessage = ({ data }: MessageEvent<PackOrder>) => {
    const answer = packed(data);
    self.postMessage(answer, [answer.packed.buffer]);
  };
}
