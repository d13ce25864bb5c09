/**
 * Extracts the text of PDF files page by page, and draws the images of their pages. Doesn't run scripts or fetch
 * anything that a file refers to.
 */
import { getDocument, OPS, PasswordResponses, VerbosityLevel } from "unpdf/pdfjs";
import { getErrorMessage } from "../../errors.ts";
import { ExtractionFault, type ExtractionInput, type PageSink } from "./extraction.ts";
import { encodeJpeg } from "../../attachments/images/image_codecs.ts";
import type { Raster } from "../../attachments/images/raster.ts";

/** Minimum gap between paragraphs, in line heights. */
const PARAGRAPH_GAP = 1.6;
/** Number of pages after which the parser's caches are dropped. */
const CLEAN_UP_PAGES = 50;

/** Options of the parser: no access to the system or network, and a damaged file is read as far as possible. */
const PDF_OPTIONS = {
  disableFontFace: true,
  useSystemFonts: false,
  useWorkerFetch: false,
  isOffscreenCanvasSupported: false,
  enableXfa: false,
  stopAtErrors: false,
  verbosity: VerbosityLevel.ERRORS,
} satisfies Parameters<typeof getDocument>[0];

/** The relevant fields of a piece of text. */
interface TextItem {
  str: string;
  hasEOL: boolean;
  height: number;
  /** A matrix; the last two numbers are the position. */
  transform: number[];
}

/** Extracts a PDF file. @throws {ExtractionFault} `encrypted`, `damaged`, `no_text`, `too_large` */
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
        await sink.add(""); // Later pages must have the right numbers.
      }
      if (n % CLEAN_UP_PAGES === 0) await pdf.cleanup();
    }
    if (damagedPages === pdf.numPages) {
      throw new ExtractionFault("damaged", "Can't read the file: none of its pages is readable");
    }
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
const IDENTITY: Matrix = [1, 0, 0, 1, 0, 0];

/** As in PDF: x' = a·x + c·y + e, y' = b·x + d·y + f. */
type Matrix = [number, number, number, number, number, number];

/** An image from the parser. `kind` 1: one bit per pixel, 2: RGB, 3: RGBA. A stencil has no kind. */
interface PdfImage {
  width: number;
  height: number;
  kind?: number;
  data?: Uint8Array | Uint8ClampedArray;
}

/** An image, and the transformation of the unit square. */
interface Drawing {
  image: PdfImage;
  matrix: Matrix;
  /** True for a stencil, which is painted where its bits are 0. */
  isStencil: boolean;
}

/**
 * Draws the images of a page, such as a scan, in their positions, and returns them as one JPEG. Text and lines aren't
 * drawn.
 *
 * @param number From 1.
 * @throws {ExtractionFault} `encrypted`, `damaged`; `no_text` if the page has no images; `unsupported` if the page
 *   doesn't exist
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
    const drawings = await findDrawings(fnArray, argsArray, view.transform as Matrix, find);
    if (drawings.length === 0) throw new ExtractionFault("no_text", `Can't draw page ${number}: it has no images`);
    return await encodeJpeg(draw(drawings, view.width, view.height), JPEG_QUALITY);
  } catch (error) {
    throw toPdfFault(error);
  } finally {
    await task.destroy();
  }
}

/** Follows the operators of a page that place images. */
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
    if (drawings.length >= MAX_IMAGES) {
      throw new ExtractionFault("too_large", `Can't draw the page: it has more than ${MAX_IMAGES} images`);
    }
    drawings.push({ image: found, matrix, isStencil });
  };
  for (const [index, operator] of operators.entries()) {
    const operands = (args[index] ?? []) as unknown[];
    switch (operator) {
      case OPS.save:
        if (stack.length < MAX_DEPTH) stack.push(matrix);
        break;
      case OPS.restore:
        matrix = stack.pop() ?? matrix;
        break;
      case OPS.transform:
        matrix = multiply(matrix, toMatrix(operands));
        break;
      case OPS.paintFormXObjectBegin:
        if (stack.length < MAX_DEPTH) stack.push(matrix);
        matrix = multiply(matrix, toMatrix(operands[0]));
        break;
      case OPS.paintFormXObjectEnd:
        matrix = stack.pop() ?? matrix;
        break;
      case OPS.paintImageXObject:
      case OPS.paintInlineImageXObject:
        await add(operands[0], false);
        break;
      case OPS.paintImageMaskXObject:
        await add(operands[0], true);
    }
  }
  return drawings;
}

/** Draws images on white, in the order of the page, with at most the resolution of the finest image. */
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
