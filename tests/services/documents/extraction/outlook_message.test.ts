import { Buffer } from "node:buffer";
import { expect, test } from "vitest";
import { encodeText } from "../../../helpers/files/encode_text.ts";
import { writeOle2 } from "../../../helpers/files/ole2_files.ts";
import { codeOf, openExtraction } from "../../../helpers/files/extract_document.ts";

const extract = openExtraction();

/** A text in UTF-16, as properties of the type 001F have it. */
const wide = (text: string) => new Uint8Array(Buffer.from(text, "utf16le"));
/** Properties of fixed size: the header, and no entries. */
const HEADER = new Uint8Array(32);

test("reads header and text of a message, and names its attachments", async () => {
  const { pages, ledger } = await extract(
    "a.msg",
    writeOle2({
      "__properties_version1.0": HEADER,
      "__substg1.0_001A001F": wide("IPM.Note"),
      "__substg1.0_0037001F": wide("Grüße aus 東京"),
      "__substg1.0_0C1A001F": wide("Mia"),
      "__substg1.0_5D01001F": wide("mia@example.org"),
      "__substg1.0_1000001F": wide("First line\r\n\r\nSecond line\r\n"),
      "__recip_version1.0_#00000000": {
        "__properties_version1.0": new Uint8Array([
          ...new Uint8Array(8),
          ...[0x03, 0x00, 0x15, 0x0c, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], // Its type: to
        ]),
        "__substg1.0_3001001F": wide("Bo"),
        "__substg1.0_39FE001F": wide("bo@example.org"),
      },
      "__attach_version1.0_#00000000": {
        "__properties_version1.0": new Uint8Array(8),
        "__substg1.0_3707001F": wide("plan.pdf"),
        "__substg1.0_37010102": new Uint8Array([1, 2, 3]),
      },
    }),
  );
  expect(pages).toEqual([
    "Subject: Grüße aus 東京\nFrom: Mia <mia@example.org>\nTo: Bo <bo@example.org>\n\nFirst line\n\nSecond line",
  ]);
  expect(ledger).toMatchObject([{ kind: "embedded", count: 1, examples: ["plan.pdf"] }]);
});

test("reads a message in an old encoding, and one that has only HTML or RTF", async () => {
  const old = await extract(
    "a.msg",
    writeOle2({
      "__properties_version1.0": HEADER,
      "__substg1.0_0037001E": encodeText("図書館の開館時間", "shift_jis"),
      "__substg1.0_1000001E": encodeText("図書館は九時に開きます。", "shift_jis"),
    }),
  );
  expect(old.pages).toEqual(["Subject: 図書館の開館時間\n\n図書館は九時に開きます。"]);
  expect(old.ledger).toMatchObject([{ kind: "encoding", examples: ["shift_jis"] }]);
  const html = await extract(
    "a.msg",
    writeOle2({
      "__properties_version1.0": HEADER,
      "__substg1.0_0037001F": wide("Page"),
      "__substg1.0_10130102": new TextEncoder().encode("<p>One</p><table><tr><td>a<td>b</table><img src=x>"),
    }),
  );
  expect(html.pages).toEqual(["Subject: Page\n\nOne\n\na | b"]);
  expect(html.ledger).toMatchObject([{ kind: "image", count: 1 }]);
  // Uncompressed RTF has the mark "MELA" ([MS-OXRTFCP], section 2.1.3.1).
  const rtf = new TextEncoder().encode(String.raw`{\rtf1\ansi Only \b RTF\par}`);
  const packed = new Uint8Array(16 + rtf.length);
  const view = new DataView(packed.buffer);
  view.setUint32(0, rtf.length + 12, true);
  view.setUint32(4, rtf.length, true);
  view.setUint32(8, 0x414c454d, true);
  packed.set(rtf, 16);
  const formatted = await extract(
    "a.msg",
    writeOle2({ "__properties_version1.0": HEADER, "__substg1.0_0037001F": wide("R"), "__substg1.0_10090102": packed }),
  );
  expect(formatted.pages).toEqual(["Subject: R\n\nOnly RTF"]);
});

test("says that a message is encrypted or damaged", async () => {
  const encrypted = writeOle2({
    "__properties_version1.0": HEADER,
    "__substg1.0_001A001F": wide("IPM.Note.SMIME"),
    "__substg1.0_0037001F": wide("Secret"),
  });
  expect(await codeOf(extract("a.msg", encrypted))).toBe("encrypted");
  expect(await codeOf(extract("a.msg", encrypted.slice(0, 700)))).toMatch(/^(damaged|no_text)$/);
});
