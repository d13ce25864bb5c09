/**
 * Extracts the text of PDF files page by page, with forms and notes, and draws the images of their pages. Doesn't run scripts or fetch
 * anything that a file refers to.
 */
import { getDocument, OPS, PasswordResponses, VerbosityLevel } from "unpdf/pdfjs";
import { getErrorMessage } from "../../errors.ts";
import { ExtractionFault, type ExtractionInput, type PageSink } from "./extraction.ts";
import { drawGlyph, type GlyphDrawing, GlyphPlacer, type Matrix, multiply, toMatrix } from "./pdf_glyphs.ts";
import { encodeJpeg } from "../../attachments/images/image_codecs.ts";
import type { Raster } from "../../attachments/images/raster.ts";

/** Minimum gap between paragraphs, in line heights. */
const PARAGRAPH_GAP = 1.6;
/** Number of pages after which the parser's caches are dropped. */
const CLEAN_UP_PAGES = 50;

/** Folders of `pdfjs-dist`, by the names that PDF.js has for them. */
const ASSET_FOLDERS = {
  cMapUrl: () => import.meta.resolve("pdfjs-dist/cmaps"),
  standardFontDataUrl: () => import.meta.resolve("pdfjs-dist/standard_fonts"),
};

/** Character maps and fonts that PDF files may refer to without containing them, by kind and file name. */
const assets = new Map<string, Uint8Array>();

/** Loads the character maps and fonts, 2.5 MB. In the sandbox, no file can be read later. */
export async function loadPdfAssets(): Promise<void> {
  for (const [kind, resolve] of Object.entries(ASSET_FOLDERS)) {
    const folder = new URL(resolve());
    for (const { name } of await Array.fromAsync(Deno.readDir(folder))) {
      assets.set(`${kind}/${name}`, await Deno.readFile(new URL(`${folder.href}/${name}`)));
    }
  }
}

/** Gives PDF.js its files. */
class AssetFactory {
  fetch({ kind, filename }: { kind: string; filename: string }): Promise<Uint8Array> {
    const asset = assets.get(`${kind}/${filename}`);
    // PDF.js transfers what it gets.
    return asset ? Promise.resolve(asset.slice()) : Promise.reject(new Error(`There is no "${filename}"`));
  }
}

/** Options of the parser: no access to the system or network, and a damaged file is read as far as possible. */
const PDF_OPTIONS = {
  disableFontFace: true,
  useSystemFonts: false,
  useWorkerFetch: false,
  isOffscreenCanvasSupported: false,
  enableXfa: false,
  stopAtErrors: false,
  verbosity: VerbosityLevel.ERRORS,
  BinaryDataFactory: AssetFactory,
  cMapUrl: "cmaps/",
  cMapPacked: true,
  standardFontDataUrl: "standard_fonts/",
} satisfies Parameters<typeof getDocument>[0];

/** The relevant fields of a piece of text. */
interface TextItem {
  str: string;
  hasEOL: boolean;
  height: number;
  /** A matrix; the last two numbers are the position. */
  transform: number[];
}

/** Text of a form or a note, at its place on the page. */
interface PlacedText {
  text: string;
  x: number;
  y: number;
  height: number;
}

/**
 * Extracts a PDF file: text, values of forms, typed notes and comments.
 *
 * @throws {ExtractionFault} `encrypted`, `damaged`, `no_text`, `too_large`
 */
export async function extractPdf({ bytes, limits }: ExtractionInput, sink: PageSink): Promise<void> {
  const task = getDocument({ data: bytes, ...PDF_OPTIONS });
  try {
    const pdf = await task.promise;
    if (pdf.numPages > limits.pages) {
      throw new ExtractionFault(
        "too_large",
        `Can't read the file: it has ${pdf.numPages} pages; the limit is ${limits.pages}`,
      );
    }
    sink.begin({ unit: "page", total: pdf.numPages });
    const attached: unknown = await pdf.getAttachments().catch(() => undefined);
    for (const name of attached instanceof Map ? attached.keys() : []) sink.note("embedded", { example: name });
    let damagedPages = 0;
    const emptyPages: number[] = [];
    for (let n = 1; n <= pdf.numPages; n++) {
      try {
        const page = await pdf.getPage(n);
        const { items } = await page.getTextContent();
        const annotations = await page.getAnnotations({ intent: "display" }).catch(() => []);
        page.cleanup();
        const unmapped = countUnmapped(items as TextItem[]);
        sink.note("unmapped", { count: unmapped, example: `page ${n}` });
        const text = joinItems(placeTexts(items as TextItem[], listTexts(annotations)));
        for (const address of listAddresses(annotations)) {
          if (!text.includes(address)) sink.note("link", { example: address });
        }
        if (text.trim() === "") emptyPages.push(n);
        if (n === 1 && isXfaPlaceholder(text, pdf.numPages)) sink.note("xfa");
        await sink.add(text);
      } catch (error) {
        if (error instanceof ExtractionFault) throw error;
        damagedPages++;
        sink.note("damaged_page", { example: `page ${n}` });
        await sink.add(""); // Later pages must have the right numbers.
      }
      if (n % CLEAN_UP_PAGES === 0) await pdf.cleanup();
    }
    for (const n of emptyPages) sink.note("page_without_text", { example: `page ${n}` });
    if (damagedPages === pdf.numPages) {
      throw new ExtractionFault("damaged", "Can't read the file: none of its pages is readable");
    }
  } catch (error) {
    throw toPdfFault(error);
  } finally {
    await task.destroy();
  }
}

