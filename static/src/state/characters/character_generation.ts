/** A character that a model generates: first in the dialog that started it, then in the editor, field by field. */
import { batch, effect, signal } from "@preact/signals";
import type { GenerationApi } from "../../api/character_generation.ts";
import type { CardFieldUpdate } from "../../api/types.ts";
import { type ApiError, asApiError } from "../../api/client.ts";
import type { CardData, CharacterGenerationRequest, Job } from "../../api/types.ts";
import type { CardEditor } from "../../views/character_editor/EditorScreen.tsx";
import type { Store } from "../store.ts";
import { texts } from "../../texts/texts.ts";

/** Fields of the card so far. */
export type GeneratedFields = Partial<CardData>;

/** Time between two saves while fields arrive, so that closing the page loses little. */
const SAVE_EVERY_MS = 3000;

/** The generation of one character. */
export class CharacterGeneration {
  readonly state = signal<"waiting" | "writing" | "done" | "stopped" | "failed">("waiting");
  readonly fields = signal<GeneratedFields>({});
  /** The field that changed last. */
  readonly current = signal<string | undefined>(undefined);
  readonly error = signal<ApiError | undefined>(undefined);
  readonly isCut = signal(false);
  /**
   * Resolves with true when there is enough for a card: the complete name, or the whole response; with false if the
   * model returned nothing.
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

  /** Runs the model to its end. Never throws: `state` has the result. */
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

  /** Stops the model and keeps what has arrived. */
  stop(): void {
    this.#abort.abort();
  }

  #take(steps: readonly CardFieldUpdate[]): void {
    const fields: Record<string, unknown> = { ...this.fields.peek() };
    for (const step of steps) {
      fields[step.field] = "append" in step ? `${fields[step.field] ?? ""}${step.append}` : step.value;
    }
    batch(() => {
      this.fields.value = fields as GeneratedFields;
      this.current.value = steps.at(-1)!.field;
      this.state.value = "writing";
    });
    // The name comes first; it is complete when another field starts.
    if (Object.keys(fields).length > 1) this.#begin(true);
  }
}

interface StoredGeneration {
  id: string;
  creation: CharacterGeneration;
  editor?: CardEditor;
}

const generations = new WeakMap<Store, StoredGeneration>();

/** Stores which character is being generated, for its editor. A previous one continues in the background. */
export function storeGeneration(store: Store, id: string, creation: CharacterGeneration): void {
  generations.set(store, { id, creation });
}

/** Returns the running or last generation of a character. */
export function findGeneration(store: Store, id: string): CharacterGeneration | undefined {
  const stored = generations.get(store);
  return stored?.id === id ? stored.creation : undefined;
}

/** Returns the editor of a character: the one that is being filled, even after its screen was left, or a new one. */
export function findEditor(store: Store, id: string, make: () => CardEditor): CardEditor {
  const stored = generations.get(store);
  if (stored?.id !== id || !stored.creation.isRunning) return make();
  if (stored.editor === undefined) {
    stored.editor = make();
    fill(stored.editor, stored.creation);
  }
  return stored.editor;
}

/** Writes arriving fields into the card. A field that the user edited is left alone. */
function fill(editor: CardEditor, creation: CharacterGeneration): void {
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

/** The card was created from what had arrived by then. */
function isPrefix(there: unknown, value: unknown): boolean {
  if (typeof there === "string" && typeof value === "string") return value.startsWith(there);
  return Array.isArray(there) && Array.isArray(value) && there.every((word) => value.includes(word));
}

/** The detail of a generation job. */
interface Detail {
  character_id?: string;
  name?: string;
  is_cut?: boolean;
}

/** Returns the path of the character that a job stored. */
export function getGenerationPath(job: Job): string | undefined {
  const id = (job.detail as Detail | undefined)?.character_id;
  return job.kind === "character" && id !== undefined ? `/characters/${encodeURIComponent(id)}` : undefined;
}

/** Shows a toast with a link to the character when its job ends, on any screen. */
export function notifyWhenGenerated(store: Store, { id }: Job): void {
  store.activity.onChanged();
  const end = effect(() => {
    const job = store.activity.jobs.value.find((each) => each.id === id);
    if (job === undefined || !["done", "failed", "cancelled"].includes(job.state)) return;
    // Outside of the effect, which would otherwise run again with every toast.
    queueMicrotask(() => {
      end();
      if (job.state !== "cancelled") showResult(store, job);
    });
  });
}

function showResult({ router, toasts }: Store, job: Job): void {
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
