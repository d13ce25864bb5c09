/** A document while it is edited: saved by itself, step by step taken back, never written over what somebody else saved. */
import type { ChangeEvent } from "../../api/types.ts";
import { batch, computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";

/** Pause after the last key before the document is saved. */
const SAVE_AFTER_MS = 700;

/** Typing in one field within this time is one step to take back. */
const STEP_MS = 1500;

/** How many steps can be taken back. */
const STEPS = 200;

/** How far the document is here. */
export type EditorLoad = { kind: "loading" } | { kind: "ready" } | { kind: "missing" } | {
  kind: "failed";
  error: ApiError;
};

/** A document as the server has it: all of it, and the part that is edited. */
export interface StoredVersion<Whole, Data> {
  whole: Whole;
  data: Data;
  /** The ETag, as `If-Match` wants it. */
  version: string;
}

/** How one document is read and saved. */
export interface EditorDeps<Whole, Data> {
  id: string;
  /** Of its change events. */
  kind: string;
  read(): Promise<StoredVersion<Whole, Data>>;
  /** @throws {ApiError} 412 where another version stands */
  write(data: Data, version: string, whole: Whole): Promise<StoredVersion<Whole, Data>>;
  /** False for what cannot be saved yet. */
  isComplete(data: Data): boolean;
}

/** One document being edited. */
export class VersionedEditor<Whole, Data extends object> {
  readonly id: string;
  readonly load = signal<EditorLoad>({ kind: "loading" });
  readonly data = signal<Data | undefined>(undefined);
  readonly whole = signal<Whole | undefined>(undefined);
  readonly state = signal<"saved" | "unsaved" | "saving" | "failed">("saved");
  readonly error = signal<ApiError | undefined>(undefined);
  /** What somebody else saved meanwhile; nothing is saved until the reader has chosen. */
  readonly clash = signal<StoredVersion<Whole, Data> | undefined>(undefined);
  readonly isIncomplete = computed(() => this.data.value !== undefined && !this.#parts.isComplete(this.data.value));
  readonly canUndo = computed(() => this.#past.value.length > 0);
  readonly canRedo = computed(() => this.#future.value.length > 0);
  readonly #parts: EditorDeps<Whole, Data>;
  readonly #past = signal<Data[]>([]);
  readonly #future = signal<Data[]>([]);
  #version = "";
  #saved: Data | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #saving: Promise<void> | undefined;
  #lastStep = { field: "", atMs: 0 };

  constructor(parts: EditorDeps<Whole, Data>) {
    this.#parts = parts;
    this.id = parts.id;
  }

  /** True while the page has something that the server has not. */
  get isDirty(): boolean {
    return this.data.peek() !== this.#saved;
  }

  /** Reads the document. */
  async open(): Promise<void> {
    try {
      const read = await this.#parts.read();
      // What was typed while it was read again is newer; saving it will tell of a clash.
      if (this.load.peek().kind === "ready" && (this.isDirty || this.#saving)) return;
      this.#take(read);
      this.load.value = { kind: "ready" };
    } catch (thrown) {
      const error = asApiError(thrown);
      if (this.load.peek().kind === "ready") return;
      this.load.value = error.status === 404 ? { kind: "missing" } : { kind: "failed", error };
    }
  }

  /** Takes word of a change; what is being typed is not touched, saving it will tell of the clash. */
  onChange(event: ChangeEvent | undefined): void {
    const isOurs = event === undefined || (event.kind === this.#parts.kind && event.id === this.id);
    if (isOurs && !this.isDirty && !this.#saving && this.load.peek().kind === "ready") void this.open();
  }

  /** Changes fields; typing in one field goes together as one step. @param step Names what is typed in, where fields do not. */
  set(changes: Partial<Data>, step = Object.keys(changes).join()): void {
    const before = this.data.peek();
    if (!before) return;
    const now = Date.now();
    const isSameStep = step === this.#lastStep.field && now - this.#lastStep.atMs < STEP_MS &&
      this.#past.peek().length > 0;
    this.#lastStep = { field: step, atMs: now };
    batch(() => {
      if (!isSameStep) this.#past.value = [...this.#past.peek(), before].slice(-STEPS);
      this.#future.value = [];
      this.data.value = { ...before, ...changes };
    });
    this.#saveSoon();
  }

  /** Takes the last step back. */
  undo(): void {
    this.#step(this.#past, this.#future);
  }

  /** Takes back what was taken back. */
  redo(): void {
    this.#step(this.#future, this.#past);
  }

  /** Saves what is not saved. Calls that come together follow one another. */
  async save(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#saving;
    if (!this.isDirty || this.clash.peek() || this.isIncomplete.peek()) return;
    this.#saving = this.#saveOnce().finally(() => this.#saving = undefined);
    await this.#saving;
  }

  /** Ends a clash: mine takes the place of theirs, or theirs is shown and mine stays behind Undo. */
  async settle(choice: "mine" | "theirs"): Promise<void> {
    const theirs = this.clash.peek();
    const mine = this.data.peek();
    if (!theirs || !mine) return;
    this.clash.value = undefined;
    if (choice === "mine") {
      this.#version = theirs.version;
      return await this.save();
    }
    this.#take(theirs);
    this.#past.value = [...this.#past.peek(), mine].slice(-STEPS);
  }

  #step(from: { value: Data[] }, to: { value: Data[] }): void {
    const data = from.value.at(-1);
    const before = this.data.peek();
    if (!data || !before) return;
    this.#lastStep = { field: "", atMs: 0 };
    batch(() => {
      from.value = from.value.slice(0, -1);
      to.value = [...to.value, before];
      this.data.value = data;
    });
    this.#saveSoon();
  }

  #saveSoon(): void {
    clearTimeout(this.#timer);
    // Steps that were taken back may lead to what is saved.
    this.state.value = this.isDirty ? "unsaved" : "saved";
    this.#timer = setTimeout(() => this.save(), SAVE_AFTER_MS);
  }

  async #saveOnce(): Promise<void> {
    const data = this.data.peek()!;
    this.state.value = "saving";
    try {
      const { whole, version } = await this.#parts.write(data, this.#version, this.whole.peek()!);
      this.#version = version;
      this.#saved = data;
      this.whole.value = whole;
      this.error.value = undefined;
      if (this.isDirty) this.#saveSoon();
      else this.state.value = "saved";
    } catch (thrown) {
      const error = asApiError(thrown);
      this.state.value = "failed";
      if (error.status === 412) await this.#meet();
      else this.error.value = error;
    }
  }

  /** Somebody else saved: both texts are kept until the reader has chosen. */
  async #meet(): Promise<void> {
    try {
      const theirs = await this.#parts.read();
      if (JSON.stringify(theirs.data) === JSON.stringify(this.data.peek())) this.#take(theirs);
      else this.clash.value = theirs;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
    }
  }

  #take({ whole, data, version }: StoredVersion<Whole, Data>): void {
    batch(() => {
      this.#version = version;
      this.#saved = data;
      this.whole.value = whole;
      this.data.value = data;
      this.error.value = undefined;
      this.state.value = "saved";
    });
  }
}