/** Adobe's programs write such a page into forms whose real pages are XFA, in some languages. */
const XFA_PLACEHOLDER =
  /please wait[^]{0,400}adobe reader|adobe reader[^]{0,400}please wait|\bPDF Forms?\b[^]{0,200}XFA/i;

function isXfaPlaceholder(text: string, pages: number): boolean {
  return pages === 1 && text.length < 2_000 && XFA_PLACEHOLDER.test(text);
}

/** Counts the characters without a meaning: of the private use area, replaced ones, and control characters. */
function countUnmapped(items: readonly TextItem[]): number {
  let count = 0;
  for (const { str } of items) {
    if (str) {
      for (const _ of str.matchAll(/[\p{Co}\ufffd]|(?![\t\n\r])\p{Cc}/gu)) count++;
    }
  }
  return count;
}

/** The relevant fields of an annotation. */
interface Annotation {
  subtype?: string;
  url?: string;
  unsafeUrl?: string;
  fieldType?: string;
  fieldValue?: unknown;
  buttonValue?: string;
  exportValue?: string;
  checkBox?: boolean;
  radioButton?: boolean;
  options?: { exportValue: string; displayValue: string }[];
  textContent?: string[];
  contentsObj?: { str?: string };
  titleObj?: { str?: string };
  rect?: number[];
  hidden?: boolean;
  annotationFlags?: number;
  password?: boolean;
}

/** Flags of annotations that aren't shown: hidden (2) and no view (32). ISO 32000-1, table 165. */
const HIDDEN_FLAGS = 2 | 32;
const SHAPES = ["Highlight", "Underline", "StrikeOut", "Squiggly", "Text", "Caret", "Ink", "Square", "Circle", "Line"];

/** Returns the addresses of the links of a page, each once: a link has an annotation for each of its lines. */
function listAddresses(annotations: readonly Annotation[]): Set<string> {
  return new Set(annotations.flatMap(({ subtype, url, unsafeUrl }) => {
    const address = subtype === "Link" ? url ?? unsafeUrl : undefined;
    return address ? [address] : [];
  }));
}

/** Returns the texts of forms, notes and stamps. */
function listTexts(annotations: readonly Annotation[]): PlacedText[] {
  return annotations.flatMap((annotation) => {
    const { rect = [], hidden, annotationFlags = 0, password } = annotation;
    const text = hidden || (annotationFlags & HIDDEN_FLAGS) !== 0 || password ? "" : getAnnotationText(annotation);
    const [left = 0, bottom = 0, , top = 0] = rect;
    return text.trim() === "" ? [] : [{ text: text.trim(), x: left, y: bottom + (top - bottom) / 4, height: 12 }];
  });
}

function getAnnotationText(annotation: Annotation): string {
  const { subtype = "", fieldType, fieldValue, textContent = [], contentsObj, titleObj } = annotation;
  const shown = textContent.join("\n");
  if (subtype === "Widget") {
    if (annotation.checkBox) return isChecked(fieldValue, annotation.exportValue) ? "[x]" : "[ ]";
    if (annotation.radioButton) return isChecked(fieldValue, annotation.buttonValue) ? "(x)" : "( )";
    if (fieldType === "Btn") return shown;
    const values = (Array.isArray(fieldValue) ? fieldValue : [fieldValue]).filter((value) => typeof value === "string");
    const names = values.map((value) =>
      annotation.options?.find(({ exportValue }) => exportValue === value)?.displayValue ?? value
    );
    return names.join(", ") || shown;
  }
  const contents = contentsObj?.str ?? "";
  if (subtype === "FreeText" || subtype === "Stamp") return shown || contents;
  if (!SHAPES.includes(subtype) || contents.trim() === "") return "";
  const author = titleObj?.str?.trim();
  return `[${author ? `${author}: ` : ""}${contents.trim()}]`;
}

