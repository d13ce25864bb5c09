/** The model server, Parlor before it, and the bare relay that Parlor is compared with. */
import { type Bench, freshFolder, startHere } from "../bench.ts";
import type { Program } from "../child.ts";
import { HttpConnection } from "../http_connection.ts";
import { Parlor } from "../parlor.ts";

/** The running relays. */
export class RelaySides implements AsyncDisposable {
  readonly upstream: Program;
  readonly relay: Program;
  readonly parlor: Parlor;
  #connections: HttpConnection[] = [];

  private constructor(upstream: Program, relay: Program, parlor: Parlor) {
    this.upstream = upstream;
    this.relay = relay;
    this.parlor = parlor;
  }

  /** @param counterpart File of the bare relay. */
  static async open(bench: Bench, counterpart: string): Promise<RelaySides> {
    const upstream = await startHere(bench, "upstream_source.ts");
    const url = `http://127.0.0.1:${upstream.port}/v1/chat/completions`;
    const relay = await startHere(bench, counterpart, url);
    const parlor = await Parlor.open({ programs: bench.programs, dataDir: await freshFolder(bench) });
    await parlor.useUpstream(upstream.port);
    return new RelaySides(upstream, relay, parlor);
  }

  /** Opens connections that are kept open until the end, like a browser's. */
  async connect(port: number, count: number): Promise<HttpConnection[]> {
    const opened = await Promise.all(Array.from({ length: count }, () => HttpConnection.open(port)));
    this.#connections.push(...opened);
    return opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#connections) connection.close();
    await this.parlor.stop();
    await Promise.all([this.relay.stop(), this.upstream.stop()]);
  }
}
