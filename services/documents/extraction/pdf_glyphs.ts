/** Draws the text of PDF pages from the outlines of its fonts: without a browser there's no other way. */
import { OPS } from "unpdf/pdfjs";
import type { Raster } from "../../attachments/images/raster.ts";

/** As in PDF: x' = a·x + c·y + e, y' = b·x + d·y + f. */
export type Matrix = [number, number, number, number, number, number];

/** A matrix that changes nothing. */
const IDENTITY: Matrix = [1, 0, 0, 1, 0, 0];

/** Returns the matrix that first applies `inner`, then `outer`. */
export function multiply(outer: Matrix, inner: Matrix): Matrix {
  const [a, b, c, d, e, f] = outer;
  const [g, h, i, j, k, l] = inner;
  return [a * g + c * h, b * g + d * h, a * i + c * j, b * i + d * j, a * k + c * l + e, b * k + d * l + f];
}

/** Returns a matrix of the parser; that which changes nothing if it isn't one. */
export function toMatrix(value: unknown): Matrix {
  const list = Array.isArray(value) || ArrayBuffer.isView(value) ? Array.from(value as ArrayLike<unknown>) : [];
  return list.length === 6 && list.every((one) => typeof one === "number") ? list as Matrix : IDENTITY;
}

/** A glyph of the parser. */
interface PdfGlyph {
  fontChar: string;
  width: number;
  isSpace: boolean;
  /** False for one that the font doesn't have: its outline is a box. */
  isInFont: boolean;
  vmetric?: number[];
}

/** A filled outline on the page. */
export interface GlyphDrawing {
  /** Numbers of `OUTLINE`, each with its coordinates. */
  outline: ArrayLike<number>;
  matrix: Matrix;
  color: Rgb;
}

type Rgb = [red: number, green: number, blue: number];

/** Maximum number of glyphs per page. Dense pages of newspapers have 20,000. */
const MAX_GLYPHS = 100_000;

/** The relevant part of the graphics state. */
interface TextState {
  font: string;
  size: number;
  isVertical: boolean;
  charSpacing: number;
  wordSpacing: number;
  scale: number;
  rise: number;
  leading: number;
  mode: number;
  color: Rgb;
}

function createTextState(): TextState {
  return {
    ...{ font: "", size: 0, isVertical: false, charSpacing: 0, wordSpacing: 0, scale: 1, rise: 0, leading: 0, mode: 0 },
    color: [0, 0, 0],
  };
}

/** Objects of a page, by their ids. */
interface PageObjects {
  has(id: string): boolean;
  get(id: string): unknown;
}

/**
 * Follows the operators that place text.
 *
 * @see ISO 32000-1, section 9.4
 */
export class GlyphPlacer {
  readonly #stack: TextState[] = [];
  #state: TextState = createTextState();
  #text: Matrix = IDENTITY;
  #line = { x: 0, y: 0 };
  #at = { x: 0, y: 0 };
  #count = 0;
  #missing = 0;

  constructor(readonly objects: PageObjects) {}

  /** Reports whether most of the text can't be drawn: its fonts aren't in the file. */
  get lacksFonts(): boolean {
    return this.#missing > this.#count;
  }

  save(): void {
    this.#stack.push(this.#state);
    this.#state = { ...this.#state };
  }

  /** Starts an annotation, which doesn't depend on the state of the page. */
  reset(): void {
    this.#state = createTextState();
  }

  restore(): void {
    this.#state = this.#stack.pop() ?? this.#state;
  }

