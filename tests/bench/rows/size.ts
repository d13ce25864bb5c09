/** The size that Parlor adds to the runtime of a compiled Deno program. */
import { mebibytes, type Row } from "../bench.ts";
import { executableHere, runtimeBytes } from "../executable.ts";
import { notBuilt } from "./start.ts";

const MAX_ADDED_BYTES = 25_000_000;

/** Size of the executable. */
export const sizeRow: Row = {
  name: "size",
  about: "size of the executable",
  async run() {
    const executable = await executableHere();
    if (executable === undefined) return [notBuilt("size of the executable", "+ ≤ 25 MB")];
    const { size } = await Deno.stat(executable);
    const runtime = await runtimeBytes(executable);
    return [{
      what: "size of the executable",
      own: mebibytes(size),
      limit: mebibytes(runtime),
      counterpart: "the compile runtime alone",
      ratio: size / runtime,
      target: "+ ≤ 25 MB",
      isReached: size - runtime <= MAX_ADDED_BYTES,
    }];
  },
};
