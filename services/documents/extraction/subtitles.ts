/** Extracts subtitles: SRT and WebVTT. Each cue is one line with its time. */
import type { ExtractionInput, PageSink } from "./extraction.ts";
import { toSections } from "./extraction.ts";
import { decodeInput } from "./plain_text.ts";

const TIME = String.raw`(?:(\d{1,4}):)?(\d{1,2}):(\d{2})(?:[.,]\d{1,3})?`;
const TIMES = new RegExp(String.raw`^\s*${TIME}\s*-->\s*${TIME}`);

/**
 * Extracts a file of subtitles. Lines that belong to no cue stay as they are.
 *
 * @see https://www.w3.org/TR/webvtt1/#file-structure
 */
export async function extractSubtitles(input: ExtractionInput, sink: PageSink): Promise<void> {
  const text = decodeInput(input, sink).replaceAll("\r\n", "\n").replaceAll("\r", "\n");
  const isVtt = input.contentType === "text/vtt";
  sink.begin({ unit: "section", total: 0 });
  for (const section of toSections(listCues(text, isVtt), "\n")) await sink.add(section);
}

function* listCues(text: string, isVtt: boolean): Generator<{ text: string }> {
  let shown: string[] = [];
  let wasRolling = false;
  for (const block of text.split(/\n[ \t]*\n+/).flatMap(splitCues)) {
    const lines = block.split("\n").filter((line) => line.trim() !== "");
    const at = lines.findIndex((line) => TIMES.test(line));
    if (at < 0) {
      // Fonts and positions aren't text.
      if (isVtt && /^(STYLE|REGION)\s*$/.test(lines[0] ?? "")) continue;
      const own = lines.filter((line) => !(isVtt && /^WEBVTT(\s|$)/.test(line)));
      if (own.length > 0) yield { text: own.join("\n") };
      continue;
    }
    // Before the time is the number or the name of the cue.
    const name = lines.slice(0, at).filter((line) => !/^\s*\d+\s*$/.test(line) && !/^WEBVTT(\s|$)/.test(line));
    const source = lines.slice(at + 1);
    let own = source.map(stripTags).filter((line) => line !== "");
    // Captions that were recognized while someone spoke have a time before each word, and they roll: a cue repeats
    // the last line of the one before.
    const isTimed = isVtt && source.some((line) => /<\d+:\d+/.test(line));
    const current = own;
    if (isTimed || wasRolling) own = own.filter((line) => !shown.includes(line));
    wasRolling = isTimed || (wasRolling && own.length === 0);
    shown = current;
    if (own.length > 0 || name.length > 0) yield { text: [formatTime(lines[at]!), ...name, ...own].join(" ") };
  }
}

/** Splits cues without an empty line between them: before the number of the next one. */
function splitCues(block: string): string[] {
  const lines = block.split("\n");
  const starts = lines.flatMap((line, n) =>
    TIMES.test(line) ? [/^\s*\d+\s*$/.test(lines[n - 1] ?? "") ? n - 1 : n] : []
  );
  if (starts.length < 2) return [block];
  const [, ...others] = starts;
  return [0, ...others].map((start, n) => lines.slice(start, others[n]).join("\n"));
}

/** Returns the start of a cue: `"[0:01:02]"`. */
function formatTime(line: string): string {
  const [, hours = "0", minutes = "", seconds = ""] = TIMES.exec(line)!;
  return `[${Number(hours)}:${minutes.padStart(2, "0")}:${seconds}]`;
}

/** Removes tags, and writes the names of speakers before their text. */
function stripTags(line: string): string {
  return line.replace(/<v(?:\.[^\s>]{1,100})?\s+([^>]{1,200})>/g, "$1: ")
    .replace(/<\/?(?:[biu]|c|v|lang|ruby|font)\b[^>]{0,200}>|<\d+:[\d:.]+>|\{\\an?\d[^}]{0,100}\}/gi, "")
    .replace(/<rt>/g, "(").replace(/<\/rt>/g, ")")
    .replace(/&(amp|lt|gt|nbsp|lrm|rlm);/g, (_, name) => ENTITIES[name as keyof typeof ENTITIES])
    .replace(/\s+/g, " ").trim();
}

const ENTITIES = { amp: "&", lt: "<", gt: ">", nbsp: " ", lrm: "", rlm: "" };
