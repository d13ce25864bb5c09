/** The section of docs/benchmarks.md about the last soak tests. `deno task bench` preserves it. */

const HEADING = "## Soak";
const DOCUMENT = new URL("../../docs/benchmarks.md", import.meta.url);

/** What each way of running does. Its figures follow the line with its command. */
const WAYS = {
  minutes:
    `\`deno task soak --minutes N --write\`: twelve writers and four askers on one server, through kills, stops, full disks and a
model server that fails or stalls. After each restart, every confirmed write has to exist. In the last run, which takes two
fifths of the time, the memory of the server has to stay the same (1.15 × from the second to the last third); it's measured
every ten seconds after a garbage collection.`,
  requests:
    `\`deno task soak --requests N --write\`: writers, askers and readers on one server until N requests were answered. The memory
of the server has to stay the same (1.05 × from the second to the last third); it's measured sixty times after a garbage
collection. The trash is emptied every second, so that deleted conversations don't pile up.`,
};

/** Returns that section of the document with the blank line before it, or an empty string. */
function findSoakSection(document: string): string {
  const at = document.indexOf(`\n${HEADING}\n`);
  return at < 0 ? "" : document.slice(at);
}

/** Replaces the figures of one way of running. @param lines The output of the soak test. */
export async function writeSoakSection(way: keyof typeof WAYS, lines: readonly string[]): Promise<void> {
  const document = await Deno.readTextFile(DOCUMENT);
  const section = findSoakSection(document);
  const rest = document.slice(0, document.length - section.length);
  const blocks = (Object.keys(WAYS) as (keyof typeof WAYS)[]).flatMap((name) => {
    const figures = name === way ? [new Date().toISOString().slice(0, 10), ...lines] : findFigures(section, name);
    return figures.length === 0 ? [] : [`${WAYS[name]}\n\n${figures.map((line) => `- ${line}`).join("\n")}`];
  });
  await Deno.writeTextFile(DOCUMENT, `${rest}\n${[HEADING, ...blocks].join("\n\n")}\n`);
}

function findFigures(section: string, way: keyof typeof WAYS): string[] {
  const at = section.indexOf(WAYS[way]);
  if (at < 0) return [];
  const [list = ""] = section.slice(at + WAYS[way].length).trim().split("\n\n");
  return list.split("\n").map((line) => line.replace(/^- /, ""));
}