  /** Returns the glyphs that an operator places. @param matrix The current transformation. */
  handle(operator: number, operands: readonly unknown[], matrix: Matrix): GlyphDrawing[] {
    const state = this.#state;
    const number = typeof operands[0] === "number" ? operands[0] : 0;
    switch (operator) {
      case OPS.beginText:
        this.#setMatrix(IDENTITY);
        break;
      case OPS.setFont: {
        state.font = String(operands[0]);
        state.size = Number(operands[1]) || 0;
        const font = this.objects.has(state.font) ? this.objects.get(state.font) : undefined;
        state.isVertical = (font as { vertical?: boolean } | undefined)?.vertical === true;
        break;
      }
      case OPS.setCharSpacing:
        state.charSpacing = number;
        break;
      case OPS.setWordSpacing:
        state.wordSpacing = number;
        break;
      case OPS.setHScale:
        state.scale = number / 100;
        break;
      case OPS.setTextRise:
        state.rise = number;
        break;
      case OPS.setLeading:
        state.leading = -number;
        break;
      case OPS.setTextRenderingMode:
        state.mode = number;
        break;
      case OPS.setFillRGBColor:
        state.color = parseColor(operands);
        break;
      case OPS.setTextMatrix:
        this.#setMatrix(toMatrix(operands.length === 1 ? operands[0] : operands));
        break;
      case OPS.setLeadingMoveText:
        state.leading = Number(operands[1]) || 0;
        this.#move(number, Number(operands[1]) || 0);
        break;
      case OPS.moveText:
        this.#move(number, Number(operands[1]) || 0);
        break;
      case OPS.nextLine:
        this.#move(0, state.leading);
        break;
      case OPS.showText:
        return this.#show(operands[0], matrix);
    }
    return [];
  }

  #setMatrix(matrix: Matrix): void {
    this.#text = matrix;
    this.#line = { x: 0, y: 0 };
    this.#at = { x: 0, y: 0 };
  }

  #move(x: number, y: number): void {
    this.#line = { x: this.#line.x + x, y: this.#line.y + y };
    this.#at = { ...this.#line };
  }

  #show(glyphs: unknown, matrix: Matrix): GlyphDrawing[] {
    const { font, size, isVertical, charSpacing, wordSpacing, scale, rise, mode, color } = this.#state;
    const drawings: GlyphDrawing[] = [];
    // Mode 3 is invisible: the recognized text of a scan.
    const isVisible = mode !== 3 && mode !== 7;
    for (const glyph of Array.isArray(glyphs) ? glyphs as (PdfGlyph | number | null)[] : []) {
      if (typeof glyph === "number") {
        const shift = -glyph * size / 1000;
        if (isVertical) this.#at.y += shift;
        else this.#at.x += shift * scale;
        continue;
      }
      if (glyph === null) continue;
      const spacing = (glyph.isSpace ? wordSpacing : 0) + charSpacing;
      const [, vx = 0, vy = 0] = isVertical ? glyph.vmetric ?? [0, glyph.width / 2, 880] : [];
      const outline = isVisible && glyph.isInFont ? this.#findOutline(`${font}_path_${glyph.fontChar}`) : undefined;
      if (isVisible && outline === undefined && !glyph.isSpace) this.#missing++;
      if (outline !== undefined && ++this.#count <= MAX_GLYPHS) {
        const x = this.#at.x - vx * size / 1000;
        const y = this.#at.y + rise - vy * size / 1000;
        const place = multiply(multiply(matrix, this.#text), [size * scale, 0, 0, size, x, y]);
        drawings.push({ outline, matrix: place, color });
      }
      if (isVertical) this.#at.y += (glyph.vmetric?.[0] ?? -1000) * size / 1000 - spacing;
      else this.#at.x += (glyph.width * size / 1000 + spacing) * scale;
    }
    return drawings;
  }

  #findOutline(id: string): ArrayLike<number> | undefined {
    const path = this.objects.has(id) ? (this.objects.get(id) as { path?: unknown } | null)?.path : undefined;
    return ArrayBuffer.isView(path) ? path as unknown as ArrayLike<number> : undefined;
  }
}

/** Parses `"#ff0000"`, or three numbers up to 255. */
function parseColor(operands: readonly unknown[]): Rgb {
  const [first] = operands;
  if (typeof first === "string") {
    const code = Number.parseInt(first.slice(1, 7), 16) || 0;
    return [code >> 16, code >> 8 & 255, code & 255];
  }
  const [red = 0, green = 0, blue = 0] = operands.map((one) => Math.max(0, Math.min(255, Number(one) || 0)));
  return [red, green, blue];
}

/** Commands of outlines, as in PDF.js. */
const [MOVE, LINE, CURVE, QUADRATIC, CLOSE] = [0, 1, 2, 3, 4];
/** Number of lines that a curve is drawn with. */
const STEPS = 6;
/** Rows per pixel, for smooth edges. */
const ROWS = 4;

interface Edge {
  top: number;
  bottom: number;
  /** x at the top, and its change per unit of y. */
  x: number;
  slope: number;
  winding: 1 | -1;
}

