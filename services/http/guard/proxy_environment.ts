/** Removes proxy settings inherited from the environment, which must not redirect our requests. */

// NODE_USE_ENV_PROXY makes Node-compatible clients read the others.
const NAMES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NODE_USE_ENV_PROXY"];

/**
 * Deletes the proxy variables, in upper and lower case, from the environment of this process.
 *
 * The runtime reads them for every new HTTP client, and `NO_PROXY` would bypass the guard. Call this at startup, before the
 * first client. Child processes don't inherit them either.
 */
export function dropProxyEnvironment(): void {
  for (const name of NAMES) {
    Deno.env.delete(name);
    Deno.env.delete(name.toLowerCase());
  }
}
