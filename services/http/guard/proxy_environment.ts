/** Proxy settings inherited from the environment, which must not decide where our calls go. */

// NODE_USE_ENV_PROXY is the switch by which node-compatible clients start to read the others.
const NAMES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NODE_USE_ENV_PROXY"];

/**
 * Deletes the proxy variables, in upper and lower case, from the environment of this process.
 *
 * The runtime reads them whenever an HTTP client is made, and `NO_PROXY` would lead a guarded call round the guard. To be
 * called at start-up before the first client; child processes started later do not inherit them either.
 */
export function dropProxyEnvironment(): void {
  for (const name of NAMES) {
    Deno.env.delete(name);
    Deno.env.delete(name.toLowerCase());
  }
}
