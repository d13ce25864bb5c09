/** A character while a model writes it: first in the dialog that asked for it, then in the editor, field by field. */
import { batch, effect, signal } from "@preact/signals";
import type { FieldUpdate, GenerationApi } from "../../api/character_generation.ts";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { CardData, CharacterGenerationRequest, Job } from "../../api/types.ts";
import type { CardEditor } from "./card_editor.ts";
import type { Store } from "../store.ts";
import { texts } from "../../texts/texts.ts";

/** Fields of a card as they came so far. */
export type GeneratedFields = Partial<CardData>;

/** Time between two saves of what came, so that a page that is closed loses little. */
const SAVE_EVERY_MS = 3000;

/** One character being written. */
export class CharacterGeneration {
  readonly state = signal<"waiting" | "writing" | "done" | "stopped" | "failed">("waiting");
  readonly fields = signal<GeneratedFields>({});
  /** The field that changed last. */
  readonly current = signal<string | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  readonly isCut = signal(false);
  /**
   * Settles with true once there is enough to make a card of: the name whole, or all there is; with false when the model
   * ended without anything.
   */
  readonly begun: Promise<boolean>;
  readonly #abort = new AbortController();
  readonly #begin: (hasFields: boolean) => void;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.begun = promise;
    this.#begin = resolve;
  }

  get isRunning(): boolean {
    return this.state.value === "waiting" || this.state.value === "writing";
  }

  /** Lets the model write to its end. Never throws: how it ended is in `state`. */
  async run(api: GenerationApi, request: CharacterGenerationRequest): Promise<void> {
    try {
      const { isCut } = await api.write(request, (steps) => this.#take(steps), this.#abort.signal);
      batch(() => {
        this.isCut.value = isCut;
        this.state.value = "done";
      });
    } catch (thrown) {
      batch(() => {
        if (!this.#abort.signal.aborted) this.error.value = asApiError(thrown);
        this.state.value = this.#abort.signal.aborted ? "stopped" : "failed";
      });
    }
    this.#begin(Object.keys(this.fields.peek()).length > 0);
  }

  /** Ends the model; what came stays. */
  stop(): void {
    this.#abort.abort();
  }

  #take(steps: readonly FieldUpdate[]): void {
    const fields: Record<string, unknown> = { ...this.fields.peek() };
    for (const step of steps) {
      fields[step.field] = "append" in step ? `${fields[step.field] ?? ""}${step.append}` : step.value;
    }
    batch(() => {
      this.fields.value = fields as GeneratedFields;
      this.current.value = steps.at(-1)!.field;
      this.state.value = "writing";
    });
    // The name comes first; once another field has begun it is whole.
    if (Object.keys(fields).length > 1) this.#begin(true);
  }
}

interface StoredGeneration {
  id: string;
  creation: CharacterGeneration;
  editor?: CardEditor;
}

const kept = new WeakMap<Store, StoredGeneration>();

/** Remembers which character is being written, for its editor. The one before goes on without being shown. */
export function storeGeneration(store: Store, id: string, creation: CharacterGeneration): void {
  kept.set(store, { id, creation });
}

/** Gives what a model writes, or has just written, of a character. */
export function findGeneration(store: Store, id: string): CharacterGeneration | undefined {
  const one = kept.get(store);
  return one?.id === id ? one.creation : undefined;
}

/**
 * Gives the editor of a character: the one that is being filled also when its screen was left meanwhile, else a new one.
 */
export function findEditor(store: Store, id: string, make: () => CardEditor): CardEditor {
  const one = kept.get(store);
  if (one?.id !== id || !one.creation.isRunning) return make();
  if (one.editor === undefined) {
    one.editor = make();
    fill(one.editor, one.creation);
  }
  return one.editor;
}

/** Puts what comes into the card; a field that somebody typed in meanwhile is theirs. */
export function fill(editor: CardEditor, creation: CharacterGeneration): void {
  const written: Record<string, unknown> = {};
  let savedAtMs = Date.now();
  const end = effect(() => {
    const data = editor.data.value;
    const isOver = !creation.isRunning;
    if (editor.load.value.kind !== "ready" || data === undefined) return;
    const changes: Record<string, unknown> = {};
    for (const [field, value] of Object.entries(creation.fields.value)) {
      const isSame = JSON.stringify(data[field]) === JSON.stringify(value);
      const isOurs = !Object.hasOwn(written, field)
        ? isPrefix(data[field], value)
        : JSON.stringify(data[field]) === JSON.stringify(written[field]);
      if (!isSame && isOurs) changes[field] = value;
      if (isSame || isOurs) written[field] = value;
    }
    if (Object.keys(changes).length > 0) editor.set(changes as Partial<CardData>);
    if (isOver || Date.now() - savedAtMs > SAVE_EVERY_MS) {
      savedAtMs = Date.now();
      void editor.save();
    }
    if (isOver) queueMicrotask(() => end());
  });
}

/** The card was made of what had come until then. */
function isPrefix(there: unknown, value: unknown): boolean {
  if (typeof there === "string" && typeof value === "string") return value.startsWith(there);
  return Array.isArray(there) && Array.isArray(value) && there.every((word) => value.includes(word));
}

/** What the job of a written character says of it. */
interface Detail {
  character_id?: string;
  name?: string;
  is_cut?: boolean;
}

/** Gives the address of the character that a job stored. */
export function getGenerationPath(job: Job): string | undefined {
  const id = (job.detail as Detail | undefined)?.character_id;
  return job.kind === "character" && id !== undefined ? `/characters/${encodeURIComponent(id)}` : undefined;
}

/** Shows a message with a way to the character once its job is over, wherever the reader is then. */
export function notifyWhenGenerated(store: Store, { id }: Job): void {
  store.activity.onChanged();
  const end = effect(() => {
    const job = store.activity.jobs.value.find((each) => each.id === id);
    if (job === undefined || !["done", "failed", "cancelled"].includes(job.state)) return;
    // Outside of the effect, which would run again with every message there is.
    queueMicrotask(() => {
      end();
      if (job.state !== "cancelled") tell(store, job);
    });
  });
}

function tell({ router, toasts }: Store, job: Job): void {
  const t = texts.creator;
  const { name = job.title, is_cut: isCut } = (job.detail ?? {}) as Detail;
  const address = getGenerationPath(job);
  const text = address === undefined ? t.jobFailed(name) : isCut ? t.unfinished(name) : t.written(name);
  toasts.show(text, {
    isError: job.state === "failed",
    action: {
      label: address === undefined ? t.show : texts.characters.open,
      run: () => router.go(address ?? "/activity"),
    },
  });
}
