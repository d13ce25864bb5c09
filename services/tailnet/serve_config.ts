/** What the node serves, as its serve-config has it. */
import { yieldToEventLoop } from "../async/yield_to_event_loop.ts";

const LAST_PORT = 65_535;
/** Ports written at a time: requests are answered in between. */
const PORTS_AT_ONCE = 2_048;

/** How the node is to be reached. */
export interface Serving {
  fqdn: string;
  /** Address that requests are handed to. */
  target: string;
  isHttps: boolean;
}

/**
 * Makes the whole configuration.
 *
 * Every port of the node is in it: in userspace mode a port that is not goes raw to the same port of this machine's
 * 127.0.0.1, where Parlor takes the caller for its owner and so do the household's other services. A port without an
 * entry under `Web` answers 404. The type of each port is the same with and without certificates, since a change of type
 * is refused. `AllowFunnel` stays away: it opens a port to the internet.
 */
export async function serveConfig({ fqdn, target, isHttps }: Serving): Promise<string> {
  let ports = "";
  for (let port = 1; port <= LAST_PORT; port++) {
    ports += port === 443 ? '"443":{"HTTPS":true}' : `"${port}":{"HTTP":true}`;
    if (port < LAST_PORT) ports += ",";
    if (port % PORTS_AT_ONCE === 0) await yieldToEventLoop();
  }
  const handlers = { Handlers: { "/": { Proxy: target } } };
  // With HTTPS the listener sends who came without to the right address.
  const web = isHttps ? { [`${fqdn}:443`]: handlers, [`${fqdn}:80`]: handlers } : { [`${fqdn}:80`]: handlers };
  return `{"TCP":{${ports}},"Web":${JSON.stringify(web)}}`;
}
