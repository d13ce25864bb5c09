/** What was typed in one form and not saved, over leaving, reloads and closed tabs. */
import { signal } from "@preact/signals";
import type { DraftField, FieldDrafts } from "../../components/forms/draft_field.ts";
import { putDraft, readDraft } from "./form_draft_store.ts";

interface Entry {
  text: string;
  /** What was in the field before the typing. */
  base: string;
  /**
   * In its field; to be restored when its field is shown; not restored, because the field has another text now; to be
   * restored although it has.
   */
  state: "typed" | "waiting" | "clashing" | "chosen";
}

/** A URL with a password. */
const CREDENTIALS = /^[a-z][a-z\d+.-]*:\/\/[^/?#\s]*:[^/?#\s]*@/i;

/** The draft of one form. */
export class FormDraft implements FieldDrafts {
  /** What the form says about it. */
  readonly notice = signal<"restored" | "clashing" | undefined>(undefined);
  /** Secrets were typed with what was restored. */
  readonly lacksSecrets = signal(false);
  /** Resolves when the draft of earlier visits is known. */
  readonly loaded: Promise<void>;
  readonly #key: string | undefined;
  readonly #isAnyBase: boolean;
  readonly #entries = new Map<string, Entry>();
  readonly #fields = new Map<string, DraftField>();
  /** Fields that are no longer shown. */
  readonly #gone = new Map<string, DraftField>();
  readonly #names = new Map<DraftField, string>();
  /** What was in the fields before they were restored. */
  readonly #before = new Map<string, string>();
  #isSettling = false;
  #isCleared = false;
  #hasSecrets = false;

  /**
   * @param key Person and form. Undefined to keep nothing, as in a temporary chat.
   * @param isAnyBase What the fields have at first isn't anybody's text: what was typed always replaces it.
   */
  constructor(key: string | undefined, isAnyBase = false) {
    this.#key = key;
    this.#isAnyBase = isAnyBase;
    this.loaded = this.#load();
  }

  /** False if something was typed and not saved. Known when it's loaded. */
  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** Returns what was typed in a field, if anything. Known when it's loaded. */
  find(name: string): string | undefined {
    return this.#entries.get(name)?.text;
  }

  join(field: DraftField): () => void {
    let { name } = field;
    for (let n = 2; this.#fields.has(name); n++) name = `${field.name} ${n}`;
    this.#fields.set(name, field);
    this.#names.set(field, name);
    void this.#restore();
    return () => {
      this.#gone.set(name, field);
      this.#fields.delete(name);
      this.#names.delete(field);
    };
  }

  note(field: DraftField, value: string): void {
    const name = this.#names.get(field);
    if (name === undefined) return;
    const entry = this.#entries.get(name);
    const base = entry?.state === "typed" ? entry.base : field.value;
    const isSecret = CREDENTIALS.test(value);
    if (isSecret) this.omit();
    if (value === base || isSecret) this.#entries.delete(name);
    else this.#entries.set(name, { text: value, base, state: "typed" });
    this.#write();
  }

  follow(field: DraftField): void {
    const entry = this.#entries.get(this.#names.get(field) ?? "");
    if (entry?.state === "typed" && entry.text !== field.value && !this.#isSettling) this.note(field, field.value);
  }

  omit(): void {
    this.#hasSecrets = true;
    if (!this.isEmpty) this.#write();
  }

  /** Forgets the draft: the form is saved, or canceled by its button. */
  clear(): void {
    this.#isCleared = true;
    this.#entries.clear();
    this.#hasSecrets = false;
    this.#hide();
    this.#write();
  }

  /** Forgets what is valid: it was saved by itself. What was restored can still be discarded. */
  settle(): void {
    for (const [name, { state }] of this.#entries) {
      if (state === "typed" && !(this.#fields.get(name) ?? this.#gone.get(name))?.isInvalid) this.#entries.delete(name);
    }
    this.#write();
  }

  /** Puts back what was in the fields before they were restored. */
  async discard(): Promise<void> {
    const before = [...this.#before];
    this.clear();
    for (const [name, text] of before) {
      this.#fields.get(name)?.set(text);
      await nextRender();
    }
  }

  /** Shows what was typed in place of what was saved elsewhere since. */
  async showClashing(): Promise<void> {
    for (const entry of this.#entries.values()) {
      if (entry.state === "clashing") entry.state = "chosen";
    }
    this.notice.value = undefined;
    await this.#restore();
  }

  async #load(): Promise<void> {
    if (this.#key === undefined) return;
    const stored = await readDraft(this.#key);
    if (!stored || this.#isCleared) return;
    const typed = [...this.#entries];
    this.#entries.clear();
    for (const [name, text, base] of stored.fields) this.#entries.set(name, { text, base, state: "waiting" });
    for (const [name, entry] of typed) this.#entries.set(name, entry);
    this.lacksSecrets.value = stored.lacksSecrets;
    this.#hasSecrets ||= stored.lacksSecrets;
  }

  /** One field after the other: each may change the form, and the next one needs what it has then. */
  async #restore(): Promise<void> {
    if (this.#isSettling) return;
    this.#isSettling = true;
    await this.loaded;
    const isReady = ([name, { state }]: [string, Entry]) =>
      (state === "waiting" || state === "chosen") && this.#fields.has(name);
    let hasSaved = false;
    for (let next = [...this.#entries].find(isReady); next; next = [...this.#entries].find(isReady)) {
      const [name, entry] = next;
      const field = this.#fields.get(name)!;
      if (entry.text === field.value && !this.#isAnyBase) {
        // It was saved after all.
        this.#entries.delete(name);
        hasSaved = true;
      } else if (this.#isAnyBase || entry.state === "chosen" || entry.base === field.value) {
        const base = entry.text === field.value ? entry.base : field.value;
        this.#before.set(name, base);
        Object.assign(entry, { state: "typed", base });
        this.notice.value ??= "restored";
        field.set(entry.text);
      } else if (field.isChoice) {
        this.#entries.delete(name);
        hasSaved = true;
      } else {
        entry.state = "clashing";
        this.notice.value = "clashing";
      }
      await nextRender();
    }
    this.#isSettling = false;
    if (hasSaved) this.#write();
  }

  #hide(): void {
    this.#before.clear();
    this.notice.value = undefined;
    this.lacksSecrets.value = false;
  }

  #write(): void {
    if (this.#key === undefined) return;
    const fields = [...this.#entries].map(([name, { text, base }]): [string, string, string] => [name, text, base]);
    putDraft(this.#key, fields.length === 0 ? undefined : { fields, lacksSecrets: this.#hasSecrets });
  }
}

function nextRender(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
