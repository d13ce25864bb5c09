/**
 * Text of PDF files, page by page, and images of their pages. Scripts aren't run, and nothing that a file refers to is
 * fetched.
 */
import { getDocument, OPS, PasswordResponses, VerbosityLevel } from "unpdf/pdfjs";
import { messageOf } from "../../errors.ts";
import { ExtractionFault, type ExtractionInput, type PageSink } from "./extraction.ts";
import type { Raster } from "../../attachments/images/raster.ts";

/** A gap of more than this many line heights starts a paragraph. */
const PARAGRAPH_GAP = 1.6;
/** Pages after which the parser's caches are dropped. */
const CLEAN_UP_PAGES = 50;

/** Options of the parser: nothing of the system and the network is used, and a damaged file is read as far as it goes. */
const PDF_OPTIONS = {
  disableFontFace: true,
  useSystemFonts: false,
  useWorkerFetch: false,
  isOffscreenCanvasSupported: false,
  enableXfa: false,
  stopAtErrors: false,
  verbosity: VerbosityLevel.ERRORS,
};

/** One piece of text on a page, as far as it matters. */
interface TextItem {
  str: string;
  hasEOL: boolean;
  height: number;
  /** A matrix; the last two numbers are the position. */
  transform: number[];
}

/** Reads a PDF file. @throws {ExtractionFault} `encrypted`, `damaged`, `no_text`, `too_large` */
export async function extractPdf({ bytes, limits }: ExtractionInput, sink: PageSink): Promise<void> {
  const task = getDocument({ data: bytes, ...PDF_OPTIONS });
  try {
    const pdf = await task.promise;
    if (pdf.numPages > limits.pages) {
      throw new ExtractionFault("too_large", `The file has ${pdf.numPages} pages, more than ${limits.pages}`);
    }
    sink.begin({ unit: "page", total: pdf.numPages });
    let damagedPages = 0;
    for (let n = 1; n <= pdf.numPages; n++) {
      try {
        const page = await pdf.getPage(n);
        const { items } = await page.getTextContent();
        page.cleanup();
        await sink.add(joinItems(items as TextItem[]));
      } catch (error) {
        if (error instanceof ExtractionFault) throw error;
        damagedPages++;
        await sink.add(""); // pages keep their numbers
      }
      if (n % CLEAN_UP_PAGES === 0) await pdf.cleanup();
    }
    if (damagedPages === pdf.numPages) throw new ExtractionFault("damaged", "No page of the file can be read");
  } catch (error) {
    throw toPdfFault(error);
  } finally {
    await task.destroy();
  }
}

/** Converts an error of the parser to an ExtractionFault. */
function toPdfFault(error: unknown): unknown {
  if (error instanceof ExtractionFault) return error;
  const { name, code } = error as { name?: string; code?: number };
  if (name === "PasswordException" || code === PasswordResponses.NEED_PASSWORD) {
    return new ExtractionFault("encrypted", "The file is protected by a password");
  }
  return new ExtractionFault("damaged", `The file can't be read: ${messageOf(error)}`);
}

