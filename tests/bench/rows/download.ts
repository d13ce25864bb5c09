/** A model of 1 GiB from a hub on the same machine, checked by its hash on the way. */
import {
  type Bench,
  eachRound,
  freshFolder,
  mebibytes,
  milliseconds,
  ratioFigure,
  type Row,
  startHere,
} from "../bench.ts";
import { within } from "../child.ts";
import type { HttpConnection } from "../http_connection.ts";
import { Parlor } from "../parlor.ts";
import { forgetPeak, peakBytes } from "../process_facts.ts";
import { compare, median } from "../stats.ts";

const DONE_WITHIN_MS = 120_000;
const POLL_MS = 10;
const PEAK_BYTES = 100 * 1024 * 1024;
const ASK = JSON.stringify({ repo: "bench/big", format: "gguf", file: "big.gguf" });

interface Download {
  state: string;
  error?: { message: string };
}

/** Download of a large file. */
export const downloadRow: Row = {
  name: "download",
  about: "1 GiB download with SHA-256",
  async run(bench) {
    const source = await startHere(bench, "counterparts/large_file.ts");
    const url = `http://127.0.0.1:${source.port}`;
    const parlor = await Parlor.open({
      programs: bench.programs,
      dataDir: await freshFolder(bench),
      args: hubArgs(source.port),
    });
    const folder = await freshFolder(bench);
    const peaks: number[] = [];
    const rounds = await eachRound(bench, "download", async () => {
      await forgetPeak(parlor.pid);
      const own = await timed(() => download(parlor.control));
      peaks.push(await peakBytes(parlor.pid));
      await removeDownload(parlor.control);
      const limit = await timed(() => pipeline(bench, url, `${folder}/big.gguf`));
      await Deno.remove(`${folder}/big.gguf`);
      return { own, limit };
    });
    await Promise.all([parlor.stop(), source.stop()]);
    const what = "1 GiB download with SHA-256";
    const parts = { what, counterpart: "curl | tee | openssl sha256", unit: milliseconds, atMost: 1 };
    const peak = median(peaks.slice(1)); // The first one warms up.
    return [
      ratioFigure(parts, compare(rounds)),
      {
        what: `${what}, peak memory (RSS)`,
        own: mebibytes(peak),
        limit: "–",
        counterpart: "–",
        target: `≤ ${PEAK_BYTES / 1024 / 1024} MiB`,
        isReached: peak <= PEAK_BYTES,
      },
    ];
  },
};

/** Gives the flags that make counterparts/large_file.ts the hub. */
export function hubArgs(port: number): string[] {
  return ["--hub-url", `http://127.0.0.1:${port}`, "--guard-allow", "127.0.0.1/32"];
}

/** Deletes the downloaded file. */
export async function removeDownload(connection: HttpConnection): Promise<void> {
  await connection.bytes("DELETE", "/api/models/local?path=bench/big/big.gguf");
}

/** Downloads the file and waits until it is verified. */
export async function download(connection: HttpConnection): Promise<void> {
  await connection.bytes("POST", "/api/models/download", ASK);
  const done = async () => {
    for (;;) {
      const [newest] = await connection.json<Download[]>("GET", "/api/models/downloads");
      if (newest?.state === "done") return;
      if (newest?.state === "failed") throw new Error(`The download failed: ${newest.error?.message}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  };
  await within(DONE_WITHIN_MS, done(), `The download is not done after ${DONE_WITHIN_MS} ms`);
}

async function pipeline(bench: Bench, url: string, path: string): Promise<void> {
  const program = await bench.programs.start({
    command: "sh",
    args: ["-c", 'curl -s "$1/" | tee "$2" | openssl sha256; read -r end', "sh", url, path],
    name: "curl | tee | openssl sha256",
  });
  await program.stop();
}

async function timed(work: () => Promise<void>): Promise<number> {
  const beganAt = performance.now();
  await work();
  return performance.now() - beganAt;
}
