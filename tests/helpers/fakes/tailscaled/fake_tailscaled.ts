/** Fake tailscaled (docs/protocols/tailscale.md): writes the program into a folder and controls it through a side channel. */
import { type RawAnswer, rawRequest } from "../../network/raw_http.ts";
import { PEER_HEADER } from "./fake_tailscaled_forwarder.ts";
import type { ForwarderPorts, NodeCall, NodeFacts, Switches } from "./fake_tailscaled_types.ts";

/** A request of a peer in the tailnet. */
export interface PeerRequest {
  path: string;
  method?: string;
  /** By default the node's own name. */
  host?: string;
  headers?: Record<string, string>;
  body?: string;
  /** To port 443. */
  isSecure?: boolean;
  /** Address in the tailnet. */
  peer?: string;
}

/** The fake tailscaled. */
export class FakeTailscaled {
  /** Path of the program, for `tailscaled_path`. */
  readonly program: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.program = `${folder}/tailscaled`;
  }

  /** @param folder A folder for sockets, so its path must be short. */
  static async write(folder: string, switches: Switches = {}): Promise<FakeTailscaled> {
    const double = new FakeTailscaled(folder);
    const source = `${import.meta.dirname}/fake_tailscaled_program.ts`;
    const command = `exec "${Deno.execPath()}" run --quiet --no-prompt -A "${source}" "${folder}" "$@"`;
    await double.set(switches);
    await Deno.writeTextFile(double.program, `#!/bin/sh\n${command}\n`, { mode: 0o755 });
    return double;
  }

  /** Replaces all switches. Those of the start apply to the next start. */
  async set(switches: Switches): Promise<void> {
    await Deno.writeTextFile(`${this.#folder}/switches.new`, JSON.stringify(switches));
    await Deno.rename(`${this.#folder}/switches.new`, `${this.#folder}/switches.json`);
  }

  facts(): Promise<NodeFacts> {
    return this.#tell("/facts");
  }

  approve(): Promise<NodeFacts> {
    return this.#tell("/approve");
  }

  admit(): Promise<NodeFacts> {
    return this.#tell("/admit");
  }

  expire(): Promise<NodeFacts> {
    return this.#tell("/expire");
  }

  complain(text: string): Promise<NodeFacts> {
    return this.#tell("/complain", text);
  }

  /** Ends the watches, as for a listener that is too slow. */
  fallBehind(): Promise<NodeFacts> {
    return this.#tell("/fall-behind");
  }

  /** Changes the serve configuration without Parlor. */
  serve(config: string): Promise<NodeFacts> {
    return this.#tell("/serve", config);
  }

  /** Ends by itself. */
  async die(code: number): Promise<void> {
    await this.#tell("/die", String(code)).catch(() => {}); // It exits before it can respond.
  }

  /** Calls of its LocalAPI since it was written, in order. */
  async calls(): Promise<NodeCall[]> {
    return (await this.#lines("calls")).map((line) => JSON.parse(line));
  }

  /** Number of requests of each call. */
  async count(call: string): Promise<number> {
    return (await this.calls()).filter((each) => each.call === call).length;
  }

  /** Violations of invariants. */
  faults(): Promise<string[]> {
    return this.#lines("faults");
  }

  /** Process numbers of its starts. */
  async starts(): Promise<number[]> {
    return (await this.#lines("starts")).map(Number);
  }

  /** Sends a request through serve, like a peer's browser. */
  async ask(request: PeerRequest): Promise<RawAnswer> {
    const { path, method = "GET", headers = {}, body = "", isSecure = false, peer = "100.64.0.7" } = request;
    const { plain, secure } = await this.#ports();
    const host = request.host ?? (await this.facts()).servedNames[0]!.replace(/:\d+$/, "");
    const sent = {
      Host: host,
      Connection: "close",
      [PEER_HEADER]: peer,
      "Content-Length": String(body.length),
      ...headers,
    };
    const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}\r\n`).join("");
    return await rawRequest(isSecure ? secure : plain, `${method} ${path} HTTP/1.1\r\n${lines}\r\n${body}`);
  }

  /** Connects to a port that the node doesn't serve. */
  async askRaw(port: number, text: string): Promise<RawAnswer> {
    return await rawRequest((await this.#ports()).raw, `${port}\n${text}`);
  }

  async #ports(): Promise<ForwarderPorts> {
    return JSON.parse(await Deno.readTextFile(`${this.#folder}/ports.json`));
  }

  async #lines(name: string): Promise<string[]> {
    const text = await Deno.readTextFile(`${this.#folder}/${name}`).catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  }

  async #tell(path: string, body?: string): Promise<NodeFacts> {
    using client = Deno.createHttpClient({ proxy: { transport: "unix", path: `${this.#folder}/test.sock` } });
    const answer = await fetch(`http://node.test${path}`, { method: "POST", body, client });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return JSON.parse(text);
  }
}
