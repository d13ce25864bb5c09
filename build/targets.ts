/** The kinds of machines for which executables are built. */

/** A kind of machine. */
export interface BuildTarget {
  /** Value of `--target`, and part of the file's name. */
  name: string;
  /** Name in Deno's compiler. */
  triple: string;
  /** Name of the executable in dist/. */
  file: string;
}

/** All targets. */
const TARGETS: readonly BuildTarget[] = [
  { name: "linux-x64", triple: "x86_64-unknown-linux-gnu", file: "parlor-linux-x64" },
  { name: "linux-arm64", triple: "aarch64-unknown-linux-gnu", file: "parlor-linux-arm64" },
  { name: "macos-x64", triple: "x86_64-apple-darwin", file: "parlor-macos-x64" },
  { name: "macos-arm64", triple: "aarch64-apple-darwin", file: "parlor-macos-arm64" },
  { name: "windows-x64", triple: "x86_64-pc-windows-msvc", file: "parlor-windows-x64.exe" },
];

/**
 * Reads `--target NAME` or `--target=NAME`, which may be repeated or `all`.
 *
 * @returns An empty array if there is none: then the build is for this machine
 * @throws {Error} for an unknown name
 */
export function parseTargets(args: readonly string[]): BuildTarget[] {
  const names = args.flatMap((arg, i) =>
    arg === "--target" ? [args[i + 1] ?? ""] : arg.startsWith("--target=") ? [arg.slice("--target=".length)] : []
  );
  if (names.includes("all")) return [...TARGETS];
  return names.map((name) => {
    const target = TARGETS.find((candidate) => candidate.name === name);
    if (target !== undefined) return target;
    throw new Error(
      `Unknown target "${name}". Targets: ${TARGETS.map((candidate) => candidate.name).join(", ")} and all`,
    );
  });
}

/** Returns the target of this machine. */
export function getOwnTarget(): BuildTarget | undefined {
  return TARGETS.find(({ triple }) => triple === Deno.build.target);
}
