/** The rendered range of the loaded messages: as many as the reader needs, more on scrolling. */
import type { Message } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import type { MessagePages } from "./message_pages.ts";
import { splitReasoning, textOf } from "./message_text.ts";

/**
 * Messages rendered at the end after sending, and added by each step: a screenful and more, so that no step takes
 * longer than a frame. What is missing above arrives before a reader gets there.
 */
const STEP = 16;

/** Least height of a message and of a line of text, in px, and most letters of a line. */
const MESSAGE_PX = 72;
const LINE_PX = 24;
const LINE_LETTERS = 80;

/** Messages that are rendered whatever their estimated height, since an estimate may be wrong. */
const FEWEST = 4;

/** Messages on both sides of one that was jumped to. */
const AROUND = 20;

/** A bound of the range: its message, and if that is removed, the distance from the end. */
interface Bound {
  id: string;
  fromEnd: number;
}

/** A range of messages, by id: indexes change when older ones are loaded. */
export class MessageWindow {
  /** Undefined: some before the last. */
  readonly #first = signal<Bound | undefined>(undefined);
  /** Undefined: the end. */
  readonly #last = signal<Bound | undefined>(undefined);
  /**
   * How many are rendered at the end; undefined: as many as fill the screen, which is all that a newly opened chat
   * shows.
   */
  readonly #atEnd = signal<number | undefined>(undefined);
  readonly #pages: MessagePages;
  /** The range as indexes of the loaded messages. */
  readonly range = computed(() => this.#findRange());
  readonly shown = computed(() => this.#pages.items.value.slice(...this.range.value));
  readonly hasAbove = computed(() => this.range.value[0] > 0 || this.#pages.hasOlder.value);
  readonly hasBelow = computed(() => this.range.value[1] < this.#pages.items.value.length);

  constructor(pages: MessagePages) {
    this.#pages = pages;
  }

  /** Shows the end. */
  toEnd(): void {
    this.#atEnd.value = STEP;
    this.#first.value = undefined;
    this.#last.value = undefined;
  }

  /** Shows a loaded message with its neighbors. */
  around(messageId: string): void {
    const at = this.#pages.places.peek().get(messageId);
    if (at === undefined) return;
    this.#set(at - AROUND, at + AROUND);
  }

  /**
   * Shows more above, and loads it if needed.
   *
   * @param onReady Called right before it is shown.
   * @throws {ApiError}
   */
  async moreAbove(onReady = () => {}): Promise<void> {
    if (this.range.peek()[0] === 0 && this.#pages.hasOlder.peek()) {
      // Anchored at its first message, so that loaded messages are not shown before they are requested.
      this.#set(...this.range.peek());
      await this.#pages.loadOlder();
    }
    const [begin, end] = this.range.peek();
    onReady();
    this.#set(begin - STEP, end);
  }

  /** Shows more below. */
  moreBelow(): void {
    const [begin, end] = this.range.peek();
    this.#set(begin, end + STEP);
  }

  #set(begin: number, end: number): void {
    const items = this.#pages.items.peek();
    const boundAt = (at: number): Bound | undefined => items[at] && { id: items[at].id, fromEnd: items.length - at };
    this.#first.value = boundAt(Math.max(0, begin));
    this.#last.value = end >= items.length ? undefined : boundAt(end - 1);
  }

  #findRange(): [begin: number, end: number] {
    const places = this.#pages.places.value;
    const { length } = this.#pages.items.value;
    const before = (end: number) => Math.max(0, end - (this.#atEnd.value ?? screenful(this.#pages.items.value, end)));
    const placeOf = (bound: Bound) => places.get(bound.id) ?? Math.max(0, length - bound.fromEnd);
    const [first, last] = [this.#first.value, this.#last.value];
    const end = last === undefined ? length : Math.min(length, placeOf(last) + 1);
    return [first === undefined ? before(end) : Math.min(placeOf(first), end), end];
  }
}

/**
 * Returns how many messages before an index fill the screen, estimated from the length of their texts; rather too many.
 */
function screenful(items: readonly Message[], end: number): number {
  const { innerHeight: heightPx = Infinity } = globalThis as { innerHeight?: number };
  let count = 0;
  for (let px = 0; count < Math.min(STEP, end) && (px < heightPx || count < FEWEST); count++) {
    const { length } = splitReasoning(textOf(items[end - 1 - count]!.content)).said;
    px += MESSAGE_PX + LINE_PX * Math.ceil(length / LINE_LETTERS);
  }
  return count;
}
