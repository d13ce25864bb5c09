/** Binds fields to the draft of the form around them, whose code is loaded with the form. */
import { createContext } from "preact";
import { useContext, useLayoutEffect, useState } from "preact/hooks";

/** A field that is shown, with its current value. */
export interface DraftField {
  /** Names the field in its form, on every visit. */
  name: string;
  value: string;
  set: (value: string) => void;
  /** What is in it can't be saved. */
  isInvalid: boolean;
  /** One of a few values. Its current one stands against a draft of an earlier one. */
  isChoice: boolean;
}

/** Keeps what is typed in the fields of one form. */
export interface FieldDrafts {
  /** Takes a field, which gets back what was typed before. Returns a function for when it's no longer shown. */
  join(field: DraftField): () => void;
  /** Keeps what is typed. */
  note(field: DraftField, value: string): void;
  /** Keeps up with a value that the form has changed after the typing. */
  follow(field: DraftField): void;
  /** A secret was typed: it isn't kept, and what is restored says so. */
  omit(): void;
}

/** The draft of the form, if it has one. */
export const DraftContext = createContext<FieldDrafts | undefined>(undefined);

/** Names the part of the form, where several have the same fields. */
export const DraftPart = createContext("");

/**
 * Keeps what is typed in a field. Returns `set` for what the user does.
 *
 * @param kind A search and a secret aren't kept.
 */
export function useDraftField(
  name: string,
  value: string,
  set: (value: string) => void,
  kind: "text" | "choice" | "search" | "secret" = "text",
  isInvalid = false,
) {
  const isKept = kind === "text" || kind === "choice";
  const draft = useContext(DraftContext);
  const part = useContext(DraftPart);
  const [field] = useState(() => ({ name: part + name, value, set, isInvalid, isChoice: kind === "choice" }));
  Object.assign(field, { value, set, isInvalid });
  useLayoutEffect(() => isKept ? draft?.join(field) : undefined, [draft]);
  useLayoutEffect(() => draft?.follow(field), [value]);
  return (typed: string) => {
    if (isKept) draft?.note(field, typed);
    else if (kind === "secret") draft?.omit();
    set(typed);
  };
}
