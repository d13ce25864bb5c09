/** The section of docs/benchmarks.md about the last soak test. `deno task bench` preserves it. */

const HEADING = "## Soak";
const DOCUMENT = new URL("../../docs/benchmarks.md", import.meta.url);

/** Returns that section of the document with the blank line before it, or an empty string. */
export function findSoakSection(document: string): string {
  const at = document.indexOf(`\n${HEADING}\n`);
  return at < 0 ? "" : document.slice(at);
}

/** Replaces the section. @param lines The output of the soak test. */
export async function writeSoakSection(lines: readonly string[]): Promise<void> {
  const document = await Deno.readTextFile(DOCUMENT);
  const rest = document.slice(0, document.length - findSoakSection(document).length);
  const date = new Date().toISOString().slice(0, 10);
  const about =
    `Twelve writers and four readers on one server, through kills, stops, full disks and a model server that fails or stalls.
After each restart, every confirmed write has to exist. In the last run, which takes two fifths of the time, the memory of the
server has to stay the same (1.15 ×, or 1.05 × over 200,000 requests); it's measured every ten seconds after a garbage collection.

\`deno task soak --minutes N [--requests N] --write\` writes this section; this run: ${date}.`;
  await Deno.writeTextFile(
    DOCUMENT,
    `${rest}\n${HEADING}\n\n${about}\n\n${lines.map((line) => `- ${line}`).join("\n")}\n`,
  );
}
