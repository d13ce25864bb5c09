/** Seals with a fixed key and gives the IVs, as a program or as a Worker. Message or argument: how many. */

import { createSealer } from "../../../services/crypto/sealer.ts";

function freshIvs(count: number): string[] {
  const sealer = createSealer(new Uint8Array(32).fill(7)).forPurpose("iv");
  return Array.from({ length: count }, (_, n) => {
    const sealed = sealer.sealNow({ table: "t", id: "same", field: "f", version: n }, "same");
    return sealed.subarray(1, 13).toHex();
  });
}

if (import.meta.main && Deno.args[0] !== undefined) {
  for (const iv of freshIvs(Number(Deno.args[0]))) console.log(iv);
} else {
  self.onmessage = ({ data }: MessageEvent<number>) => self.postMessage(freshIvs(data));
}