/** Fills an outline. */
export function drawGlyph({ width, height, pixels }: Raster, { outline, matrix, color }: GlyphDrawing): void {
  const edges = listEdges(outline, matrix);
  if (edges.length === 0) return;
  const top = Math.max(0, Math.floor(Math.min(...edges.map((edge) => edge.top))));
  const bottom = Math.min(height, Math.ceil(Math.max(...edges.map((edge) => edge.bottom))));
  const coverage = new Float32Array(width);
  for (let y = top; y < bottom; y++) {
    let [from, to] = [width, 0];
    for (let row = 0; row < ROWS; row++) {
      const at = y + (row + 0.5) / ROWS;
      const crossings = edges.filter((edge) => edge.top <= at && at < edge.bottom)
        .map(({ x, slope, top, winding }) => ({ x: x + (at - top) * slope, winding })).sort((a, b) => a.x - b.x);
      let winding = 0;
      crossings.forEach((crossing, n) => {
        winding += crossing.winding;
        if (winding === 0 || n + 1 >= crossings.length) return;
        const [left, right] = [Math.max(0, crossing.x), Math.min(width, crossings[n + 1]!.x)];
        if (left >= right) return;
        from = Math.min(from, Math.floor(left));
        to = Math.max(to, Math.ceil(right));
        for (let x = Math.floor(left); x < right; x++) {
          coverage[x] = coverage[x]! + (Math.min(right, x + 1) - Math.max(left, x)) / ROWS;
        }
      });
    }
    for (let x = from; x < to; x++) {
      const alpha = Math.min(1, coverage[x]!);
      coverage[x] = 0;
      for (let channel = 0; channel < 3; channel++) {
        const pixel = (y * width + x) * 4 + channel;
        pixels[pixel] = Math.round(color[channel]! * alpha + pixels[pixel]! * (1 - alpha));
      }
    }
  }
}

/** Returns the edges of an outline on the page. Curves become lines. */
function listEdges(outline: ArrayLike<number>, [a, b, c, d, e, f]: Matrix): Edge[] {
  const edges: Edge[] = [];
  type Point = [x: number, y: number];
  let start: Point = [0, 0];
  let last: Point = [0, 0];
  const read = (at: number): Point => {
    const [x, y] = [outline[at] ?? 0, outline[at + 1] ?? 0];
    return [a * x + c * y + e, b * x + d * y + f];
  };
  const lineTo = (point: Point) => {
    const [[fromX, fromY], [toX, toY]] = [last, point];
    last = point;
    if (fromY === toY || ![fromX, fromY, toX, toY].every(Number.isFinite)) return;
    const slope = (toX - fromX) / (toY - fromY);
    const isDown = fromY < toY;
    edges.push({
      ...{ top: Math.min(fromY, toY), bottom: Math.max(fromY, toY), x: isDown ? fromX : toX },
      ...{ slope, winding: isDown ? 1 : -1 },
    });
  };
  const curveTo = (first: Point, second: Point, end: Point) => {
    const from = last;
    for (let step = 1; step <= STEPS; step++) {
      const t = step / STEPS;
      const weights = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t ** 2 * (1 - t), t ** 3] as const;
      const at = (axis: 0 | 1) =>
        weights[0] * from[axis] + weights[1] * first[axis] + weights[2] * second[axis] + weights[3] * end[axis];
      lineTo([at(0), at(1)]);
    }
  };
  for (let at = 0; at < outline.length;) {
    switch (outline[at++]) {
      case MOVE:
        lineTo(start);
        start = last = read(at);
        at += 2;
        break;
      case LINE:
        lineTo(read(at));
        at += 2;
        break;
      case CURVE:
        curveTo(read(at), read(at + 2), read(at + 4));
        at += 6;
        break;
      case QUADRATIC: {
        const [control, end] = [read(at), read(at + 2)];
        const toward = ([x, y]: Point): Point => [x + (control[0] - x) * 2 / 3, y + (control[1] - y) * 2 / 3];
        curveTo(toward(last), toward(end), end);
        at += 4;
        break;
      }
      case CLOSE:
        lineTo(start);
        break;
      default:
        return edges;
    }
  }
  lineTo(start);
  return edges;
}
