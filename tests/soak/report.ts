/** The part of docs/benchmarks.md that tells of the last soak; `deno task bench` leaves it as it is. */

const HEADING = "## Soak";
const DOCUMENT = new URL("../../docs/benchmarks.md", import.meta.url);

/** Gives that part of the document, with the line before it; empty where there is none. */
export function soakPartOf(document: string): string {
  const at = document.indexOf(`\n${HEADING}\n`);
  return at < 0 ? "" : document.slice(at);
}

/** Writes it anew. @param lines What the soak printed. */
export async function writeSoakPart(lines: readonly string[]): Promise<void> {
  const document = await Deno.readTextFile(DOCUMENT);
  const rest = document.slice(0, document.length - soakPartOf(document).length);
  const date = new Date().toISOString().slice(0, 10);
  const about =
    `Written by \`deno task soak --minutes N --write\`, ${date}: twelve writers and four askers on one server, through kills,
stops, full disks and a model that drops or dawdles. After each life every acknowledged write has to be there; over the last,
which takes two fifths of the time, what the server holds in memory has to stay the same. It is looked at every ten seconds,
after its garbage was collected.`;
  await Deno.writeTextFile(
    DOCUMENT,
    `${rest}\n${HEADING}\n\n${about}\n\n${lines.map((line) => `- ${line}`).join("\n")}\n`,
  );
}
