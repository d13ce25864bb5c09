/** Recordings that go out with the next message. */
import { computed, type ReadonlySignal, signal } from "@preact/signals";

/** One recording in the composer. */
export interface AttachedRecording {
  /** Name of the attachment. */
  name: string;
  /** True during the upload. */
  isBusy: ReadonlySignal<boolean>;
}

/** The recordings of one composer. `speech/keep_recording.ts` adds them. */
export class Recordings {
  readonly items = signal<AttachedRecording[]>([]);
  /** True during an upload. */
  readonly isBusy = computed(() => this.items.value.some(({ isBusy }) => isBusy.value));

  /** Adds a recording. */
  add(recording: AttachedRecording): void {
    this.items.value = [...this.items.peek(), recording];
  }

  /** Removes a recording. */
  remove(name: string): void {
    this.items.value = this.items.peek().filter((item) => item.name !== name);
  }

  /** Empties the list after sending. */
  take(): AttachedRecording[] {
    const taken = this.items.peek();
    this.items.value = [];
    return taken;
  }

  /** Restores recordings that could not be sent. */
  putBack(items: readonly AttachedRecording[]): void {
    this.items.value = [...items, ...this.items.peek()];
  }
}
