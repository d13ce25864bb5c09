/**
 * The text of a PDF: the time of the first one after the start, of the next one, and of a large one, with the server's
 * memory during that.
 */
import { writePdf } from "../../helpers/files/pdf_files.ts";
import { eachRound, type Figure, freshFolder, mebibytes, milliseconds, type Row } from "../bench.ts";
import { Parlor } from "../parlor.ts";
import { forgetPeak, peakBytes, residentBytes } from "../process_facts.ts";
import { median } from "../stats.ts";

const PAGES = 1_000;
/** About as many as on a printed page. */
const WORDS_PER_PAGE = 400;
const WITHIN_MS = 30_000;
const GROWTH_BYTES = 256 * 1024 * 1024;
const POLL_MS = 20;
const SHORT_POLL_MS = 2;

interface Document {
  id: string;
  state: string;
  pages: number;
  error?: { message: string };
}

/** A document. */
export const documentRow: Row = {
  name: "document",
  about: "the text of a PDF: the first after the start, the next, and one of 1,000 pages with its memory",
  async run(bench) {
    bench.progress(`document: writing a PDF of ${PAGES} pages`);
    const pdf = writePdf(Array.from({ length: PAGES }, (_, n) => pageText(n + 1)));
    const [one, other] = ["", " again"].map((end) => writePdf([pageText(1) + end]));
    const shortRounds = await eachRound(bench, "document, one page", async () => {
      const parlor = await Parlor.open({ programs: bench.programs, dataDir: await freshFolder(bench) });
      try {
        await parlor.control.json("GET", "/api/documents");
        const first = await readDocument(parlor, one!, 1);
        return { first, next: await readDocument(parlor, other!, 1) };
      } finally {
        await parlor.stop();
      }
    });
    const rounds = await eachRound(bench, "document", async () => {
      const parlor = await Parlor.open({ programs: bench.programs, dataDir: await freshFolder(bench) });
      try {
        // The document services open with the first request.
        await parlor.control.json("GET", "/api/documents");
        await forgetPeak(parlor.pid);
        const before = await residentBytes(parlor.pid);
        const ms = await readDocument(parlor, pdf, PAGES);
        return { ms, growth: await peakBytes(parlor.pid) - before };
      } finally {
        await parlor.stop();
      }
    });
    const what = `text of a PDF of ${PAGES.toLocaleString("en")} pages (${(pdf.length / 1e6).toFixed(1)} MB)`;
    const ms = median(rounds.map((round) => round.ms));
    const growth = median(rounds.map((round) => round.growth));
    const first = median(shortRounds.map((round) => round.first));
    const next = median(shortRounds.map((round) => round.next));
    return [
      ownFigure("text of a PDF of one page, first document after the start", milliseconds(first)),
      ownFigure("text of a PDF of one page, next document", milliseconds(next)),
      ownFigure(`${what}, total time`, milliseconds(ms), `≤ ${WITHIN_MS / 1000} s`, ms <= WITHIN_MS),
      ownFigure(
        `${what}, growth of peak memory (RSS)`,
        mebibytes(growth),
        `≤ ${GROWTH_BYTES / 1024 / 1024} MiB`,
        growth <= GROWTH_BYTES,
      ),
    ];
  },
};

/** Uploads the file and waits until its text is stored; returns the ms of both together. */
async function readDocument(parlor: Parlor, pdf: Uint8Array<ArrayBuffer>, pageCount: number): Promise<number> {
  const form = new FormData();
  form.append("file", new File([pdf], "large.pdf"));
  const beganAt = performance.now();
  const answer = await fetch(`http://127.0.0.1:${parlor.port}/api/documents`, { method: "POST", body: form });
  let document: Document = await answer.json();
  while (document.state === "extracting") {
    await new Promise((resolve) => setTimeout(resolve, pageCount === 1 ? SHORT_POLL_MS : POLL_MS));
    document = await parlor.control.json("GET", `/api/documents/${document.id}`);
  }
  const ms = performance.now() - beganAt;
  if (document.state !== "ready" || document.pages !== pageCount) {
    throw new Error(`The document is ${document.state} with ${document.pages} pages: ${document.error?.message}`);
  }
  const path = `/api/documents/${document.id}/text?pages=${pageCount}`;
  const { pages } = await parlor.control.json<{ pages: { text: string }[] }>("GET", path);
  if (!pages[0]?.text.startsWith(`Page ${pageCount} `)) {
    throw new Error("The last page has another text than was written");
  }
  return ms;
}

function pageText(n: number): string {
  const words = Array.from({ length: WORDS_PER_PAGE }, (_, at) => `word${(n * WORDS_PER_PAGE + at) % 9973}`);
  return `Page ${n} ${words.join(" ")}`;
}

function ownFigure(what: string, own: string, target = "–", isReached?: boolean): Figure {
  return { what, own, limit: "–", counterpart: "–", target, isReached };
}
