/**
 * Loads `node:crypto` on first use. Loading it takes longer than the rest of a start, so code that runs during a start
 * uses this instead of an import.
 */

type NodeCrypto = typeof import("node:crypto");

let loaded: NodeCrypto | undefined;

/** Returns the module. */
export function nodeCrypto(): NodeCrypto {
  // deno-lint-ignore no-process-global -- to import node:process takes half as long again, and that at every start
  return loaded ??= process.getBuiltinModule("node:crypto") as NodeCrypto;
}
