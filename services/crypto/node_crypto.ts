/**
 * `node:crypto`, loaded when it is first used: the runtime takes longer to load it than we need for everything else before
 * the first answer. For what the start loads; a room that is opened later imports the module as any other.
 */

type NodeCrypto = typeof import("node:crypto");

let loaded: NodeCrypto | undefined;

/** Gives the module. */
export function nodeCrypto(): NodeCrypto {
  // deno-lint-ignore no-process-global -- to import node:process takes half as long again, and that at every start
  return loaded ??= process.getBuiltinModule("node:crypto") as NodeCrypto;
}
