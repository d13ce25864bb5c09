/** Divides the tables of spreadsheets into sections. */
import { type PageSink, splitLong } from "./extraction.ts";

/** Length of a section in UTF-16 units. */
const SECTION_LENGTH = 3_000;
/** Length of the row numbers in a section's title. */
const TITLE_LENGTH = 30;
/** Longer rows aren't column names. */
const MAX_HEADER = 500;
/** Number of empty cells that are written as such. After more of them, a cell has the name of its column. */
const MAX_EMPTY_CELLS = 20;

/**
 * Writes one table. Each section says which rows it has, and repeats the first row, because rows mean little without
 * column names.
 */
export class TableWriter {
  #cells: string[] = [];
  /** Cells that stand far to the right. */
  #farCells: string[] = [];
  #rows: string[] = [];
  #rowNumbers: number[] = [];
  #length = 0;
  #header: string | undefined;
  /** Complete sections that aren't added yet. */
  #sections: string[] = [];
  readonly #notes: string[] = [];

  constructor(readonly sink: PageSink, readonly name: string) {}

  /** Adds a cell to the row. @param column From 0. */
  addCell(column: number, text: string): void {
    const clean = text.replace(/\s*\n\s*/g, " ").trim();
    if (clean === "") return;
    if (column - this.#cells.length > MAX_EMPTY_CELLS) {
      return void this.#farCells.push(`${nameColumn(column)}: ${clean}`);
    }
    while (this.#cells.length < column) this.#cells.push("");
    this.#cells[column] = clean;
  }

  /** Ends the row. Empty ones are skipped. @param number From 1. */
  endRow(number: number): void {
    const row = [...this.#cells, ...this.#farCells].join(" | ");
    this.#cells = [];
    this.#farCells = [];
    if (row === "") return;
    if (this.#rows.length > 0 && this.#length + row.length > SECTION_LENGTH) this.#endSection();
    this.#header ??= row;
    if (this.#rows.length === 0) this.#length = this.name.length + TITLE_LENGTH + this.#getRepeated(row).length;
    this.#rows.push(row);
    this.#rowNumbers.push(number);
    this.#length += row.length + 1;
  }

  /** Adds a text that follows the table, such as a comment. */
  addNote(text: string): void {
    this.#notes.push(text);
  }

  /** Adds the sections that are complete. @throws {ExtractionFault} `too_large` */
  async flush(): Promise<void> {
    for (const section of this.#sections.splice(0)) {
      for (const piece of splitLong(section)) await this.sink.add(piece);
    }
  }

  /** Ends the table. One without text isn't written. @throws {ExtractionFault} `too_large` */
  async end(): Promise<void> {
    if (this.#rows.length > 0 || this.#notes.length > 0) this.#endSection(this.#notes);
    await this.flush();
  }

  /** Returns the column names before the first row of a section; `""` if it has none. */
  #getRepeated(firstRow: string | undefined): string {
    const header = this.#header ?? "";
    return header.length > MAX_HEADER || firstRow === header ? "" : header;
  }

  #endSection(notes: readonly string[] = []): void {
    const [first = 1] = this.#rowNumbers;
    const rows = this.#rows.length === 0 ? "" : `, rows ${first}–${this.#rowNumbers.at(-1)}`;
    const table = [this.#getRepeated(this.#rows[0]), ...this.#rows].filter((row) => row !== "").join("\n");
    this.#sections.push([`# ${this.name}${rows}`, table, ...notes].filter((part) => part !== "").join("\n\n"));
    this.#rows = [];
    this.#rowNumbers = [];
    this.#length = 0;
  }
}

/** Returns the letters of a column: `"AB"` for 27. */
function nameColumn(column: number): string {
  const letter = String.fromCharCode(65 + column % 26);
  return column < 26 ? letter : nameColumn(Math.floor(column / 26) - 1) + letter;
}