function isChecked(value: unknown, own: string | undefined): boolean {
  return typeof value === "string" && value !== "Off" && (own === undefined || value === own);
}

/** Inserts texts into the pieces of a page: at the end of the line that they are on, or else between two lines. */
function placeTexts(items: readonly TextItem[], texts: readonly PlacedText[]): readonly TextItem[] {
  if (texts.length === 0) return items;
  const placed = items.filter(({ str }) => str !== undefined);
  for (const { text, x, y, height } of texts.toSorted((a, b) => b.y - a.y || a.x - b.x)) {
    const item: TextItem = { str: text, hasEOL: true, height, transform: [height, 0, 0, height, x, y] };
    const onLine = placed.findLastIndex(({ str, transform, height: own }) =>
      str !== "" && Math.abs(transform[5]! - y) < Math.max(own, height) * 0.8 && transform[4]! <= x
    );
    if (onLine >= 0) {
      const before = placed[onLine]!;
      placed[onLine] = { ...before, hasEOL: false };
      placed.splice(onLine + 1, 0, {
        ...item,
        str: /\s$/.test(before.str) ? text : ` ${text}`,
        transform: [height, 0, 0, height, x, before.transform[5]!],
        hasEOL: before.hasEOL || onLine === placed.length - 1,
      });
      continue;
    }
    const below = placed.findIndex(({ str, transform }) => str !== "" && transform[5]! < y);
    const at = below < 0 ? placed.length : below;
    const last = placed[at - 1];
    if (last !== undefined && !last.hasEOL) placed[at - 1] = { ...last, hasEOL: true };
    placed.splice(at, 0, item);
  }
  return placed;
}

/** Converts an error of the parser to an ExtractionFault. */
function toPdfFault(error: unknown): unknown {
  if (error instanceof ExtractionFault) return error;
  const { name, code } = error as { name?: string; code?: number };
  if (name === "PasswordException" || code === PasswordResponses.NEED_PASSWORD) {
    return new ExtractionFault("encrypted", "Can't read the file: it's protected by a password");
  }
  return new ExtractionFault("damaged", `Can't read the file: ${getErrorMessage(error)}`);
}

/** Joins the pieces to lines and paragraphs. */
function joinItems(items: readonly TextItem[]): string {
  let text = "";
  let lastY: number | undefined;
  for (const { str, hasEOL, height, transform } of items) {
    if (str === undefined) continue; // Marked content, not text
    const y = transform[5]!;
    if (str !== "") {
      const isParagraph = lastY !== undefined && text.endsWith("\n") && Math.abs(lastY - y) > PARAGRAPH_GAP * height;
      if (isParagraph && height > 0) text += "\n";
      text += str;
      lastY = y;
    }
    if (hasEOL) text += "\n";
  }
  return text.replace(/[ \t]+\n/g, "\n").trim();
}

/** Maximum length of the longer side of the result. Models don't use more. */
const MAX_PAGE_PX = 2048;
/** Maximum size of an image. Larger ones are skipped before decoding. */
const MAX_IMAGE_PIXELS = 40_000_000;
/** Maximum number of images per page. Scanners write one, or a few strips. */
const MAX_IMAGES = 500;
/** Maximum nesting of graphics states. */
const MAX_DEPTH = 1_000;
const JPEG_QUALITY = 85;

/** An image from the parser. `kind` 1: one bit per pixel, 2: RGB, 3: RGBA. A stencil has no kind. */
interface PdfImage {
  width: number;
  height: number;
  kind?: number;
  data?: Uint8Array | Uint8ClampedArray;
}

/** An image, and the transformation of the unit square. */
interface ImageDrawing {
  image: PdfImage;
  matrix: Matrix;
  /** True for a stencil, which is painted where its bits are 0. */
  isStencil: boolean;
}

/**
 * Draws images and text of a page in their positions, with those of forms, notes and stamps, and returns them as one
 * JPEG. Lines and other shapes aren't drawn.
 *
 * @param number From 1.
 * @throws {ExtractionFault} `encrypted`, `damaged`; `no_text` if the page has neither images nor text; `unsupported`
 *   if the page doesn't exist
 */
