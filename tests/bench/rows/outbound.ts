/** Requests to the owner's servers: to an address, to a name over HTTP, and to a name over HTTPS through the proxy. */
import { openHttpClient } from "../../../services/http/http_client.ts";
import { makeCertificate } from "../../helpers/files/tls_certificate.ts";
import { eachRound, type Figure, freshFolder, milliseconds, type Row, startHere } from "../bench.ts";
import { compare, median, type Pair } from "../stats.ts";

const REQUESTS = 300;
const TIMEOUT_MS = 30_000;
const SERVER = "counterparts/answering.ts";

/** Requests one after another, with kept connections. */
export const outboundRow: Row = {
  name: "outbound",
  about: "requests of the outbound client: address, HTTP name, HTTPS name",
  async run(bench) {
    const folder = await freshFolder(bench);
    const { cert, key } = await makeCertificate();
    await Deno.writeTextFile(`${folder}/cert`, cert);
    await Deno.writeTextFile(`${folder}/key`, key);
    const plain = await startHere(bench, SERVER);
    const secure = await startHere(bench, SERVER, `${folder}/cert`, `${folder}/key`);
    const own = openHttpClient({ caCerts: [cert] });
    const bare = Deno.createHttpClient({ caCerts: [cert] });
    const ways: [what: string, url: string][] = [
      ["an address, HTTP", `http://127.0.0.1:${plain.port}/`],
      ["a name, HTTP", `http://localhost:${plain.port}/`],
      ["a name, HTTPS", `https://localhost:${secure.port}/`],
    ];
    try {
      const figures: Figure[] = [];
      for (const [what, url] of ways) {
        const rounds = await eachRound(bench, `outbound: ${what}`, async (): Promise<Pair> => {
          const target = {
            baseUrl: url,
            timeouts: { connectMs: TIMEOUT_MS, firstByteMs: TIMEOUT_MS, idleMs: TIMEOUT_MS },
          };
          return {
            own: await timeOf(() => own.fetch("the server", target, { url })),
            limit: await timeOf(() => fetch(url, { client: bare })),
          };
        });
        const { own: ms, limit, ratio } = compare(rounds);
        figures.push({
          what: `a request to ${what}, of ${REQUESTS} in a row`,
          own: milliseconds(ms),
          limit: milliseconds(limit),
          counterpart: "fetch of the runtime",
          ratio,
          target: "–",
        });
      }
      return figures;
    } finally {
      own.close();
      bare.close();
      await plain.stop();
      await secure.stop();
    }
  },
};

/** Returns the median time of a request. */
async function timeOf(send: () => Promise<Response>): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < REQUESTS; n++) {
    const beganAt = performance.now();
    await (await send()).text();
    times.push(performance.now() - beganAt);
  }
  return median(times);
}
