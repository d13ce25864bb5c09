/** Plain PDF files written by hand. */

const encoder = new TextEncoder();

/** Content of `objects` of a PDF by number. */
export type PdfObjects = Record<number, string>;

/** Writes a PDF of text pages, one paragraph each. @param change Changes its objects before they are written. */
export function writePdf(
  lines: readonly string[],
  { change = (objects) => objects, trailer = "" }: { change?(objects: PdfObjects): PdfObjects; trailer?: string } = {},
): Uint8Array<ArrayBuffer> {
  const objects: PdfObjects = {
    1: "<< /Type /Catalog /Pages 2 0 R >>",
    2: `<< /Type /Pages /Count ${lines.length} /Kids [${lines.map((_, n) => `${4 + 2 * n} 0 R`).join(" ")}] >>`,
    3: "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
  };
  lines.forEach((line, n) => {
    const rows = line.match(/.{1,50}(?:\s|$)|.{50}/g) ?? [""];
    const height = 14 * rows.length + 40;
    const shown = rows.map((row) => `(${row.trimEnd().replace(/[\\()]/g, "\\$&")}) Tj T*`).join(" ");
    const content = `BT /F1 12 Tf 14 TL 20 ${height - 20} Td ${shown} ET`;
    objects[4 + 2 * n] = `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 ${height}] /Contents ${5 + 2 * n} 0 R ` +
      "/Resources << /Font << /F1 3 0 R >> >> >>";
    objects[5 + 2 * n] = `<< /Length ${content.length} >>\nstream\n${content}\nendstream`;
  });
  const parts = ["%PDF-1.7\n"];
  const offsets: number[] = [];
  let length = parts[0]!.length;
  const written = Object.entries(change(objects));
  for (const [number, content] of written) {
    offsets[Number(number)] = length;
    parts.push(`${number} 0 obj\n${content}\nendobj\n`);
    length += parts.at(-1)!.length;
  }
  const size = Math.max(...written.map(([number]) => Number(number))) + 1;
  const rows = Array.from(
    { length: size },
    (_, n) => offsets[n] === undefined ? "0000000000 65535 f \n" : `${String(offsets[n]).padStart(10, "0")} 00000 n \n`,
  );
  parts.push(`xref\n0 ${size}\n${rows.join("")}trailer\n<< /Size ${size} /Root 1 0 R ${trailer}>>\n`);
  parts.push(`startxref\n${length}\n%%EOF\n`);
  return encoder.encode(parts.join(""));
}

/** Writes a PDF of one page whose text is in a font with a predefined character map, without any embedded data. */
export function writeMappedPdf(map: string, ordering: string, codes: Uint8Array): Uint8Array<ArrayBuffer> {
  const hex = Array.from(codes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return writePdf(["x"], {
    change: (objects) => {
      const content = `BT /F1 24 Tf 40 20 Td <${hex}> Tj ET`;
      return {
        ...objects,
        3: `<< /Type /Font /Subtype /Type0 /BaseFont /X /Encoding /${map} /DescendantFonts [6 0 R] >>`,
        5: `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
        6: `<< /Type /Font /Subtype /CIDFontType0 /BaseFont /X /DW 1000 /FontDescriptor 7 0 R /CIDSystemInfo ` +
          `<< /Registry (Adobe) /Ordering (${ordering}) /Supplement 2 >> >>`,
        7: "<< /Type /FontDescriptor /FontName /X /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 800 " +
          "/Descent -200 /CapHeight 700 /StemV 80 >>",
      };
    },
  });
}

/** Writes a PDF with the lines "Name:" and "Country:" and annotations. */
export function writeForm(annotations: readonly string[]): Uint8Array<ArrayBuffer> {
  const numbers = annotations.map((_, n) => `${20 + n} 0 R`).join(" ");
  return writePdf(["x"], {
    change: (objects) => {
      const content = "BT /F1 12 Tf 20 150 Td (Name:) Tj 0 -30 Td (Country:) Tj ET";
      return {
        ...objects,
        1: `<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [${numbers}] /DA (/F1 12 Tf) >> >>`,
        4: objects[4]!.replace(/\[0 0 400 \d+\]/, "[0 0 400 200]").replace(/>>$/, `/Annots [${numbers}] >>`),
        5: `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
        ...Object.fromEntries(annotations.map((one, n) => [20 + n, `<< /Type /Annot /F 4 ${one} >>`])),
      };
    },
  });
}
