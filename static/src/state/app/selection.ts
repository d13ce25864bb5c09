/** The items that are selected in a list, while the list is in its mode for selecting several. */
import { computed, signal } from "@preact/signals";

/** One list's selection. */
export class Selection {
  /** Undefined outside of the mode. */
  readonly ids = signal<ReadonlySet<string> | undefined>(undefined);
  readonly isActive = computed(() => this.ids.value !== undefined);
  /** The last item that was pressed: where a range starts. */
  anchor: string | undefined;

  /** Starts the mode, with this item selected. */
  start(id?: string): void {
    this.ids.value = new Set(id === undefined ? [] : [id]);
    this.anchor = id;
  }

  /** Selects an item, or no longer. */
  toggle(id: string): void {
    const ids = new Set(this.ids.peek());
    if (!ids.delete(id)) ids.add(id);
    this.ids.value = ids;
    this.anchor = id;
  }

  /** Selects everything from the anchor to an item. @param order All items in the order of the list. */
  extend(id: string, order: readonly string[]): void {
    const [from, to] = [order.indexOf(this.anchor ?? id), order.indexOf(id)].sort((a, b) => a - b);
    this.ids.value = new Set([...this.ids.peek() ?? [], id, ...from! < 0 ? [] : order.slice(from, to! + 1)]);
    this.anchor = id;
  }

  /** Selects all of these as well. */
  add(ids: readonly string[]): void {
    this.ids.value = new Set([...this.ids.peek() ?? [], ...ids]);
  }

  /** Ends the mode. */
  end(): void {
    this.ids.value = undefined;
  }
}
