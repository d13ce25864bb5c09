/** A document in an editor: saves automatically, has Undo, and never overwrites what someone else saved. */
import type { ChangeEvent } from "../../api/types.ts";
import { batch, computed, signal } from "@preact/signals";
import { type ApiError, asApiError } from "../../api/client.ts";

/** Pause in typing before the document is saved, in milliseconds. */
const SAVE_AFTER_MS = 700;

/** Typing in one field within this time, in milliseconds, is one undo step. */
const STEP_MS = 1500;

/** Most undo steps. */
const STEPS = 200;

/** The load state of the document. */
export type EditorLoad = { kind: "loading" } | { kind: "ready" } | { kind: "missing" } | {
  kind: "failed";
  error: ApiError;
};

/** The server's version of a document: all of it, and the part that is edited. */
export interface StoredVersion<Document, Data> {
  document: Document;
  data: Data;
  /** The ETag, for `If-Match`. */
  version: string;
}

/** How one document is loaded and saved. */
export interface EditorDeps<Document, Data> {
  id: string;
  /** Kind of its change events. */
  kind: string;
  read(): Promise<StoredVersion<Document, Data>>;
  /** @throws {ApiError} 412 if the stored version differs. */
  write(data: Data, version: string, document: Document): Promise<StoredVersion<Document, Data>>;
  /** False for what can't be saved yet. */
  isComplete(data: Data): boolean;
}

/** One document in an editor. */
export class VersionedEditor<Document, Data extends object> {
  readonly id: string;
  /** Kind of its change events. */
  readonly kind: string;
  readonly load = signal<EditorLoad>({ kind: "loading" });
  readonly data = signal<Data | undefined>(undefined);
  readonly document = signal<Document | undefined>(undefined);
  readonly state = signal<"saved" | "unsaved" | "saving" | "failed">("saved");
  readonly error = signal<ApiError | undefined>(undefined);
  /** The version that someone else saved. Nothing is saved until the user has chosen. */
  readonly clash = signal<StoredVersion<Document, Data> | undefined>(undefined);
  readonly isIncomplete = computed(() => this.data.value !== undefined && !this.#deps.isComplete(this.data.value));
  readonly canUndo = computed(() => this.#past.value.length > 0);
  readonly canRedo = computed(() => this.#future.value.length > 0);
  readonly #deps: EditorDeps<Document, Data>;
  readonly #past = signal<Data[]>([]);
  readonly #future = signal<Data[]>([]);
  #version = "";
  #saved: Data | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #saving: Promise<void> | undefined;
  #lastStep = { field: "", atMs: 0 };

  constructor(deps: EditorDeps<Document, Data>) {
    this.#deps = deps;
    this.id = deps.id;
    this.kind = deps.kind;
  }

  /** True if there are unsaved changes. */
  get isDirty(): boolean {
    return this.data.peek() !== this.#saved;
  }

  /** Loads the document. */
  async open(): Promise<void> {
    const version = this.#version;
    try {
      const read = await this.#deps.read();
      // Text typed during the reload is newer; saving it reports the conflict.
      if (this.load.peek().kind === "ready" && (this.isDirty || this.#saving)) return;
      // After a save or another read since, it may be the older one.
      if (version !== this.#version) return await this.open();
      this.#take(read);
      this.load.value = { kind: "ready" };
    } catch (thrown) {
      const error = asApiError(thrown);
      if (this.load.peek().kind === "ready") return;
      this.load.value = error.status === 404 ? { kind: "missing" } : { kind: "failed", error };
    }
  }

  /** Handles a change event. Text being typed is not touched; saving it reports the conflict. */
  onChange(event: ChangeEvent | undefined): void {
    const isOurs = event === undefined || (event.kind === this.#deps.kind && event.id === this.id);
    const isLoaded = ["ready", "failed"].includes(this.load.peek().kind);
    if (isOurs && !this.isDirty && !this.#saving && isLoaded) void this.open();
  }

  /** Changes fields; typing in one field is one undo step. @param step Names the step, if the fields do not. */
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

  /** Undoes the last step. */
  undo(): void {
    this.#step(this.#past, this.#future);
  }

  /** Redoes the last undone step. */
  redo(): void {
    this.#step(this.#future, this.#past);
  }

  /** Saves unsaved changes. Concurrent calls run one after the other. */
  async save(): Promise<void> {
    clearTimeout(this.#timer);
    do {
      await this.#saving;
      // Another caller that waited may have begun the next one.
    } while (this.#saving);
    if (!this.isDirty || this.clash.peek() || this.isIncomplete.peek()) return;
    this.#saving = this.#saveOnce().finally(() => this.#saving = undefined);
    await this.#saving;
  }

  /** Resolves a conflict: mine overwrites theirs, or theirs is shown and mine stays in Undo. */
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
    // Undone steps may lead to what is saved.
    this.state.value = this.isDirty ? "unsaved" : "saved";
    this.#timer = setTimeout(() => this.save(), SAVE_AFTER_MS);
  }

  async #saveOnce(): Promise<void> {
    const data = this.data.peek()!;
    this.state.value = "saving";
    try {
      const { document, version } = await this.#deps.write(data, this.#version, this.document.peek()!);
      this.#version = version;
      this.#saved = data;
      this.document.value = document;
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

  /** Someone else saved: both texts are kept until the user has chosen. */
  async #meet(): Promise<void> {
    try {
      const theirs = await this.#deps.read();
      if (JSON.stringify(theirs.data) === JSON.stringify(this.data.peek())) this.#take(theirs);
      else this.clash.value = theirs;
    } catch (thrown) {
      this.error.value = asApiError(thrown);
    }
  }

  #take({ document, data, version }: StoredVersion<Document, Data>): void {
    batch(() => {
      this.#version = version;
      this.#saved = data;
      this.document.value = document;
      this.data.value = data;
      this.error.value = undefined;
      this.state.value = "saved";
    });
  }
}