export async function drawPageImages(bytes: Uint8Array<ArrayBuffer>, number: number): Promise<Uint8Array<ArrayBuffer>> {
  const task = getDocument({
    data: bytes,
    ...PDF_OPTIONS,
    isImageDecoderSupported: false,
    maxImageSize: MAX_IMAGE_PIXELS,
  });
  try {
    const pdf = await task.promise;
    if (number > pdf.numPages) {
      throw new ExtractionFault("unsupported", `Can't draw page ${number}: the file has no such page`);
    }
    const page = await pdf.getPage(number);
    const view = page.getViewport({ scale: 1 });
    const { fnArray, argsArray } = await page.getOperatorList();
    const find = (id: string) =>
      new Promise<unknown>((resolve) => (id.startsWith("g_") ? page.commonObjs : page.objs).get(id, resolve));
    const placer = new GlyphPlacer(page.commonObjs);
    const drawings = await findDrawings(fnArray, argsArray, view.transform as Matrix, find, placer);
    if (placer.lacksFonts && !drawings.some((drawing) => "image" in drawing)) {
      throw new ExtractionFault("no_text", `Can't draw page ${number}: its fonts aren't in the file`);
    }
    if (drawings.length === 0) {
      throw new ExtractionFault("no_text", `Can't draw page ${number}: it has neither images nor text`);
    }
    return await encodeJpeg(draw(drawings, view.width, view.height), JPEG_QUALITY);
  } catch (error) {
    throw toPdfFault(error);
  } finally {
    await task.destroy();
  }
}

/** A drawing of a page. */
type Drawing = ImageDrawing | GlyphDrawing;

/** Follows the operators of a page that place images and text. */
async function findDrawings(
  operators: readonly number[],
  args: readonly unknown[],
  view: Matrix,
  find: (id: string) => Promise<unknown>,
  placer: GlyphPlacer,
): Promise<Drawing[]> {
  const drawings: Drawing[] = [];
  let images = 0;
  const stack: Matrix[] = [];
  let matrix = view;
  const add = async (image: unknown, isStencil: boolean) => {
    const id = (image as { data?: unknown } | null)?.data;
    const found = typeof image === "string" ? await find(image) : typeof id === "string" ? await find(id) : image;
    if (!isImage(found)) return;
    if (++images > MAX_IMAGES) {
      throw new ExtractionFault("too_large", `Can't draw the page: it has more than ${MAX_IMAGES} images`);
    }
    drawings.push({ image: found, matrix, isStencil });
  };
  const save = () => {
    if (stack.length >= MAX_DEPTH) return;
    stack.push(matrix);
    placer.save();
  };
  const restore = () => {
    matrix = stack.pop() ?? matrix;
    placer.restore();
  };
  for (const [index, operator] of operators.entries()) {
    const operands = (args[index] ?? []) as unknown[];
    switch (operator) {
      case OPS.save:
        save();
        break;
      case OPS.restore:
      case OPS.paintFormXObjectEnd:
      case OPS.endAnnotation:
        restore();
        break;
      case OPS.beginAnnotation:
        // The appearance of an annotation is placed on the page itself, not relative to what was drawn before.
        save();
        placer.reset();
        matrix = multiply(multiply(view, toMatrix(operands[2])), toMatrix(operands[3]));
        break;
      case OPS.transform:
        matrix = multiply(matrix, toMatrix(operands));
        break;
      case OPS.paintFormXObjectBegin:
        save();
        matrix = multiply(matrix, toMatrix(operands[0]));
        break;
      case OPS.paintImageXObject:
      case OPS.paintInlineImageXObject:
        await add(operands[0], false);
        break;
      case OPS.paintImageMaskXObject:
        await add(operands[0], true);
        break;
      default:
        for (const glyph of placer.handle(operator, operands, matrix)) drawings.push(glyph);
    }
  }
  return drawings;
}

/** Pixels per point of a page with text, at least. */
const TEXT_SCALE = 2;

/** Draws on white, in the order of the page, with at most the resolution of the finest image. */
function draw(drawings: readonly Drawing[], width: number, height: number): Raster {
  let finest = 0;
  for (const drawing of drawings) {
    const [a, b] = drawing.matrix;
    const resolution = "image" in drawing ? drawing.image.width / Math.max(1, Math.hypot(a, b)) : TEXT_SCALE;
    finest = Math.max(finest, resolution);
  }
  const scale = Math.min(MAX_PAGE_PX / Math.max(width, height), Math.max(finest, 1));
  const side = (points: number) => Math.min(MAX_PAGE_PX, Math.max(1, Math.round(points * scale)));
  const page: Raster = { width: side(width), height: side(height), pixels: new Uint8Array(0) };
  page.pixels = new Uint8Array(page.width * page.height * 4).fill(255);
  for (const drawing of drawings) {
    const matrix = multiply([scale, 0, 0, scale, 0, 0], drawing.matrix);
    if ("image" in drawing) drawImage(page, { ...drawing, matrix });
    else drawGlyph(page, { ...drawing, matrix });
  }
  return page;
}

