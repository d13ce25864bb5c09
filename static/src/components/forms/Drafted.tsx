/** A form that keeps what is typed and not saved, and says so when it opens again. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { FormDraft } from "../../state/app/form_draft.ts";
import { draftKey } from "../../state/app/form_draft_store.ts";
import { getPerson } from "../../state/app/outbox_store.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { Button } from "../Button.tsx";
import { lazy } from "../Lazy.tsx";
import { DraftContext, DraftPart } from "./draft_field.ts";

const DraftNotice = lazy(() => import("./DraftNotice.tsx").then(({ DraftNotice }) => DraftNotice), { as: "overlay" });

/**
 * Returns the draft of a form, for `Drafted`. Clear it when the form is saved or canceled by its button; Escape and
 * leaving keep it.
 *
 * @param form What is edited, such as `persona:ID`. Undefined keeps nothing.
 * @param options.isAnyBase The fields begin with something that nobody wrote, such as a suggestion: what was typed
 * replaces it, whatever it is.
 */
export function useFormDraft(form: string | undefined, { isAnyBase = false } = {}): FormDraft {
  const { auth } = useStore();
  return useMemo(() => {
    return new FormDraft(form === undefined ? undefined : draftKey(getPerson(auth.peek()), form), isAnyBase);
  }, [form]);
}

/** The fields of a form, with the notice about what was restored above them. */
export function Drafted({ draft, children }: { draft: FormDraft | undefined; children: ComponentChildren }) {
  return (
    <DraftContext.Provider value={draft}>
      {draft?.notice.value && <DraftNotice draft={draft} />}
      {children}
    </DraftContext.Provider>
  );
}

/** The Cancel button of a form, which discards the draft. */
export function CancelButton(
  { draft, onCancel, kind = "quiet" }: { draft: FormDraft; onCancel: () => void; kind?: "quiet" | "plain" },
) {
  const cancel = () => {
    draft.clear();
    onCancel();
  };
  return <Button kind={kind} onClick={cancel}>{texts.cancel}</Button>;
}

/** Fields that a form has several times. @param props.name Which of them, on every visit. */
export function DraftedPart({ name, children }: { name: string; children: ComponentChildren }) {
  return <DraftPart.Provider value={`${name} `}>{children}</DraftPart.Provider>;
}
