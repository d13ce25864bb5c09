import { zipSync } from "fflate";
import { afterAll, expect, test } from "vitest";
import { openImagePool } from "../../../../services/attachments/images/image_pool.ts";
import { CardCodec } from "../../../../services/characters/card/card_codec.ts";
import {
  Sandbox,
  SandboxFault,
  type SandboxJob,
  type SandboxKind,
} from "../../../../services/platform/sandbox/sandbox.ts";
import { probeAudio } from "../../../../services/speech/audio_format.ts";
import { plainPng } from "../../../helpers/files/cards.ts";
import { writePdf } from "../../../helpers/files/document_files.ts";
import { openExtraction, textEntry, zipOf } from "../../../helpers/files/extract_document.ts";
import { listDescendants } from "../../../helpers/processes/proc.ts";

/**
 * Ends every job at its first measurement, as if it had used up its processor time, and notes why jobs ended. The child
 * stands still, so that no job ends before it's measured.
 */
class TightSandbox extends Sandbox {
  readonly faults: string[] = [];

  constructor() {
    super({ watchMs: 5 });
  }

  override async run(kind: SandboxKind, job: SandboxJob = {}) {
    await this.prepare(kind);
    await holdChild();
    try {
      return await super.run(kind, { ...job, maxCpuMs: -1 });
    } catch (error) {
      if (error instanceof SandboxFault) this.faults.push(error.reason);
      throw error;
    }
  }
}

/** Stops the one child as soon as its program runs. */
async function holdChild(): Promise<void> {
  const isProgram = (pid: number) => {
    try {
      return Deno.readTextFileSync(`/proc/${pid}/cmdline`).startsWith(`${Deno.execPath()}\0`);
    } catch {
      return false; // It has just ended.
    }
  };
  let child: number | undefined;
  await expect.poll(() => child = listDescendants(Deno.pid, before).find(isProgram)).toBeDefined();
  Deno.kill(child!, "SIGSTOP");
}

const before = listDescendants(Deno.pid);
const sandbox = new TightSandbox();
afterAll(() => sandbox.close());
const extract = openExtraction(sandbox);
const folder = await Deno.makeTempDir({ prefix: "parlor-kinds-" });
afterAll(() => Deno.remove(folder, { recursive: true }));

const encode = (text: string) => new TextEncoder().encode(text);
const CHAPTER = `<p>${"A word. ".repeat(20)}</p>\n`.repeat(20_000);
const page = (text: string) => `<html><body>${text}</body></html>`;

const KINDS: [string, () => Promise<unknown>][] = [
  ["a card", () => {
    const many = Object.fromEntries(Array.from({ length: 200_000 }, (_, n) => [`k${n}`, n]));
    return new CardCodec(sandbox).parse(
      "fox.json",
      encode(JSON.stringify({ data: { name: "Fox", extensions: many } })),
    );
  }],
  ["a CHARX", async () => {
    const card = encode('{"spec":"chara_card_v3","data":{"name":"Fox"}}');
    const path = `${folder}/fox.charx`;
    await Deno.writeFile(path, zipSync({ "card.json": card, "zeros.bin": new Uint8Array(60_000_000) }, { level: 1 }));
    return await new CardCodec(sandbox).readFile(path);
  }],
  ["an HTML page", () => extract("a.html", page(CHAPTER))],
  ["an EPUB", async () =>
    await extract(
      "a.epub",
      await zipOf([
        textEntry("mimetype", "application/epub+zip"),
        textEntry(
          "META-INF/container.xml",
          '<container><rootfiles><rootfile full-path="a.opf"/></rootfiles></container>',
        ),
        textEntry(
          "a.opf",
          '<package><manifest><item id="i" href="a.xhtml"/></manifest><spine><itemref idref="i"/></spine></package>',
        ),
        textEntry("a.xhtml", page(CHAPTER)),
      ]),
    )],
  ["a DOCX", async () =>
    await extract(
      "a.docx",
      await zipOf([
        textEntry(
          "[Content_Types].xml",
          '<Types><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
        ),
        textEntry(
          "word/document.xml",
          `<w:document><w:body>${"<w:p><w:r><w:t>A word.</w:t></w:r></w:p>".repeat(50_000)}</w:body></w:document>`,
        ),
      ]),
    )],
  ["a PDF", () => extract("a.pdf", writePdf(Array.from({ length: 3_000 }, (_, n) => `line ${n}`)))],
  ["an image", () => openImagePool(sandbox).toPng(plainPng(2_000, 2_000))],
  ["a sound", () => {
    // MP4 with many empty atoms, each of which is read: more than a second.
    const sound = encode(`\0\0\0\x10ftypM4A \0\0\0\0${"\0\0\0\x08free".repeat(200_000)}`);
    return probeAudio(sandbox, sound, "m4a");
  }],
];

test.each(KINDS)(
  "%s that takes too long is refused, and no process of it is left",
  { tags: ["J01"] },
  async (_, read) => {
    sandbox.faults.length = 0;
    await expect(read()).rejects.toThrow();
    expect(sandbox.faults).toEqual(["time"]);
    expect(listDescendants(Deno.pid, before)).toEqual([]);
  },
);