function drawImage({ width, height, pixels }: Raster, { image, matrix, isStencil }: ImageDrawing): void {
  const [a, b, c, d, e, f] = matrix;
  const determinant = a * d - b * c;
  if (!Number.isFinite(determinant) || Math.abs(determinant) < 1e-6) return;
  const size = (px: number, most: number) => Math.max(1, Math.min(most, MAX_PAGE_PX, Math.round(px)));
  const reduced = reduce(image, size(Math.hypot(a, b), image.width), size(Math.hypot(c, d), image.height), isStencil);
  const xs = [e, e + a, e + c, e + a + c];
  const ys = [f, f + b, f + d, f + b + d];
  const [fromX, toX] = [Math.max(0, Math.floor(Math.min(...xs))), Math.min(width, Math.ceil(Math.max(...xs)))];
  const [fromY, toY] = [Math.max(0, Math.floor(Math.min(...ys))), Math.min(height, Math.ceil(Math.max(...ys)))];
  for (let y = fromY; y < toY; y++) {
    for (let x = fromX; x < toX; x++) {
      const [dx, dy] = [x + 0.5 - e, y + 0.5 - f];
      const u = (d * dx - c * dy) / determinant;
      const v = (a * dy - b * dx) / determinant;
      if (u < 0 || u >= 1 || v <= 0 || v > 1) continue;
      const from = (Math.floor((1 - v) * reduced.height) * reduced.width + Math.floor(u * reduced.width)) * 4;
      const to = (y * width + x) * 4;
      const alpha = reduced.pixels[from + 3]! / 255;
      for (let channel = 0; channel < 3; channel++) {
        pixels[to + channel] = Math.round(
          reduced.pixels[from + channel]! * alpha + pixels[to + channel]! * (1 - alpha),
        );
      }
    }
  }
}

/** Scales an image down by averaging pixels, without a full copy in another format. */
function reduce(
  { width, height, kind, data }: PdfImage,
  toWidth: number,
  toHeight: number,
  isStencil: boolean,
): Raster {
  const pixels = new Uint8Array(toWidth * toHeight * 4);
  const rowBytes = (width + 7) >> 3;
  const channels = kind === 2 ? 3 : 4;
  const bits = data!;
  for (let y = 0; y < toHeight; y++) {
    const [top, bottom] = [Math.floor(y * height / toHeight), Math.max(1, Math.floor((y + 1) * height / toHeight))];
    for (let x = 0; x < toWidth; x++) {
      const [left, right] = [Math.floor(x * width / toWidth), Math.max(1, Math.floor((x + 1) * width / toWidth))];
      let [red, green, blue, alpha] = [0, 0, 0, 0];
      for (let row = top; row < bottom; row++) {
        for (let column = left; column < right; column++) {
          if (isStencil || kind === 1) {
            const bit = bits[row * rowBytes + (column >> 3)]! >> (7 - (column & 7)) & 1;
            red += bit * 255;
            alpha += isStencil ? (1 - bit) * 255 : 255;
            continue;
          }
          const at = (row * width + column) * channels;
          red += bits[at]!;
          green += bits[at + 1]!;
          blue += bits[at + 2]!;
          alpha += channels === 4 ? bits[at + 3]! : 255;
        }
      }
      const count = (bottom - top) * (right - left);
      const to = (y * toWidth + x) * 4;
      // A stencil is painted in black: scans use it for text.
      const isGray = kind === 1 && !isStencil;
      pixels[to] = isStencil ? 0 : red / count;
      pixels[to + 1] = isStencil ? 0 : isGray ? red / count : green / count;
      pixels[to + 2] = isStencil ? 0 : isGray ? red / count : blue / count;
      pixels[to + 3] = alpha / count;
    }
  }
  return { width: toWidth, height: toHeight, pixels };
}

/** Reports whether a value is a valid image. Files can claim any size, so the number of bytes is checked. */
function isImage(value: unknown): value is PdfImage {
  if (typeof value !== "object" || value === null) return false;
  const { width, height, kind, data } = value as PdfImage;
  if (!(width > 0 && height > 0 && width * height <= MAX_IMAGE_PIXELS) || !ArrayBuffer.isView(data)) return false;
  const needed = kind === 2 ? width * height * 3 : kind === 3 ? width * height * 4 : ((width + 7) >> 3) * height;
  return data.length >= needed;
}