/** Joins the pieces to lines and paragraphs. */
function joinItems(items: readonly TextItem[]): string {
  let text = "";
  let lastY: number | undefined;
  for (const { str, hasEOL, height, transform } of items) {
    if (str === undefined) continue; // a mark, not text
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

/** Longer side of the result: models see no more. */
const MAX_PAGE_PX = 2048;
/** Larger images of a page are left out before they are decoded. */
const MAX_IMAGE_PIXELS = 40_000_000;
/** Most images of one page. Scanners write one, or a few strips. */
const MAX_IMAGES = 500;
/** Deepest nesting of graphics states. */
const MAX_DEPTH = 1_000;
const JPEG_QUALITY = 85;
const IDENTITY: Matrix = [1, 0, 0, 1, 0, 0];

/** As in PDF: x' = a·x + c·y + e, y' = b·x + d·y + f. */
type Matrix = [number, number, number, number, number, number];

/** An image as the parser gives it. `kind` 1: one bit per pixel, 2: RGB, 3: RGBA. A stencil has no kind. */
interface PdfImage {
  width: number;
  height: number;
  kind?: number;
  data?: Uint8Array | Uint8ClampedArray;
}

/** An image and where the unit square goes. */
interface Drawing {
  image: PdfImage;
  matrix: Matrix;
  /** A stencil is painted where its bits are 0. */
  isStencil: boolean;
}

/**
 * Draws the images of a page, such as a scan, at their places, and returns them as one JPEG. Text and lines of the page
 * aren't drawn.
 *
 * @param number From 1.
 * @throws {ExtractionFault} `encrypted`, `damaged`; `no_text` if the page has no images; `unsupported` without such a page
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
    if (number > pdf.numPages) throw new ExtractionFault("unsupported", `The file has no page ${number}`);
    const page = await pdf.getPage(number);
    const view = page.getViewport({ scale: 1 });
    const { fnArray, argsArray } = await page.getOperatorList();
    const find = (id: string) =>
      new Promise<unknown>((resolve) => (id.startsWith("g_") ? page.commonObjs : page.objs).get(id, resolve));
    const drawings = await findDrawings(fnArray, argsArray, view.transform as Matrix, find);
    if (drawings.length === 0) throw new ExtractionFault("no_text", `Page ${number} has no images`);
    const { encodeJpeg } = await import("../../attachments/images/image_codecs.ts");
    return await encodeJpeg(draw(drawings, view.width, view.height), JPEG_QUALITY);
  } catch (error) {
    throw toPdfFault(error);
  } finally {
    await task.destroy();
  }
}

/** Follows the operators of a page as far as they place images. */
async function findDrawings(
  operators: readonly number[],
  args: readonly unknown[],
  view: Matrix,
  find: (id: string) => Promise<unknown>,
): Promise<Drawing[]> {
  const drawings: Drawing[] = [];
  const stack: Matrix[] = [];
  let matrix = view;
  const add = async (image: unknown, isStencil: boolean) => {
    const id = (image as { data?: unknown } | null)?.data;
    const found = typeof image === "string" ? await find(image) : typeof id === "string" ? await find(id) : image;
    if (!isImage(found)) return;
    if (drawings.length >= MAX_IMAGES) throw new ExtractionFault("too_large", `The page has over ${MAX_IMAGES} images`);
    drawings.push({ image: found, matrix, isStencil });
  };
  for (const [index, operator] of operators.entries()) {
    const given = (args[index] ?? []) as unknown[];
    switch (operator) {
      case OPS.save:
        if (stack.length < MAX_DEPTH) stack.push(matrix);
        break;
      case OPS.restore:
        matrix = stack.pop() ?? matrix;
        break;
      case OPS.transform:
        matrix = multiply(matrix, toMatrix(given));
        break;
      case OPS.paintFormXObjectBegin:
        if (stack.length < MAX_DEPTH) stack.push(matrix);
        matrix = multiply(matrix, toMatrix(given[0]));
        break;
      case OPS.paintFormXObjectEnd:
        matrix = stack.pop() ?? matrix;
        break;
      case OPS.paintImageXObject:
      case OPS.paintInlineImageXObject:
        await add(given[0], false);
        break;
      case OPS.paintImageMaskXObject:
        await add(given[0], true);
    }
  }
  return drawings;
}

/** Draws on white, in the order of the page, at most as fine as its finest image. */
function draw(drawings: readonly Drawing[], width: number, height: number): Raster {
  const finest = Math.max(...drawings.map(({ image, matrix: [a, b] }) => image.width / Math.max(1, Math.hypot(a, b))));
  const scale = Math.min(MAX_PAGE_PX / Math.max(width, height), Math.max(finest, 1));
  const side = (points: number) => Math.min(MAX_PAGE_PX, Math.max(1, Math.round(points * scale)));
  const page: Raster = { width: side(width), height: side(height), pixels: new Uint8Array(0) };
  page.pixels = new Uint8Array(page.width * page.height * 4).fill(255);
  for (const drawing of drawings) {
    drawImage(page, { ...drawing, matrix: multiply([scale, 0, 0, scale, 0, 0], drawing.matrix) });
  }
  return page;
}

function drawImage({ width, height, pixels }: Raster, { image, matrix, isStencil }: Drawing): void {
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

/** Averages pixels to a smaller image, without a copy of the whole in another format. */
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
      // A stencil is painted in black: scans use it for the text.
      const isGray = kind === 1 && !isStencil;
      pixels[to] = isStencil ? 0 : red / count;
      pixels[to + 1] = isStencil ? 0 : isGray ? red / count : green / count;
      pixels[to + 2] = isStencil ? 0 : isGray ? red / count : blue / count;
      pixels[to + 3] = alpha / count;
    }
  }
  return { width: toWidth, height: toHeight, pixels };
}

/** Files can claim any size, so the bytes are checked. */
function isImage(value: unknown): value is PdfImage {
  if (typeof value !== "object" || value === null) return false;
  const { width, height, kind, data } = value as PdfImage;
  if (!(width > 0 && height > 0 && width * height <= MAX_IMAGE_PIXELS) || !ArrayBuffer.isView(data)) return false;
  const needed = kind === 2 ? width * height * 3 : kind === 3 ? width * height * 4 : ((width + 7) >> 3) * height;
  return data.length >= needed;
}

/** Returns the matrix that first applies `inner`, then `outer`. */
function multiply(outer: Matrix, inner: Matrix): Matrix {
  const [a, b, c, d, e, f] = outer;
  const [g, h, i, j, k, l] = inner;
  return [a * g + c * h, b * g + d * h, a * i + c * j, b * i + d * j, a * k + c * l + e, b * k + d * l + f];
}

function toMatrix(value: unknown): Matrix {
  const list = Array.isArray(value) || ArrayBuffer.isView(value) ? Array.from(value as ArrayLike<unknown>) : [];
  return list.length === 6 && list.every((one) => typeof one === "number") ? list as Matrix : IDENTITY;
}
