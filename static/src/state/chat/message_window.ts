/** Which of the messages that are here are on the screen: as many as a reader needs, more as soon as they scroll. */
import type { Message } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import type { MessagePages } from "./message_pages.ts";
import { splitReasoning, textOf } from "./message_text.ts";

/**
 * Messages that stand at the end once somebody writes there, and how many each step adds: a screenful and more, so that no
 * step holds the page for longer than a frame may take. What is missing above comes before a reader gets there.
 */
const STEP = 16;

/** Least height of a message and of a line of its text, in px, and most letters of a line. */
const MESSAGE_PX = 72;
const LINE_PX = 24;
const LINE_LETTERS = 80;

/** Messages that are shown whatever their guessed height: a guess may be wrong. */
const FEWEST = 4;

/** Messages on both sides of one that was jumped to. */
const AROUND = 20;

/** A bound of the stretch: by its message, and should that be removed, by its distance from the end. */
interface Bound {
  id: string;
  fromEnd: number;
}

/** A stretch of the messages, by ids: indexes move whenever older ones come in. */
export class MessageWindow {
  /** Undefined: some before the last. */
  readonly #first = signal<Bound | undefined>(undefined);
  /** Undefined: the end, wherever that is. */
  readonly #last = signal<Bound | undefined>(undefined);
  /** How many stand at the end; undefined: as many as fill the screen, which is all that a chat that is opened shows first. */
  readonly #atEnd = signal<number | undefined>(undefined);
  readonly #pages: MessagePages;
  /** Where the stretch begins and ends among the messages here. */
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

  /** Shows a message that is here, with its neighbours. */
  around(messageId: string): void {
    const at = this.#pages.places.peek().get(messageId);
    if (at === undefined) return;
    this.#set(at - AROUND, at + AROUND);
  }

  /**
   * Shows more before what is shown, and reads it where it is not here.
   *
   * @param onReady Called right before it is shown.
   * @throws {ApiError}
   */
  async moreAbove(onReady = () => {}): Promise<void> {
    if (this.range.peek()[0] === 0 && this.#pages.hasOlder.peek()) {
      // Held by its first message, so that what comes in is not shown before it is asked for.
      this.#set(...this.range.peek());
      await this.#pages.loadOlder();
    }
    const [begin, end] = this.range.peek();
    onReady();
    this.#set(begin - STEP, end);
  }

  /** Shows more behind what is shown. */
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

/** Gives how many messages before a place fill the screen, guessed by the length of their texts; rather too many. */
function screenful(items: readonly Message[], end: number): number {
  const { innerHeight: heightPx = Infinity } = globalThis as { innerHeight?: number };
  let count = 0;
  for (let px = 0; count < Math.min(STEP, end) && (px < heightPx || count < FEWEST); count++) {
    const { length } = splitReasoning(textOf(items[end - 1 - count]!.content)).said;
    px += MESSAGE_PX + LINE_PX * Math.ceil(length / LINE_LETTERS);
  }
  return count;
}
